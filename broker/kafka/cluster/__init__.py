"""Answers from the metadata image: brokers, topics, partitions and settings of the cluster.

- metadata.py, describe_topic_partitions.py, describe_cluster.py, describe_quorum.py: nodes and
  partitions. suspects.py and auto_create.py delay an answer that needs the controller.
- list_config_resources.py, client_quotas.py, describe_scram.py: settings and credentials.
"""

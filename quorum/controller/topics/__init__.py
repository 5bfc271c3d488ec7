"""New topics and partitions.

- topics.py, new_partitions.py: CreateTopics, DeleteTopics and CreatePartitions.
- topic_names.py, topic_configs.py, assignments.py: the checks of a request.
- placement.py, placement_balance.py, directories.py: the brokers of new replicas, and their
  directories.
"""

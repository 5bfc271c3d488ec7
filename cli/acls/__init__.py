"""`quorate acls`: kafka-acls, with its options and lines.

Files in reading order:

- entries.py: the resources and ACLs that the options name, and the operations of each resource
- lines.py: Kafka's texts of resources and ACLs
- requests.py: the requests to the cluster
- command.py: the command
"""

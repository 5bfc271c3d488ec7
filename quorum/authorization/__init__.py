"""Who may do what: the decisions of Kafka's StandardAuthorizer, as pure functions.

The ACLs are part of the metadata image (`metadata/acls.py`).

Files in reading order:

- decision.py: the decision about one action, and about any resource of a type
- hosts.py: the hosts of clients and ACLs, compared as addresses
- authorizer.py: super users, and the cache of decisions
- filters.py: the filters of DescribeAcls and DeleteAcls

Sources of the rules: KIP-11 (ACLs), KIP-290 (prefixes), KIP-801 (StandardAuthorizer), KIP-679 (any
resource of a type), and Apache Kafka 4.1.
"""

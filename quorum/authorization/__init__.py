"""The permissions of clients, decided as by Kafka's StandardAuthorizer, in pure functions.

A node checks requests if `authorizer.class.name` names Kafka's StandardAuthorizer. A broker checks
the requests that it answers. The active controller checks the requests that only it can decide, on
its latest image, also if a broker forwards them. The ACLs are part of the metadata image
(`metadata/acls.py`), so each decision is about one offset of the log.

Files in reading order:

- decision.py: the decision about one action, and about any resource of a type
- hosts.py: the hosts of clients and ACLs, compared as addresses
- authorizer.py: super users, and the cache of decisions
- filters.py: the filters of DescribeAcls and DeleteAcls
- permits.py: the permissions of the client of one request, and Kafka's error for each refusal
- check.py: the outcome of a check, and the checks that most APIs need
- apis.py: the table of all APIs
- metadata_checks.py, topic_checks.py, group_checks.py: the checks that need more than a row
- refusals.py: the answers of refused requests about log directories

Sources of the rules: KIP-11 (ACLs), KIP-290 (prefixes), KIP-801 (StandardAuthorizer), KIP-679 (any
resource of a type), and Apache Kafka 4.1.
"""

"""A broker of the cluster: partition replicas, consumer groups, and the ports for clients and
nodes.

A broker keeps a copy of the metadata log (`quorum/node`), makes its replicas match the metadata,
and serves Kafka's protocol. In reading order:

- `node.py`: a running broker; `node_port.py`: its port for other nodes.
- `partition/`: the rules of one replica, as pure code.
- `logs/`: the log directory.
- `replication/`: the replicas of this broker, produce, fetch, followers, and metadata changes.
- `controller/`: the requests to the active controller.
- `groups/`: consumer groups.
- `kafka/`: the handlers of the client port.
- `topic_settings.py`, `metrics.py`, `readiness.py`: effective settings, metrics and readiness;
  `isr_proposals.py`: the ISR proposals without a result.
- `local/`: a whole cluster in one process, for tests.
"""

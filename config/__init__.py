"""The configuration of a node and of topics: tables of Kafka's properties, and their loader.

Decisions:

- Names, types, defaults and units are Kafka's. Our own keys begin with `quorate.`. A default that
  differs from Kafka's is marked with `kafka_default`, and docs/differences.md gives the reason.
- A key is data: type, default, check and documentation stand in one table entry.
- An error names the source of the value, the key, the value, and the allowed values.
- Unknown keys of a node are kept and reported, and have no effect. Unknown topic keys are rejected.

Inputs: a .properties file, the environment, and overrides. Output: an immutable `NodeConfig`.

Files in reading order:

- `key.py`: one key, and the checks.
- `node_keys.py`: the table of node keys, which unites `network_keys.py`, `quorum_keys.py`,
  `log_keys.py` and `replication_keys.py`.
- `topic_keys.py`: the table of topic keys.
- `node_config.py`: the configuration of one node.
- `loader.py`, `properties.py`, `listeners.py`: from text to a `NodeConfig`.
"""

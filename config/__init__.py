"""The configuration of a node and of topics: tables of Kafka's properties, and their loader.

Decisions:

- Names, types, defaults and units are Kafka's. Our own keys begin with `quorate.`. A default that
  differs from Kafka's is marked with `kafka_default`, and docs/differences.md gives the reason.
- A key is data: type, default, check and documentation stand in one table entry.
- An error names the key, and what it must be. If a value was given, the error also names the value
  and, for a node, the source.
- Unknown keys of a node are kept and reported, and have no effect. Requests that set an unknown
  topic key are rejected. Unknown topic keys that are already stored are ignored.

Inputs: a .properties file, the environment, and overrides. Output: an immutable `NodeConfig`.

Files in reading order:

- `key.py`: one key, and the checks.
- `node_keys.py`: the table of node keys, which unites `network_keys.py`, `quorum_keys.py`,
  `log_keys.py` and `replication_keys.py`.
- `topic_keys.py`: the table of topic keys.
- `node_config.py`: the configuration of one node.
- `loader.py`, `properties.py`, `listeners.py`: from text to a `NodeConfig`.
"""

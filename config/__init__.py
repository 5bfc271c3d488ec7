"""The configuration of a node and of topics: tables of Kafka's properties, and their loader.

Decisions:

- Names, types, defaults and units are Kafka's. Our own keys begin with `quorate.`. A default that
  differs from Kafka's is marked with `kafka_default`, and docs/differences.md gives the reason.
- A key is data: type, default, check and documentation stand in one table entry.
- An error names the key, and what it must be. If a value was given, the error also names the value
  and, for a node, the source.
- No setting that changes nothing is accepted silently. A key has an effect, or the start reports it
  with the reason, or the node refuses to start.
- Unknown keys of a node are kept and reported. Requests that set an unknown topic key are rejected.
  Unknown topic keys that are already stored are ignored.

Inputs: a .properties file, the environment, and overrides. Output: an immutable `NodeConfig`.

Files in reading order:

- `key.py`: one key, and the checks.
- `node_keys.py`: the table of node keys, which unites `network_keys.py`, `quorum_keys.py`,
  `log_keys.py` and `replication_keys.py`.
- `topic_keys.py`: the table of topic keys.
- `not_in_effect.py`, `refused_keys.py`: Kafka's other properties: those that change nothing, and
  those that end the start.
- `node_config.py`: the configuration of one node.
- `loader.py`, `properties.py`, `listeners.py`: from text to a `NodeConfig`.
"""

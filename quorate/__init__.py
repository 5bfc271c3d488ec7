"""Quorate: a Kafka-compatible cluster in Python, with a Raft metadata quorum (KIP-500).

The packages, each of which imports only those after it:

- `quorate.cli`: the command line.
- `quorate.broker`: the brokers.
- `quorate.quorum`: the controller quorum, and everything that brokers and controllers share.
- `quorate.config`: the configuration keys.

`quorate.testing` and `quorate.pytest_plugin` run a cluster in a test's process. Programs may use
these two modules, `quorate.quorum.analytics` and the `quorate` command."""

__version__ = "0.1.0"

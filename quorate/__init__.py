"""Quorate: a Kafka-compatible cluster in Python, run by a Raft metadata quorum (KIP-500).

`quorate.quorum` is the controller quorum and everything both kinds of node share, `quorate.broker`
the brokers, `quorate.cli` the command line and `quorate.config` what an operator can set. Each
imports only what stands to its right in: cli -> broker -> quorum -> config.
"""

__version__ = "0.1.0"

"""Readable scripts, as the interaction tests of etcd's raft: histories of the protocols as text.

A script names nodes, faults and deliveries. Under each step stands the trace that the real cores
give. `pytest tests/scripts --rewrite` writes the traces anew. docs/protocol/README.md explains the
language, and the pages of docs/protocol show every script.

In reading order: `language.py` reads and writes the text, `play.py` plays it, `quorum.py` has the
commands of the metadata quorum on `traced_cluster.py`, `partition.py` has the commands of a
partition. `quorum_trace.py` and `partition_trace.py` have the sentences of the traces.
"""

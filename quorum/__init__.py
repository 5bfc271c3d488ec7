"""The metadata quorum: everything that a controller needs, and that a broker shares with it.

A node is a pure core in a thin asyncio shell. The core makes the decisions. Its clock, its random
numbers, its network and its disk are injected (`seams.py`), so that the simulation in tests/sim
runs the same code on virtual time.

Folders in the order of their imports; each imports only those before it:

- the top-level modules: `seams.py`, `ids.py`, `node_message_bounds.py` and `shapes.py` (the bounds
  of node messages), `incremental_work.py` (long work in parts), `state_in_doubt.py` (the error
  that stops a node), `clipped.py`, `log_limit.py` (bounded texts and log lines), `open_files.py`,
  `clock.py`
- `protocol/`: Kafka's messages, codecs and errors, pure
- `log/`: the log on disk: batches, segments, recovery, snapshot files
- `raft/`: the consensus core, pure
- `metadata/`: records, the metadata image and its replay, pure
- `controller/`: the controller's rules, pure
- `rpc/`: links between nodes, and the server and client of Kafka's protocol
- `faults/`: injected faults of clock, disk and network
- `watch/`: health, metrics and changes over HTTP
- `node/`: a running node and a running controller
- `offline/`: tools for the directory of a stopped node
- `analytics/`: the history of a cluster from its metadata log, with Spark

ARCHITECTURE.md shows how requests flow through them. docs/protocol states the rules.
"""

"""A running node: the shells around Raft, the controller's rules and the metadata log.

Decisions:

- The decisions themselves are made by pure code in `quorum/raft`, `quorum/controller` and
  `quorum/metadata`. This package does the I/O, keeps the order of effects, and reports results.
- All code runs on the node's event loop, except the work that is submitted to the disk's thread.
- A node that is both broker and controller has one core. The roles follow it by callbacks.
- Nothing leaves a node before it is durable, if others may rely on it: a vote, an acknowledgement.
- A failure of the disk, and an exception in the middle of a change, stop the node. An exception in
  a request, before it has changed anything, fails only this request. An exception that no code
  catches stops the node, apart from two kinds that a peer can cause (`unhandled.py`).

Inputs: requests and links of other nodes, timers, and the data directory. Outputs: requests to the
voters, the metadata log and its snapshots, and the committed image.

In reading order:

- `node_core.py`: the parts that every node has; `node_listeners.py`: the callbacks of its roles;
  `feature_support.py`: the features that this release must support.
- `opening/`: the start, from a locked directory to the Raft core.
- `replica/`: this node's copy of the metadata log, and the committed image.
- `peers/`: the links to other nodes, and their requests.
- `controller/`: the role of a controller.
- Log lines: `waiting_log.py` (the reason why a node waits), `listening.py`.
- The process: `unhandled.py`, `garbage.py`, `allocator.py`, `dynamic_settings.py`.

Sources: KIP-595 (Raft), KIP-630 (snapshots), KIP-631 (the controller), KIP-853 (voters), KIP-919
(admin clients of controllers). The rules and their proofs are in docs/protocol.
"""

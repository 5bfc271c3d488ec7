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

Files in reading order:

- `node_core.py`: the parts that every node has; `node_listeners.py`: the callbacks of its roles;
  `feature_support.py`: the features that this release must support.
- The start: `directory_lock.py`, `data_directory.py`, `meta_properties.py` (identity),
  `directory_replacement.py` (a rebuilt quorum), `metadata_opening.py`, `metadata_mark.py` (records
  or votes that are lost), `metadata_storage.py`, `raft_creation.py`.
- The metadata log: `metadata_replica.py` (Raft's effects), `replica_listener.py`,
  `replica_flushes.py`, `received_snapshot.py`, `committed_image.py` (the replay of what is
  committed), `snapshot_generator.py`.
- Log lines: `cluster_event_log.py` (the active controller's events, at their commit),
  `waiting_log.py` (the reason why a node waits), `listening.py`.
- The controller: `controller_node.py`, `controller_port.py` (requests in Kafka's protocol),
  `controller_shell.py` with `controller_queue.py`, `controller_decision.py`, `long_decision.py`,
  `uncommitted_decisions.py` and `controller_batch.py` (requests to the rules), `voter_admin.py`
  (requests to Raft), `broker_probes.py` (hints), `replica_log_requests.py` (before unclean
  elections),
  `describe_configs.py`, `controller_metrics.py`, `controller_stages.py`,
  `own_registration.py` with `controller_registrar.py` (the registration of this controller).
- Other nodes: `quorum_links.py`, `node_requests.py` (the boundary of their requests),
  `speaker.py` (a request speaks for its sender), `voter_probes.py`,
  `node_membership.py`, `generations.py`.
- The process: `node_settings.py`, `unhandled.py`, `garbage.py`, `allocator.py`.

Sources: KIP-595 (Raft), KIP-630 (snapshots), KIP-631 (the controller), KIP-853 (voters), KIP-919
(admin clients of controllers). The rules and their proofs are in docs/protocol.
"""

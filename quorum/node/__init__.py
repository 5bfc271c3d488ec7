"""A running node: the asyncio shells around Raft, the controller's rules and the metadata log.

The shells do the I/O and keep the order of effects. The decisions are in `quorum/raft`,
`quorum/controller` and `quorum/metadata`. Everything runs on the event loop, except what is
submitted to the disk's thread.

Files in reading order:

- `node_core.py`: the parts that every node has; `controller_node.py`: a controller.
- `meta_properties.py`, `metadata_opening.py`, `metadata_mark.py`, `metadata_storage.py`: the data
  directory at a start, and what it must hold.
- `metadata_replica.py`: Raft, the log and the election file; `committed_image.py`: the image of
  what is committed; `snapshot_generator.py`: its snapshots.
- `controller_port.py`, `controller_shell.py`, `controller_queue.py`, `controller_decision.py`:
  requests to the active controller; `voter_admin.py`: those that end in Raft.
- `node_requests.py`: the boundary of messages between nodes; `quorum_links.py`, `voter_probes.py`,
  `node_membership.py`, `generations.py`: the other nodes.
- `describe_configs.py`, `node_settings.py`: settings; `garbage.py`, `allocator.py`: memory.
"""

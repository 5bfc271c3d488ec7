"""This node's copy of the metadata log, and the image of what is committed.

- metadata_replica.py: carries out the effects of Raft in their order. replica_listener.py: the
  owner that it notifies. replica_flushes.py: its flushes.
- metadata_storage.py: the files of the log and of the snapshots. metadata_mark.py: the mark by
  which a loss of the log is noticed. node_settings.py: their settings.
- committed_image.py: the replay of what is committed.
- snapshot_generator.py, received_snapshot.py: own and received snapshots.
"""

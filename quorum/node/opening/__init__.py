"""The start of a node: from a directory on the disk to the core of Raft.

- directory_lock.py: locks the directories, so that no second process uses them.
- meta_properties.py, data_directory.py: the identity of the node, and what a formatted directory
  must have; missing_directory_ids.py: ids for directories of older releases of Kafka;
  bootstrap_file.py: the first records of a new cluster.
- directory_replacement.py: the directory of a rebuilt quorum takes the place of the old one.
- metadata_opening.py: the metadata log, its snapshots and the last vote; a loss of records or votes
  is noticed here.
- raft_creation.py: the Raft core that continues from there.
"""

"""This broker as a follower: some fetchers for each broker that leads a followed partition.

- replica_fetcher_manager.py: all fetchers. replica_fetcher.py: one. partition_fetch_state.py: the
  fetch state of one partition.
"""

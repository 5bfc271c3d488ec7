"""Fetch, as the leader's broker serves it.

- reading.py: the read of one partition. read_replicas.py: the followers to which a leader sends
  consumers (KIP-392).
- consumer_fetches.py, consumer_sessions.py: consumers. replica_sessions.py, replica_session.py:
  followers.
- fetch_session_cache.py: the fetch sessions of both (KIP-227).
"""

"""What several handlers use.

- request_parts.py, result_collector.py: large requests in parts.
- forwarding.py: requests that only the active controller can decide.
- replicas.py: the interface to the replica manager.
"""

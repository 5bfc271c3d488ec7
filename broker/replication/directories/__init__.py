"""The log directories of this broker's replicas.

- replica_placement.py, missing_logs.py: where a replica is opened, and the logs that are missing.
- offline_directories.py: the failure of a directory (KIP-112, KIP-858).
- replica_moves.py, replica_move.py, move_copy.py: moves between directories (KIP-113).
"""

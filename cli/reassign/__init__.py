"""Moves of replicas: `quorate reassign-partitions`, and the requests that other commands share.

- command.py, listing.py: the command, as kafka-reassign-partitions.
- plan.py, drain_plan.py: which replicas go where. Both are pure.
- partition_files.py: the JSON files that list partitions.
- throttles.py, log_dir_moves.py, reassignments.py: the throttles, the moves between directories,
  and the requests to the cluster.
"""

"""`quorate state-changes`: the story of partitions, from the logs of all nodes (merge.py)."""

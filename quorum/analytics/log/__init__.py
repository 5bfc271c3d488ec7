"""Reads a metadata log in slices or record by record, without Spark.

Files in reading order:

- `segments.py`, `first_pass.py`: a log, cut into slices that are read independently.
- `seek.py`, `forward.py`: a place in a log by bisection, and slices planned while they are read.
- `walk.py`: the records in order, in one process.
- `text.py`: words for times, durations and resource types.
- `errors.py`: the exceptions of quorum/analytics.
"""

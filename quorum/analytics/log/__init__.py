"""Reads a metadata log in slices or record by record, without Spark.

Files in reading order:

- `segments.py`, `first_pass.py`: a log, cut into slices that are read independently.
- `seek.py`, `forward.py`: a place in a log by bisection, and slices planned while they are read.
- `files.py`, `remote_files.py`: local files and those of other filesystems.
- `leaders.py`, `agreement.py`: the voters, and the records that several logs of a cluster agree on.
- `places.py`, `commits.py`, `plan.py`: the logs that a user names, and what is committed in them.
- `divergence.py`: places where the logs of a cluster differ.
- `walk.py`: the records in order, in one process.
- `text.py`: words for times, durations and resource types.
- `errors.py`: the exceptions of quorum/analytics.
"""

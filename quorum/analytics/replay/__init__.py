"""Answers about one time or one partition, by a replay of the log in one process, without Spark.

Files in reading order:

- `starts.py`: the snapshots from which a replay can begin.
- `moment.py`: the cluster at one time or offset.
- `story.py`: the history of one partition as sentences.
- `inference.py`: causes that follow from the records where the log does not name them.
"""

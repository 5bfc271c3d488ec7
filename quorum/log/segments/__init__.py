"""The segments of a log.

- segment_list.py, segment.py, indexed_file.py, index.py: from the list down to the file and its
  indexes of offsets and times; scan.py reads a file batch by batch.
- rolling.py, retention.py: when a segment ends, and when it is removed.
- file_removal.py, segment_swap.py, quarantine.py: segments that are deleted, replaced, or set
  aside because they are damaged.
- epochs.py: the start offsets of leader epochs; timestamp_lookup.py: the first record at a time.
"""

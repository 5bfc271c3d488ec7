"""The rules of log compaction, and one cleaning of one log.

A compacted log (cleanup.policy=compact) keeps at least the latest record of each key. Decisions:
which log is cleaned, up to which offset, which records and batches stay, when a tombstone is
removed, and which segments are written into one. Offsets never change, and the order stays.

Everything here is pure or touches the world only through a `Disk`. `broker/logs/log_cleaner.py`
runs it in the thread of long work, in steps, and holds the states of the partitions.

In reading order:

- `cleanable.py`: the range that may be cleaned, and the choice of the log.
- `offset_map.py`: the latest offset of each key, with a bound of its memory.
- `record_spans.py`: the records of a payload as slices.
- `batch_filter.py`: the records and batches that stay; delete horizons; `markers.py`: the place of
  transactions.
- `grouping.py`: the segments that become one; `throttle.py`: the bound of the I/O.
- `segment_source.py`: checked reads of a sealed segment; `cleaning.py`: the two passes over a log.

Sources: KIP-58 and KIP-354 (lags), KIP-534 (delete horizon), and Apache Kafka 4.1's Cleaner.
`docs/protocol/compaction.md` states the rules with their tests.
"""

"""The log: the storage of partitions and of the metadata log, in Apache Kafka's on-disk format.

A log is a sequence of record batches in segment files. The metadata quorum (`quorum/raft`, through
`quorum/node`) and the brokers' partitions (`broker/logs`, `broker/partition`) own logs. The owner
decides when to append, when to flush and when to apply retention. This package decides the
following:

- the validity of a batch, and its place after the log end;
- the part of a log that is durable, and the proof that a completed flush gives;
- after a crash, the end that is cut off (torn, or in a partition not flushed), and the damage that
  is refused because the records may have been acknowledged;
- the position of an offset or a timestamp, and the integrity of the bytes that are read there;
- the segments and snapshots that retention removes.

Inputs are batches with their final offsets and leader epochs, the time, and the files of a `Disk`
(`quorum/seams.py`). Outputs are batches, offsets and the errors of `errors.py`. All modules but
`disk.py` touch the world only through a `Disk`: they have no clock, no event loop and no threads.
Long work is a generator that pauses (`quorum/incremental_work.py`).

Files in reading order:

- `batch.py`, `record.py`: record batches, format v2; `compression.py`: the codecs, bounded;
  `record_framing.py`, `compression_frames.py`: cheap checks of a payload that a client sent.
- `names.py`, `settings.py`, `errors.py`, `disk_failures.py`: file names, settings, errors, and the
  text about a failed disk.
- `log.py`, `log_reader.py`: the log; `append_check.py`, `rolling.py`, `retention.py`: its rules.
- `segment_list.py`, `segment.py`, `indexed_file.py`, `batch_file.py`, `index.py`: segments, from
  the list down to the file and its indexes.
- `epochs.py`: start offsets of leader epochs; `timestamp_lookup.py`: records by time.
- `replacing_log.py`, `segment_swap.py`, `offset_gaps.py`: segments that the log cleaner replaces.
- `flush.py`, `flushed_marker.py`, `group_commit.py`: durability.
- `loading.py`, `recovery.py`, `scan.py`, `leftovers.py`, `quarantine.py`: opening a log.
- `integrity.py`: checks of reads; `verify.py`, `index_check.py`, `check_result.py`: checks of a log
  that is not open.
- `snapshots.py`, `snapshot_reader.py`: snapshot files of the metadata log.
- `checkpoints.py`: small files next to the segments; `file_removal.py`, `archive.py`: files that
  leave a log; `disk.py`: the operating system's disk.

Sources: the formats are those of Apache Kafka (KIP-98, KIP-101, KIP-279, KIP-630). The rules and
their tests are in `docs/protocol/storage-and-recovery.md`, the files in
`docs/protocol/data-directory.md`. Tags such as R45 name historic bugs; `tests/scenarios` explains
them.
"""

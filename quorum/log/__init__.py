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
(`quorum/seams.py`). Outputs are batches, offsets and the errors of `files/errors.py`. All modules
but `disks/disk.py` touch the world only through a `Disk`: they have no clock, no event loop and no
threads. Long work is a generator that pauses (`quorum/incremental_work.py`).

In reading order:

- `batches/`: record batches, format v2, and their records; the codecs, bounded; cheap checks of a
  payload that a client sent.
- `files/`: file names, settings, errors, and the small files next to the segments.
- `log.py`, `log_reader.py`: the log; `append_check.py`: which batches may follow its end.
- `segments/`: segments, from the list down to the file and its indexes; when a segment is rolled,
  removed or replaced; the start offsets of leader epochs; records by time.
- `replacing_log.py`: a log whose segments the log cleaner replaces.
- `flush.py`, `group_commit.py`: durability; `slow_flushes.py`: the line about a slow flush.
- `opening/`: the opening of a log after a clean stop or a crash.
- `checking/`: checks of reads, and of a log that is not open.
- `snapshots/`: snapshot files of the metadata log.
- `disks/`: the operating system's disk.

Sources: the formats are those of Apache Kafka (KIP-98, KIP-101, KIP-279, KIP-630). The rules and
their tests are in `docs/protocol/storage-and-recovery.md`, the files in
`docs/protocol/data-directory.md`. Tags such as R45 name historic bugs; `tests/scenarios` explains
them.
"""

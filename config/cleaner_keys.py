"""The configuration keys of the log cleaner, which compacts partition logs."""

from __future__ import annotations

from quorate.config.key import CLUSTER_WIDE, DAY_MS, MAX_LONG, MIB, Key, Kind, at_least, between

MAX_DOUBLE = 1.7976931348623157e308

CLEANER = (
    Key(
        "log.cleaner.enable",
        Kind.BOOLEAN,
        True,
        "Run the log cleaner, which compacts topics with cleanup.policy=compact.",
    ),
    Key(
        "log.cleaner.threads",
        Kind.INT,
        1,
        "The number of logs that are compacted at the same time. They share one thread of the "
        "process.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.backoff.ms",
        Kind.LONG,
        15_000,
        "The time until the log cleaner looks again for a log to compact, if it found none.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.dedupe.buffer.size",
        Kind.LONG,
        128 * MIB,
        "The memory for the latest offsets of keys, for all logs that are compacted at the same "
        "time. A key takes 200 bytes.",
        at_least(MIB + 1),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.io.buffer.load.factor",
        Kind.DOUBLE,
        0.9,
        "The share of log.cleaner.dedupe.buffer.size that is used.",
        between(0.01, 1),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.io.buffer.size",
        Kind.INT,
        512 * 1024,
        "The memory for the buffers of reads and writes, for all logs that are compacted at the "
        "same time.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.io.max.bytes.per.second",
        Kind.DOUBLE,
        MAX_DOUBLE,
        "The largest rate of the log cleaner's reads and writes together.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.delete.retention.ms",
        Kind.LONG,
        DAY_MS,
        "The time for which a compacted topic keeps delete markers.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.min.compaction.lag.ms",
        Kind.LONG,
        0,
        "The least age at which a record is compacted.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.max.compaction.lag.ms",
        Kind.LONG,
        MAX_LONG,
        "The age of the oldest record not compacted, from which a log is compacted whatever its "
        "share of dirty bytes is.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.min.cleanable.ratio",
        Kind.DOUBLE,
        0.5,
        "The share of dirty bytes above which a log is compacted.",
        between(0, 1),
        CLUSTER_WIDE,
    ),
)
"""All keys of the log cleaner."""

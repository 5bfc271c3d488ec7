"""The configuration keys of partition logs. Most are defaults of topic keys (`topic_keys.py`)."""

from __future__ import annotations

from quorate.config.key import (
    CLUSTER_WIDE,
    MAX_LONG,
    MIB,
    Key,
    Kind,
    Value,
    at_least,
    between,
    one_of,
    some_of,
)
from quorate.config.topic_keys import COMPRESSIONS

BOOLEAN = Kind.BOOLEAN
DOUBLE = Kind.DOUBLE
INT = Kind.INT
LIST = Kind.LIST
LONG = Kind.LONG
STRING = Kind.STRING


def not_zero(value: Value) -> str | None:
    """Check for a time of retention: every negative value means that there is no limit."""
    return None if value != 0 else "-1 or at least 1"


LOG = (
    Key(
        "log.segment.bytes",
        INT,
        1024 * MIB,
        "The size at which a new segment begins.",
        at_least(MIB),
        CLUSTER_WIDE,
    ),
    Key(
        "log.roll.ms",
        LONG,
        None,
        "The age at which a new segment begins.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    Key(
        "log.roll.hours",
        INT,
        168,
        "The age at which a new segment begins, if log.roll.ms is not set.",
        at_least(1),
    ),
    Key(
        "log.roll.jitter.ms",
        LONG,
        None,
        "The bound of the random time by which each segment begins earlier.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.roll.jitter.hours",
        INT,
        0,
        "The same as log.roll.jitter.ms in hours, if that key is not set.",
        at_least(0),
    ),
    Key(
        "log.retention.ms",
        LONG,
        None,
        "The age at which segments are deleted. -1: no limit.",
        not_zero,
        CLUSTER_WIDE,
    ),
    Key(
        "log.retention.minutes",
        INT,
        None,
        "The age at which segments are deleted, if log.retention.ms is not set.",
        not_zero,
    ),
    Key(
        "log.retention.hours",
        INT,
        168,
        "The age at which segments are deleted, if neither ms nor minutes are set.",
        not_zero,
    ),
    Key(
        "log.retention.bytes",
        LONG,
        -1,
        "The size of a partition above which its oldest segments are deleted. -1: no limit.",
        None,
        CLUSTER_WIDE,
    ),
    Key(
        "log.retention.check.interval.ms",
        LONG,
        300_000,
        "The time between two checks for segments to delete.",
        at_least(1),
    ),
    Key(
        "log.cleanup.policy",
        LIST,
        ("delete",),
        "The treatment of old segments: delete, compact, or both.",
        some_of("compact", "delete"),
        CLUSTER_WIDE,
    ),
    Key(
        "log.index.interval.bytes",
        INT,
        4096,
        "The bytes of log between two entries of the offset index.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.index.size.max.bytes",
        INT,
        10 * MIB,
        "The size of an index of a segment at which a new segment begins.",
        at_least(4),
        CLUSTER_WIDE,
    ),
    Key(
        "log.flush.interval.messages",
        LONG,
        MAX_LONG,
        "The number of unflushed records with which an append flushes the log before it is "
        "acknowledged.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    Key(
        "log.flush.interval.ms",
        LONG,
        None,
        "The time since the last flush after which a log is flushed, if "
        "log.flush.scheduler.interval.ms is set. Default: the value of that key.",
        None,
        CLUSTER_WIDE,
    ),
    Key(
        "log.flush.scheduler.interval.ms",
        LONG,
        MAX_LONG,
        "The time between two searches for logs whose last flush is log.flush.interval.ms old.",
    ),
    Key(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "The time between two flushes of all logs, each followed by a write of the recovery "
        "points.",
        at_least(0),
    ),
    Key(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "The time between two writes of the log start offsets.",
        at_least(0),
    ),
    Key(
        "log.segment.delete.delay.ms",
        LONG,
        60_000,
        "The time between the renaming and the removal of a deleted file.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.preallocate",
        BOOLEAN,
        False,
        "Create the file of a new segment with its full size.",
        None,
        CLUSTER_WIDE,
    ),
    Key(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        "The source of a record's timestamp: the producer (CreateTime) or the broker "
        "(LogAppendTime).",
        one_of("CreateTime", "LogAppendTime"),
        CLUSTER_WIDE,
    ),
    Key(
        "log.message.timestamp.before.max.ms",
        LONG,
        MAX_LONG,
        "The greatest time by which the timestamp of the first record of a batch may precede the "
        "broker's clock.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        "The greatest time by which a record's timestamp may exceed the broker's clock.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "message.max.bytes",
        INT,
        1_048_588,
        "The largest record batch that the broker accepts.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "compression.type",
        STRING,
        "producer",
        "The codec of stored batches. producer: that of the producer.",
        one_of(*COMPRESSIONS),
        CLUSTER_WIDE,
    ),
    Key(
        "compression.gzip.level",
        INT,
        -1,
        "The compression level of gzip, if compression.type is gzip.",
        between(1, 9, also=-1),
        CLUSTER_WIDE,
    ),
    Key(
        "compression.lz4.level",
        INT,
        9,
        "The compression level of lz4, if compression.type is lz4.",
        between(1, 17),
        CLUSTER_WIDE,
    ),
    Key(
        "compression.zstd.level",
        INT,
        3,
        "The compression level of zstd, if compression.type is zstd.",
        between(-131072, 22),
        CLUSTER_WIDE,
    ),
)

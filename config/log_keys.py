"""The configuration keys of partition logs. Most are defaults of topic keys (`topic_keys.py`)."""

from __future__ import annotations

from quorate.config.key import (
    CLUSTER_WIDE,
    DAY_MS,
    MAX_LONG,
    MIB,
    Key,
    Kind,
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

LOG = (
    Key("log.segment.bytes", INT, 1024 * MIB, "Segment size.", at_least(MIB), CLUSTER_WIDE),
    Key("log.roll.ms", LONG, None, "Segment age.", None, CLUSTER_WIDE),
    Key("log.roll.hours", INT, 168, "Segment age when log.roll.ms is not set.", at_least(1)),
    Key("log.roll.jitter.ms", LONG, None, "Random part of segment age.", None, CLUSTER_WIDE),
    Key("log.roll.jitter.hours", INT, 0, "The same, in hours.", at_least(0)),
    Key("log.retention.ms", LONG, None, "Age of old segments; -1: no limit.", None, CLUSTER_WIDE),
    Key("log.retention.minutes", INT, None, "The same, in minutes."),
    Key("log.retention.hours", INT, 168, "The same, in hours."),
    Key("log.retention.bytes", LONG, -1, "Size of a partition; -1: no limit.", None, CLUSTER_WIDE),
    Key("log.retention.check.interval.ms", LONG, 300_000, "Time between checks.", at_least(1)),
    Key(
        "log.cleanup.policy",
        LIST,
        ("delete",),
        "delete, compact or both.",
        some_of("compact", "delete"),
        CLUSTER_WIDE,
    ),
    Key(
        "log.index.interval.bytes",
        INT,
        4096,
        "Log bytes between index entries.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.index.size.max.bytes",
        INT,
        10 * MIB,
        "Largest offset index.",
        at_least(4),
        CLUSTER_WIDE,
    ),
    Key(
        "log.flush.interval.messages",
        LONG,
        MAX_LONG,
        "Records between forced fsyncs.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    Key("log.flush.interval.ms", LONG, None, "Time between forced fsyncs.", None, CLUSTER_WIDE),
    Key("log.flush.scheduler.interval.ms", LONG, MAX_LONG, "Time between checks for it."),
    Key(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "Time between recovery points.",
        at_least(0),
    ),
    Key(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        "Time between log start offset checkpoints.",
        at_least(0),
    ),
    Key(
        "log.segment.delete.delay.ms",
        LONG,
        60_000,
        "Time between renaming a file away and removing it.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key("log.preallocate", BOOLEAN, False, "Allocate segments whole.", None, CLUSTER_WIDE),
    Key(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        "Whose clock stamps a record.",
        one_of("CreateTime", "LogAppendTime"),
        CLUSTER_WIDE,
    ),
    Key(
        "log.message.timestamp.before.max.ms",
        LONG,
        MAX_LONG,
        "How far in the past a record may be.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        "How far in the future a record may be.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.delete.retention.ms",
        LONG,
        DAY_MS,
        "How long compaction keeps delete markers.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        "Earliest compaction of a record.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        MAX_LONG,
        "Latest compaction of a record.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    Key(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        "Dirty share from which a log is compacted.",
        between(0, 1),
        CLUSTER_WIDE,
    ),
    Key("message.max.bytes", INT, 1_048_588, "Largest batch.", at_least(0), CLUSTER_WIDE),
    Key(
        "compression.type",
        STRING,
        "producer",
        "Codec of stored batches.",
        one_of(*COMPRESSIONS),
        CLUSTER_WIDE,
    ),
    Key(
        "compression.gzip.level",
        INT,
        -1,
        "Level of gzip.",
        between(1, 9, also=-1),
        CLUSTER_WIDE,
    ),
    Key("compression.lz4.level", INT, 9, "Level of lz4.", between(1, 17), CLUSTER_WIDE),
    Key("compression.zstd.level", INT, 3, "Level of zstd.", between(-131072, 22), CLUSTER_WIDE),
)

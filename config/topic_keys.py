"""The configuration keys of topics, with the checks of CreateTopics and IncrementalAlterConfigs.

Names, types, defaults and ranges are those of Kafka 4.1. A test compares them with Kafka's own
table. The remote-storage keys are left out, because there is no tiered storage. Setting one of them
is rejected as an unknown key.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.config.did_you_mean import did_you_mean
from quorate.config.key import (
    MAX_LONG,
    ConfigError,
    Key,
    Kind,
    Value,
    at_least,
    between,
    one_of,
    some_of,
    table,
    throttled_replicas,
)

COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
"""The values that Kafka allows for compression.type."""
HOUR_MS = 3_600_000
MINUTE_MS = 60_000


def same(node_key: str) -> tuple[tuple[str, int], ...]:
    """Return the synonyms of a topic key whose default is the value of one node key."""
    return ((node_key, 1),)


TOPIC_KEYS = table(
    Key(
        "cleanup.policy",
        Kind.LIST,
        ("delete",),
        "The treatment of old segments: delete, compact, or both.",
        some_of("compact", "delete"),
        synonyms=same("log.cleanup.policy"),
    ),
    Key(
        "compression.gzip.level",
        Kind.INT,
        -1,
        "The compression level of gzip, if compression.type is gzip.",
        between(1, 9, also=-1),
        synonyms=same("compression.gzip.level"),
    ),
    Key(
        "compression.lz4.level",
        Kind.INT,
        9,
        "The compression level of lz4, if compression.type is lz4.",
        between(1, 17),
        synonyms=same("compression.lz4.level"),
    ),
    Key(
        "compression.zstd.level",
        Kind.INT,
        3,
        "The compression level of zstd, if compression.type is zstd.",
        between(-131072, 22),
        synonyms=same("compression.zstd.level"),
    ),
    Key(
        "compression.type",
        Kind.STRING,
        "producer",
        "The codec of stored batches. producer: that of the producer.",
        one_of(*COMPRESSIONS),
        synonyms=same("compression.type"),
    ),
    Key(
        "delete.retention.ms",
        Kind.LONG,
        86_400_000,
        "The time for which a compacted topic keeps delete markers.",
        at_least(0),
        synonyms=same("log.cleaner.delete.retention.ms"),
    ),
    Key(
        "file.delete.delay.ms",
        Kind.LONG,
        60_000,
        "The time between the renaming and the removal of a deleted segment.",
        at_least(0),
        synonyms=same("log.segment.delete.delay.ms"),
    ),
    Key(
        "flush.messages",
        Kind.LONG,
        MAX_LONG,
        "The number of unflushed records with which an append flushes the log before it is "
        "acknowledged.",
        at_least(1),
        synonyms=same("log.flush.interval.messages"),
    ),
    Key(
        "flush.ms",
        Kind.LONG,
        MAX_LONG,
        "The time since the last flush after which the log is flushed, if "
        "log.flush.scheduler.interval.ms is set.",
        at_least(0),
        synonyms=(("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    ),
    Key(
        "follower.replication.throttled.replicas",
        Kind.LIST,
        (),
        "The replicas that follower.replication.throttled.rate applies to, or * for all.",
        throttled_replicas,
    ),
    Key(
        "leader.replication.throttled.replicas",
        Kind.LIST,
        (),
        "The replicas that leader.replication.throttled.rate applies to, or * for all.",
        throttled_replicas,
    ),
    Key(
        "index.interval.bytes",
        Kind.INT,
        4096,
        "The bytes of log between two entries of the offset index.",
        at_least(0),
        synonyms=same("log.index.interval.bytes"),
    ),
    Key(
        "internal.segment.bytes",
        Kind.INT,
        None,
        "For tests: segment.bytes without its lower bound.",
        internal=True,
    ),
    Key(
        "max.compaction.lag.ms",
        Kind.LONG,
        MAX_LONG,
        "The age of the oldest record not compacted, from which the log is compacted whatever its "
        "share of dirty bytes is.",
        at_least(1),
        synonyms=same("log.cleaner.max.compaction.lag.ms"),
    ),
    Key(
        "max.message.bytes",
        Kind.INT,
        1_048_588,
        "The largest record batch that the topic accepts.",
        at_least(0),
        synonyms=same("message.max.bytes"),
    ),
    Key(
        "message.timestamp.after.max.ms",
        Kind.LONG,
        HOUR_MS,
        "The greatest time by which a record's timestamp may exceed the broker's clock.",
        at_least(0),
        synonyms=same("log.message.timestamp.after.max.ms"),
    ),
    Key(
        "message.timestamp.before.max.ms",
        Kind.LONG,
        MAX_LONG,
        "The greatest time by which the timestamp of the first record of a batch may precede the "
        "broker's clock.",
        at_least(0),
        synonyms=same("log.message.timestamp.before.max.ms"),
    ),
    Key(
        "message.timestamp.type",
        Kind.STRING,
        "CreateTime",
        "The source of a record's timestamp: the producer (CreateTime) or the broker "
        "(LogAppendTime).",
        one_of("CreateTime", "LogAppendTime"),
        synonyms=same("log.message.timestamp.type"),
    ),
    Key(
        "min.cleanable.dirty.ratio",
        Kind.DOUBLE,
        0.5,
        "The share of dirty bytes above which the log is compacted.",
        between(0, 1),
        synonyms=same("log.cleaner.min.cleanable.ratio"),
    ),
    Key(
        "min.compaction.lag.ms",
        Kind.LONG,
        0,
        "The least age at which a record is compacted.",
        at_least(0),
        synonyms=same("log.cleaner.min.compaction.lag.ms"),
    ),
    Key(
        "min.insync.replicas",
        Kind.INT,
        1,
        "The smallest ISR with which writes with acks=all are accepted.",
        at_least(1),
        synonyms=same("min.insync.replicas"),
    ),
    Key(
        "preallocate",
        Kind.BOOLEAN,
        False,
        "Create the file of a new segment with its full size.",
        synonyms=same("log.preallocate"),
    ),
    Key(
        "retention.bytes",
        Kind.LONG,
        -1,
        "The size of a partition above which its oldest segments are deleted. -1: no limit.",
        synonyms=same("log.retention.bytes"),
    ),
    Key(
        "retention.ms",
        Kind.LONG,
        604_800_000,
        "The age at which segments are deleted. -1: no limit.",
        at_least(-1),
        synonyms=(
            ("log.retention.ms", 1),
            ("log.retention.minutes", MINUTE_MS),
            ("log.retention.hours", HOUR_MS),
        ),
    ),
    Key(
        "segment.bytes",
        Kind.INT,
        1_073_741_824,
        "The size at which a new segment begins.",
        at_least(1_048_576),
        synonyms=same("log.segment.bytes"),
    ),
    Key(
        "segment.index.bytes",
        Kind.INT,
        10_485_760,
        "The size of an index of a segment at which a new segment begins.",
        at_least(4),
        synonyms=same("log.index.size.max.bytes"),
    ),
    Key(
        "segment.jitter.ms",
        Kind.LONG,
        0,
        "The bound of the random time by which each segment begins earlier.",
        at_least(0),
        synonyms=(("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
    ),
    Key(
        "segment.ms",
        Kind.LONG,
        604_800_000,
        "The age at which a new segment begins.",
        at_least(1),
        synonyms=(("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
    ),
    Key(
        "unclean.leader.election.enable",
        Kind.BOOLEAN,
        False,
        "Elect a leader from outside the ISR, with loss of records, if no ISR member is alive.",
        synonyms=same("unclean.leader.election.enable"),
    ),
    Key(
        "unclean.recovery.strategy",
        Kind.STRING,
        "none",
        "The way to elect a leader if no replica of the ISR or ELR is alive (KIP-966): none elects "
        "only the last leader, balanced the longest log once the last leader is alive, aggressive "
        "the longest live log. unclean.leader.election.enable=true means aggressive.",
        one_of("none", "balanced", "aggressive"),
        synonyms=same("unclean.recovery.strategy"),
    ),
)
"""All keys of a topic by name."""


def topic_key(name: str) -> Key:
    """Return the key. Raise ConfigError if there is no such topic key."""
    key = TOPIC_KEYS.get(name)
    if key is None:
        hint = did_you_mean(name, TOPIC_KEYS)
        raise ConfigError(f"Unknown topic config name: {name}{'.' if hint else ''}{hint}")
    return key


def valid_topic_configs(stored: Mapping[str, str]) -> dict[str, str]:
    """Return those stored configs that have a known key and an allowed value. A log of Apache
    Kafka or of an earlier version may hold others."""
    valid = {}
    for name, text in stored.items():
        try:
            topic_key(name).parse(text)
        except ConfigError:
            continue
        valid[name] = text
    return valid


def validate_topic_configs(configs: Mapping[str, str]) -> None:
    """Raise ConfigError if a key is unknown, or if a value is not allowed by itself or with the
    others.

    The only rule about two keys is that min.compaction.lag.ms <= max.compaction.lag.ms. It applies
    if `configs` holds both. Defaults are not considered."""
    values = {name: topic_key(name).parse(text) for name, text in configs.items()}
    low, high = values.get("min.compaction.lag.ms"), values.get("max.compaction.lag.ms")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise ConfigError(
            f"min.compaction.lag.ms: value '{low}' must be at most max.compaction.lag.ms ({high})"
        )


def topic_defaults(node: Mapping[str, Value]) -> dict[str, Value]:
    """Return the default of every topic key on a node with this configuration."""
    return {name: topic_default(key, node) for name, key in TOPIC_KEYS.items()}


def topic_default(key: Key, node: Mapping[str, Value]) -> Value:
    """Return the default of a topic key: the value of the first synonym that has one in `node`, or
    Kafka's default. The defaults of node keys are in `node`, too."""
    for name, factor in key.synonyms:
        value = node.get(name)
        if value is not None:
            # -1 means "no limit" in every unit, so it is not multiplied. A bool is an int, too.
            return value * factor if type(value) is int and value >= 0 else value
    return key.default


def effective_topic_configs(
    overrides: Mapping[str, str], defaults: Mapping[str, Value]
) -> dict[str, Value]:
    """Return the typed configs of one topic. Overrides that are not topic keys are left out.

    Raise ConfigError if the text of an override is not allowed."""
    set_here = {n: TOPIC_KEYS[n].parse(text) for n, text in overrides.items() if n in TOPIC_KEYS}
    return {**defaults, **set_here}

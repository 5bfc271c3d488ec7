"""The configuration keys of topics' replicas, consumer groups, and Quorate's own features."""

from __future__ import annotations

from quorate.config.key import (
    CLUSTER_WIDE,
    DAY_MS,
    MAX_INT,
    MIB,
    Key,
    Kind,
    at_least,
    host_names,
)

BOOLEAN = Kind.BOOLEAN
INT = Kind.INT
LIST = Kind.LIST
LONG = Kind.LONG
SHORT = Kind.SHORT
STRING = Kind.STRING

REPLICATION = (
    Key("num.partitions", INT, 1, "Partitions of a topic that names none.", at_least(1)),
    Key("default.replication.factor", INT, 1, "Replicas of a topic that names none."),
    Key("min.insync.replicas", INT, 1, "Smallest ISR for acks=all.", at_least(1), CLUSTER_WIDE),
    Key("auto.create.topics.enable", BOOLEAN, True, "Metadata requests create topics."),
    Key("delete.topic.enable", BOOLEAN, True, "Topics may be deleted."),
    Key(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Elect from outside the ISR when no member is left.",
        None,
        CLUSTER_WIDE,
    ),
    Key(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        "Time between looks for partitions that need it.",
        at_least(1),
    ),
    Key("auto.leader.rebalance.enable", BOOLEAN, True, "Leaderships return to preferred leaders."),
    Key("leader.imbalance.check.interval.seconds", LONG, 300, "How often.", at_least(1)),
    Key("controlled.shutdown.enable", BOOLEAN, True, "Hand leaderships over before stopping."),
    Key("num.replica.fetchers", INT, 1, "Fetchers per source broker.", at_least(1), CLUSTER_WIDE),
    Key("replica.lag.time.max.ms", LONG, 30_000, "Lag that costs the place in the ISR."),
    Key("replica.fetch.max.bytes", INT, MIB, "Bytes per partition and fetch.", at_least(0)),
    Key("replica.fetch.min.bytes", INT, 1, "Bytes a fetch waits for."),
    Key("replica.fetch.wait.max.ms", INT, 500, "How long it waits."),
    Key("replica.fetch.backoff.ms", INT, 1000, "Wait after a failed fetch.", at_least(0)),
    Key("replica.fetch.response.max.bytes", INT, 10 * MIB, "Bytes per fetch.", at_least(0)),
    Key("replica.socket.timeout.ms", INT, 30_000, "How long a fetch may take."),
    Key("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, "Time between checkpoints."),
    Key("fetch.max.bytes", INT, 55 * MIB, "Bytes per consumer fetch.", at_least(1024)),
    Key(
        "max.incremental.fetch.session.cache.slots", INT, 1000, "Fetch sessions kept.", at_least(0)
    ),
    Key(
        "producer.id.expiration.ms",
        INT,
        DAY_MS,
        "Idle time after which a producer's sequences are forgotten.",
        at_least(1),
        CLUSTER_WIDE,
    ),
)

GROUPS = (
    Key("group.min.session.timeout.ms", INT, 6000, "Shortest session of a group member."),
    Key("group.max.session.timeout.ms", INT, 1_800_000, "Longest session of a group member."),
    Key(
        "group.initial.rebalance.delay.ms",
        INT,
        0,
        "How long the first rebalance of a new group waits for more members.",
        kafka_default=3000,
    ),
    Key("group.max.size", INT, MAX_INT, "Members per group.", at_least(1)),
    Key("offset.metadata.max.bytes", INT, 4096, "Largest metadata with a committed offset."),
    Key("offsets.retention.minutes", INT, 10_080, "Age of a dead group's offsets.", at_least(1)),
    Key("offsets.topic.num.partitions", INT, 50, "Partitions of __consumer_offsets.", at_least(1)),
    Key("offsets.topic.replication.factor", SHORT, 3, "Its replicas.", at_least(1)),
    Key("offsets.topic.segment.bytes", INT, 100 * MIB, "Its segment size.", at_least(1)),
)

OURS = (
    Key(
        "quorate.queued.max.response.bytes",
        LONG,
        256 * MIB,
        "Memory for responses that clients do not read, of all connections.",
        at_least(1),
    ),
    Key(
        "quorate.fetch.sessions.max.bytes",
        LONG,
        128 * MIB,
        "Memory for the fetch sessions of consumers.",
        at_least(1),
    ),
    Key(
        "quorate.http.host.names",
        LIST,
        (),
        "More names of the node that HTTP requests may have as their Host.",
        host_names,
    ),
    Key(
        "quorate.hints.enable",
        BOOLEAN,
        True,
        "A closed connection starts early what a timeout would start late.",
    ),
    Key(
        "quorate.cluster.file",
        STRING,
        None,
        "The cluster.json of `quorate up` in which the node keeps its pid.",
    ),
)

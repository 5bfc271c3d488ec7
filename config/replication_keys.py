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
    between,
    host_names,
    one_of,
)

BOOLEAN = Kind.BOOLEAN
INT = Kind.INT
LIST = Kind.LIST
LONG = Kind.LONG
SHORT = Kind.SHORT
STRING = Kind.STRING

REPLICATION = (
    Key(
        "num.partitions",
        INT,
        1,
        "The number of partitions of a topic that is created without a number.",
        at_least(1),
    ),
    Key(
        "default.replication.factor",
        INT,
        1,
        "The number of replicas of a topic that is created without a number.",
    ),
    Key(
        "min.insync.replicas",
        INT,
        1,
        "The smallest ISR with which writes with acks=all are accepted.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    Key(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Metadata requests for missing topics create these topics.",
    ),
    Key("delete.topic.enable", BOOLEAN, True, "Topics may be deleted."),
    Key(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Elect a leader from outside the ISR, with loss of records, if no ISR member is alive.",
        None,
        CLUSTER_WIDE,
    ),
    Key(
        "unclean.recovery.strategy",
        STRING,
        "none",
        "The way to elect a leader if no replica of the ISR or ELR is alive (KIP-966): none elects "
        "only the last leader, balanced the longest log once the last leader is alive, aggressive "
        "the longest live log. unclean.leader.election.enable=true means aggressive.",
        one_of("none", "balanced", "aggressive"),
        CLUSTER_WIDE,
    ),
    Key(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        "The time between two searches for partitions that need an unclean election.",
        at_least(1),
    ),
    Key(
        "auto.leader.rebalance.enable", BOOLEAN, True, "Give leaderships back to preferred leaders."
    ),
    Key(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        "The time between two searches for partitions without their preferred leader.",
        at_least(1),
    ),
    Key(
        "leader.imbalance.per.broker.percentage",
        INT,
        0,
        "The share of the partitions with the same preferred leader, in percent, that may have "
        "another leader. Leaderships return when it is exceeded; 0 returns all of them.",
        between(0, 100),
    ),
    Key(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        "Give up all leaderships before the broker stops.",
    ),
    Key(
        "num.replica.fetchers",
        INT,
        1,
        "The number of connections over which a broker fetches from each source broker.",
        between(1, 1024),
        CLUSTER_WIDE,
    ),
    Key(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        "The time after which a follower that has not caught up leaves the ISR.",
    ),
    Key(
        "replica.fetch.max.bytes",
        INT,
        MIB,
        "The most bytes of one partition in one follower fetch.",
        at_least(0),
    ),
    Key("replica.fetch.min.bytes", INT, 1, "The bytes for which a follower fetch waits."),
    Key(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        "The longest time that a follower fetch waits for bytes.",
    ),
    Key(
        "replica.fetch.backoff.ms",
        INT,
        1000,
        "The wait of a follower after a failed fetch.",
        at_least(0),
    ),
    Key(
        "replica.fetch.response.max.bytes",
        INT,
        10 * MIB,
        "The most bytes of one follower fetch.",
        at_least(0),
    ),
    Key(
        "replica.selector.class",
        STRING,
        None,
        "The rule by which a leader sends consumers to followers: Kafka's RackAwareReplicaSelector "
        "or quorate.LeastLoadedReplicaSelector. Without one, consumers read from the leader.",
        one_of(
            "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "quorate.LeastLoadedReplicaSelector",
        ),
    ),
    Key(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        "The time that a follower waits for the response to a fetch.",
    ),
    Key(
        "replication.quota.window.num",
        INT,
        11,
        "The number of windows over which the throttles of replication measure a rate.",
        at_least(1),
    ),
    Key(
        "replication.quota.window.size.seconds",
        INT,
        1,
        "The length of one window of the throttles of replication.",
        at_least(1),
    ),
    Key(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        "The number of windows over which the throttle of moves between log directories measures "
        "its rate.",
        at_least(1),
    ),
    Key(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        "The length of one window of the throttle of moves between log directories.",
        at_least(1),
    ),
    Key(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "The time between two writes of the high watermarks.",
    ),
    Key("fetch.max.bytes", INT, 55 * MIB, "The most bytes of one consumer fetch.", at_least(1024)),
    Key(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        "The most fetch sessions that the broker keeps.",
        at_least(0),
    ),
    Key(
        "producer.id.expiration.ms",
        INT,
        DAY_MS,
        "The idle time after which the state of an idempotent producer is removed.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    Key(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        "The time between two searches for the states of idle producers.",
        at_least(1),
    ),
)

GROUPS = (
    Key(
        "group.min.session.timeout.ms", INT, 6000, "The shortest session timeout of a group member."
    ),
    Key(
        "group.max.session.timeout.ms",
        INT,
        1_800_000,
        "The longest session timeout of a group member.",
    ),
    Key(
        "group.initial.rebalance.delay.ms",
        INT,
        0,
        "The time that the first rebalance of a new group waits for more members.",
        kafka_default=3000,
    ),
    Key("group.max.size", INT, MAX_INT, "The most members of a group.", at_least(1)),
    Key("offset.metadata.max.bytes", INT, 4096, "The largest metadata of a committed offset."),
    Key(
        "offsets.retention.minutes",
        INT,
        10_080,
        "The time after which the committed offsets of an empty group are removed.",
        at_least(1),
    ),
    Key(
        "offsets.retention.check.interval.ms",
        LONG,
        600_000,
        "The time between two searches for committed offsets to remove.",
        at_least(1),
    ),
    Key(
        "offsets.topic.num.partitions",
        INT,
        50,
        "The number of partitions of __consumer_offsets.",
        at_least(1),
    ),
    Key(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        "The number of replicas of __consumer_offsets.",
        at_least(1),
    ),
    Key(
        "offsets.topic.segment.bytes",
        INT,
        100 * MIB,
        "The segment size of __consumer_offsets.",
        at_least(1),
    ),
)

OURS = (
    Key(
        "quorate.queued.max.response.bytes",
        LONG,
        256 * MIB,
        "The memory for responses that clients have not read, of all connections.",
        at_least(1),
    ),
    Key(
        "quorate.fetch.sessions.max.bytes",
        LONG,
        128 * MIB,
        "The memory for the fetch sessions of consumers.",
        at_least(1),
    ),
    Key(
        "quorate.http.host.names",
        LIST,
        (),
        "More host names that HTTP requests may name in their Host header.",
        host_names,
    ),
    Key(
        "quorate.hints.enable",
        BOOLEAN,
        True,
        "Fence brokers and start elections on closed connections, before a timeout.",
    ),
    Key(
        "quorate.state.change.log.enable",
        BOOLEAN,
        False,
        "Log a line for each partition change that this broker acts on (logger state.change).",
    ),
    Key(
        "metrics.per.partition",
        INT,
        1000,
        "The most partitions, topics, committed offsets of groups, and clients with a quota each "
        "that have samples of their own in /metrics.",
        between(0, 100_000),
    ),
    Key(
        "log.level",
        STRING,
        "INFO",
        "The lowest level of the lines that the node writes to its log.",
        one_of("DEBUG", "INFO", "WARNING", "ERROR"),
    ),
    Key(
        "log.format",
        STRING,
        "text",
        "The format of the node's log: text, or json with one object for each line.",
        one_of("text", "json"),
    ),
    Key(
        "quorate.cluster.file",
        STRING,
        None,
        "The cluster.json of `quorate up` in which the node records its pid.",
    ),
)

"""The configuration keys of a node: Kafka's, and our own, which begin with `quorate.`.

Names, types, defaults and units are Kafka's. A default that differs from Kafka's has a
`kafka_default` (docs/differences.md). Other keys of Kafka are kept and reported, without effect.
"""

from __future__ import annotations

from quorate.config.key import (
    MAX_INT,
    MAX_LONG,
    Key,
    Kind,
    Update,
    at_least,
    between,
    connections_by_address,
    host_names,
    one_of,
    some_of,
    table,
)
from quorate.config.topic_keys import COMPRESSIONS

BOOLEAN, STRING, INT, LONG = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LONG
SHORT, DOUBLE, LIST = Kind.SHORT, Kind.DOUBLE, Kind.LIST
CLUSTER_WIDE = Update.CLUSTER_WIDE
MIB = 1_048_576
DAY_MS = 86_400_000
PROTOCOLS = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"

IDENTITY = (
    Key("process.roles", LIST, None, "What the node is.", some_of("broker", "controller")),
    Key("node.id", INT, None, "The node's id; broker.id is its old name.", at_least(0)),
    Key("broker.rack", STRING, None, "Rack of the broker, for placement."),
    Key("log.dir", STRING, "/tmp/kafka-logs", "Data directory when log.dirs is not set."),
    Key("log.dirs", LIST, None, "The data directory; one per node."),
    Key("metadata.log.dir", STRING, None, "Metadata log's directory; default: the data directory."),
)

NETWORK = (
    Key("listeners", STRING, "PLAINTEXT://:9092", "NAME://host:port, ... that the node binds."),
    Key("advertised.listeners", STRING, None, "What clients are told; default: listeners."),
    Key("listener.security.protocol.map", STRING, PROTOCOLS, "Listener name to protocol."),
    Key("inter.broker.listener.name", STRING, None, "Listener of the brokers among themselves."),
    Key("controller.listener.names", LIST, (), "Names of the controllers' listeners."),
    Key("socket.request.max.bytes", INT, 100 * MIB, "Largest request taken.", at_least(1)),
    Key("socket.listen.backlog.size", INT, 50, "Connections waiting for accept.", at_least(1)),
    Key("socket.send.buffer.bytes", INT, 102_400, "SO_SNDBUF; -1: the system's."),
    Key("socket.receive.buffer.bytes", INT, 102_400, "SO_RCVBUF; -1: the system's."),
    Key("max.connections", INT, MAX_INT, "Connections per node.", at_least(0), CLUSTER_WIDE),
    Key(
        "max.connections.per.ip",
        INT,
        MAX_INT,
        "Connections per address.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "address:connections,... with numbers of their own.",
        connections_by_address,
        CLUSTER_WIDE,
    ),
    Key(
        "max.connection.creation.rate",
        INT,
        MAX_INT,
        "New connections per second.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key("connections.max.idle.ms", LONG, 600_000, "Idle connections are closed after this."),
    Key(
        "queued.max.requests",
        INT,
        500,
        "Requests that may wait beyond five of each connection.",
        at_least(1),
    ),
    Key(
        "queued.max.request.bytes",
        LONG,
        256 * MIB,
        "Memory for requests that are incomplete or in flight, of all connections; -1: no limit.",
        between(1, MAX_LONG, also=-1),
        kafka_default=-1,
    ),
    Key("request.timeout.ms", INT, 30_000, "How long a node waits for another node's answer."),
)

QUORUM = (
    Key("controller.quorum.voters", LIST, (), "The voters: id@host:port,..."),
    Key(
        "controller.quorum.auto.join.enable",
        BOOLEAN,
        False,
        "A controller that has caught up asks to become a voter.",
    ),
    Key("controller.quorum.bootstrap.servers", LIST, (), "host:port,... that know the voters."),
    Key("controller.quorum.election.timeout.ms", INT, 1000, "Wait for votes.", at_least(0)),
    Key("controller.quorum.fetch.timeout.ms", INT, 2000, "Silence that ends a term.", at_least(0)),
    Key("controller.quorum.election.backoff.max.ms", INT, 1000, "Cap of backoff.", at_least(0)),
    Key(
        "controller.quorum.append.linger.ms",
        INT,
        0,
        "How long the leader gathers records before it appends them.",
        at_least(0),
        kafka_default=25,
    ),
    Key("controller.quorum.request.timeout.ms", INT, 2000, "Wait for a voter.", at_least(0)),
    Key("controller.quorum.retry.backoff.ms", INT, 20, "Wait before a retry.", at_least(0)),
    Key("broker.heartbeat.interval.ms", INT, 2000, "Time between two heartbeats.", at_least(1)),
    Key("broker.session.timeout.ms", INT, 9000, "Silence that fences a broker.", at_least(1)),
    Key("initial.broker.registration.timeout.ms", INT, 60_000, "Registration gives up then."),
    Key("metadata.log.segment.bytes", INT, 1024 * MIB, "Metadata segment size.", at_least(8 * MIB)),
    Key(
        "internal.metadata.log.segment.bytes",
        INT,
        None,
        "For tests: metadata.log.segment.bytes without its lower bound.",
    ),
    Key("metadata.log.segment.ms", LONG, 7 * DAY_MS, "Metadata segment age."),
    Key("metadata.max.idle.interval.ms", INT, 500, "NoOp record when idle; 0: off.", at_least(0)),
    Key("metadata.max.retention.bytes", LONG, 100 * MIB, "Metadata kept at least, bytes."),
    Key("metadata.max.retention.ms", LONG, 7 * DAY_MS, "Metadata kept at least, age."),
    Key(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20 * MIB,
        "Records after which a snapshot is written.",
        at_least(1),
    ),
    Key(
        "quorate.metadata.archive.dir",
        STRING,
        None,
        "Where metadata segments and snapshots go that retention lets go of; default: deleted.",
    ),
    Key(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        3_600_000,
        "Time after which a snapshot is written; 0: off.",
        at_least(0),
    ),
)

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

NODE_KEYS = table(*IDENTITY, *NETWORK, *QUORUM, *LOG, *REPLICATION, *GROUPS, *OURS)
ALIASES = {"broker.id": "node.id"}

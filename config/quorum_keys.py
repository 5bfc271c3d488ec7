"""The configuration keys of the metadata quorum: elections, broker sessions, metadata log."""

from __future__ import annotations

from quorate.config.key import DAY_MS, MIB, Key, Kind, at_least

BOOLEAN = Kind.BOOLEAN
INT = Kind.INT
LIST = Kind.LIST
LONG = Kind.LONG
STRING = Kind.STRING

QUORUM = (
    Key("controller.quorum.voters", LIST, (), "The static voters, as id@host:port,..."),
    Key(
        "controller.quorum.auto.join.enable",
        BOOLEAN,
        False,
        "A controller that has caught up asks to become a voter (KIP-853).",
    ),
    Key(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        "Controllers from which the node learns the voters, as host:port,...",
    ),
    Key(
        "controller.quorum.election.timeout.ms",
        INT,
        1000,
        "The time that a candidate waits for votes.",
        at_least(0),
    ),
    Key(
        "controller.quorum.fetch.timeout.ms",
        INT,
        2000,
        "The time without contact to the leader after which a voter starts an election.",
        at_least(0),
    ),
    Key(
        "controller.quorum.election.backoff.max.ms",
        INT,
        1000,
        "The longest random wait between two elections.",
        at_least(0),
    ),
    Key(
        "controller.quorum.append.linger.ms",
        INT,
        0,
        "The time that a request to the controller waits for others, so that their records are "
        "appended together.",
        at_least(0),
        kafka_default=25,
    ),
    Key(
        "controller.quorum.request.timeout.ms",
        INT,
        2000,
        "The time that a node waits for the response of a controller to a Raft request. A broker "
        "waits as long for a sign of life of a former leader that has not answered its requests.",
        at_least(0),
    ),
    Key(
        "controller.quorum.retry.backoff.ms",
        INT,
        20,
        "The wait before a Raft request is sent again.",
        at_least(0),
    ),
    Key(
        "broker.heartbeat.interval.ms",
        INT,
        2000,
        "The time between two heartbeats of a broker.",
        at_least(1),
    ),
    Key(
        "broker.session.timeout.ms",
        INT,
        9000,
        "The time without a heartbeat after which a broker is fenced.",
        at_least(1),
    ),
    Key(
        "initial.broker.registration.timeout.ms",
        INT,
        60_000,
        "The time after which a broker gives up its registration and stops.",
    ),
    Key(
        "log.dir.failure.timeout.ms",
        LONG,
        30_000,
        "The time after which a broker stops whose failed log directory the controller does not "
        "take note of.",
        at_least(1),
    ),
    Key(
        "metadata.log.segment.bytes",
        INT,
        1024 * MIB,
        "The size at which a new metadata segment begins.",
        at_least(8 * MIB),
    ),
    Key(
        "internal.metadata.log.segment.bytes",
        INT,
        None,
        "For tests: metadata.log.segment.bytes without its lower bound.",
    ),
    Key(
        "metadata.log.segment.ms",
        LONG,
        7 * DAY_MS,
        "The age at which a new metadata segment begins.",
        at_least(1),
    ),
    Key(
        "metadata.max.idle.interval.ms",
        INT,
        500,
        "The time without a record after which the active controller writes a no-op record. "
        "0: never.",
        at_least(0),
    ),
    Key(
        "metadata.max.retention.bytes",
        LONG,
        100 * MIB,
        "The size up to which metadata segments and snapshots are kept.",
    ),
    Key(
        "metadata.max.retention.ms",
        LONG,
        7 * DAY_MS,
        "The age up to which metadata segments and snapshots are kept.",
    ),
    Key(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20 * MIB,
        "The bytes of records after which a snapshot is written.",
        at_least(1),
    ),
    Key(
        "quorate.metadata.archive.dir",
        STRING,
        None,
        "The directory that receives metadata segments and snapshots whose retention has "
        "ended. Default: they are deleted.",
    ),
    Key(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        3_600_000,
        "The time after which a snapshot is written. 0: only the bytes of records count.",
        at_least(0),
    ),
)

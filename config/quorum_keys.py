"""The configuration keys of the metadata quorum: elections, broker sessions, metadata log."""

from __future__ import annotations

from quorate.config.key import DAY_MS, MIB, Key, Kind, at_least

BOOLEAN = Kind.BOOLEAN
INT = Kind.INT
LIST = Kind.LIST
LONG = Kind.LONG
STRING = Kind.STRING

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

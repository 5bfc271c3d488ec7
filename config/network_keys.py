"""The configuration keys for a node's identity, its directories, its listeners and its limits."""

from __future__ import annotations

from quorate.config.key import (
    CLUSTER_WIDE,
    MAX_INT,
    MAX_LONG,
    MIB,
    Key,
    Kind,
    at_least,
    between,
    connections_by_address,
    some_of,
)

INT = Kind.INT
LIST = Kind.LIST
LONG = Kind.LONG
STRING = Kind.STRING
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

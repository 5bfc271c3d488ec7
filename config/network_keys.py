"""The configuration keys for a node's identity, its directories, its listeners and its limits."""

from __future__ import annotations

from quorate.config.key import (
    CLUSTER_WIDE,
    MAX_INT,
    MAX_LONG,
    MIB,
    Key,
    Kind,
    Value,
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

MAX_RACK_BYTES = 1000
"""The maximum size of a rack in messages between nodes (`quorum/node_message_bounds.py`)."""


def roles(value: Value) -> str | None:
    """Check for process.roles: a list without duplicates."""
    assert isinstance(value, tuple)
    allowed = some_of("broker", "controller")(value)
    return allowed or (None if len({*value}) == len(value) else "a list without duplicates")


def rack(value: Value) -> str | None:
    """Check for broker.rack."""
    size = len(str(value).encode(errors="replace"))
    return None if size <= MAX_RACK_BYTES else f"at most {MAX_RACK_BYTES} bytes long"


IDENTITY = (
    Key(
        "process.roles",
        LIST,
        None,
        "The roles of the node: broker, controller, or both.",
        roles,
    ),
    Key("node.id", INT, None, "The id of the node. broker.id is its older name.", at_least(0)),
    Key(
        "broker.rack",
        STRING,
        None,
        "The rack of the broker. Replicas of a partition are spread over racks.",
        rack,
    ),
    Key("log.dir", STRING, "/tmp/kafka-logs", "The data directories, if log.dirs is not set."),
    Key("log.dirs", LIST, None, "The data directories, over which partitions are spread."),
    Key(
        "metadata.log.dir",
        STRING,
        None,
        "The directory of the metadata log. Default: the first data directory.",
    ),
)

NETWORK = (
    Key(
        "listeners",
        STRING,
        "PLAINTEXT://:9092",
        "The addresses that the node binds, as NAME://host:port,...",
    ),
    Key(
        "advertised.listeners",
        STRING,
        None,
        "The addresses that clients use to connect. Default: listeners.",
    ),
    Key(
        "listener.security.protocol.map",
        STRING,
        PROTOCOLS,
        "The security protocol of each listener name. The listeners of nodes are PLAINTEXT.",
    ),
    Key(
        "inter.broker.listener.name",
        STRING,
        None,
        "The listener that brokers use among themselves.",
    ),
    Key("controller.listener.names", LIST, (), "The names of the listeners of controllers."),
    Key(
        "socket.request.max.bytes",
        INT,
        100 * MIB,
        "The largest request that the node accepts.",
        at_least(1),
    ),
    Key(
        "socket.listen.backlog.size",
        INT,
        1024,
        "The number of connections that may wait for accept.",
        at_least(1),
        kafka_default=50,
    ),
    Key(
        "socket.send.buffer.bytes",
        INT,
        -1,
        "The size of SO_SNDBUF of accepted connections. -1: the system adapts it.",
        at_least(-1),
        kafka_default=102_400,
    ),
    Key(
        "socket.receive.buffer.bytes",
        INT,
        -1,
        "The size of SO_RCVBUF of accepted connections. -1: the system adapts it.",
        at_least(-1),
        kafka_default=102_400,
    ),
    Key(
        "max.connections",
        INT,
        MAX_INT,
        "The most client connections of a node. Half of its open files is an upper bound.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "max.connections.per.ip",
        INT,
        MAX_INT,
        "The most connections from one address.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Other limits for some addresses, as address:connections,...",
        connections_by_address,
        CLUSTER_WIDE,
    ),
    Key(
        "max.connection.creation.rate",
        INT,
        MAX_INT,
        "The most new connections per second.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        "connections.max.idle.ms",
        LONG,
        600_000,
        "The time after which an idle connection is closed.",
    ),
    Key(
        "quota.window.num",
        INT,
        11,
        "The number of sample windows over which the rates of clients with quotas are measured.",
        at_least(1),
    ),
    Key(
        "quota.window.size.seconds",
        INT,
        1,
        "The length of one such window.",
        at_least(1),
    ),
    Key(
        "controller.quota.window.num",
        INT,
        11,
        "The same as quota.window.num, for controller_mutation_rate on controllers.",
        at_least(1),
    ),
    Key(
        "controller.quota.window.size.seconds",
        INT,
        1,
        "The same as quota.window.size.seconds, for controller_mutation_rate on controllers.",
        at_least(1),
    ),
    Key(
        "queued.max.requests",
        INT,
        500,
        "The most requests that may wait in addition to five of each connection.",
        at_least(1),
    ),
    Key(
        "queued.max.request.bytes",
        LONG,
        256 * MIB,
        "The memory for incomplete and in-flight requests of all connections. -1: no limit.",
        between(1, MAX_LONG, also=-1),
        kafka_default=-1,
    ),
    Key(
        "request.timeout.ms",
        INT,
        30_000,
        "The time that a broker waits for the controller when it creates a topic by itself.",
        at_least(1),
    ),
    Key(
        "controller.socket.timeout.ms",
        INT,
        30_000,
        "The time that a broker waits for the controller's answer to a forwarded request or to a "
        "proposed ISR.",
        at_least(1),
    ),
    Key(
        "max.request.partition.size.limit",
        INT,
        2000,
        "The most partitions in one response to DescribeTopicPartitions.",
        at_least(1),
    ),
)

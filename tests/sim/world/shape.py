"""The parts of a simulated cluster: its machines, their properties, their formatted disks."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import ReplicaKey
from quorate.quorum.offline.storage_format import InitialVoter

CONTROLLER_PORT = 9093
CLIENT_PORT = 9092
SASL_PORT = 9095
COMBINED = "combined"
"""The role of a node that is a controller and a broker in one process."""
NAME = "{name}"
"""A placeholder for the name of the machine in the values of `Shape.overrides`."""

# Timeouts and intervals are shorter than in production, because a run lasts twenty virtual seconds.
FAST = {
    "broker.heartbeat.interval.ms": "400",
    "broker.session.timeout.ms": "2000",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.request.timeout.ms": "1000",
    "replica.lag.time.max.ms": "1500",
    "replica.socket.timeout.ms": "2000",
    "replica.fetch.backoff.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "leader.imbalance.check.interval.seconds": "4",
    "log.flush.offset.checkpoint.interval.ms": "3000",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "auto.create.topics.enable": "false",
}

SASL_KEYS = {
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,REPLICATION:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT"
    ),
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
}


class Quorum(enum.Enum):
    """The place that names the voters of a cluster."""

    STATIC = "static"
    """controller.quorum.voters (kraft.version 0)."""
    UPGRADED = "upgraded"
    """controller.quorum.voters until an administrator raises kraft.version, then the log."""
    DYNAMIC = "dynamic"
    """The log: nodes are formatted with --initial-controllers and find the quorum by bootstrap
    servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The machines of a cluster and their properties. Spares are controllers that do not vote at
    first. They have the highest ids."""

    controllers: int = 3
    brokers: int = 3
    spares: int = 0
    combined: bool = False
    """If True, each of `controllers` is a broker, too, and `brokers` are further ones."""
    quorum: Quorum = Quorum.STATIC
    auto_join: bool = False
    streams: bool = False  # links are streams of bytes, below the production code of frames
    distances: bool = False  # some directions between hosts are far (`distances.py`)
    disk_call_s: float = 0.0
    """The longest time of each call of the disk's thread (`disk_thread.py`)."""
    replication_port: int = 0  # 0: a different port after each start
    sasl: bool = False
    """True if brokers have one more listener, for clients that log in with SCRAM."""
    identities: bool = False
    """True if nodes prove their ids on their links, as by TLS, and demand the same of all
    others."""
    overrides: Mapping[str, str] = field(default_factory=dict)

    def roles(self) -> dict[int, str]:
        """Return the role of every node, by id."""
        roles = [COMBINED if self.combined else "controller"] * self.controllers
        roles += ["broker"] * self.brokers + ["controller"] * self.spares
        return dict(enumerate(roles, 1))

    @property
    def voter_ids(self) -> range:
        return range(1, self.controllers + 1)


def name_of(node_id: int, role: str) -> str:
    return f"{role[0]}{node_id}"


def machine_of(path: str) -> str:
    """Return the name of the machine whose log directory holds `path`. Each name of a directory
    begins with it."""
    return path.split("/")[1].partition("-")[0]


def voters_of(shape: Shape, keys: Mapping[int, ReplicaKey]) -> Sequence[InitialVoter]:
    """Return the initial voters of a dynamic quorum, or nothing for another quorum."""
    if shape.quorum is not Quorum.DYNAMIC:
        return ()
    return [
        InitialVoter(key=keys[i], host=name_of(i, "controller"), port=CONTROLLER_PORT)
        for i in shape.voter_ids
    ]


def node_config(node_id: int, role: str, shape: Shape) -> NodeConfig:
    name = name_of(node_id, role)
    listeners = []
    if role != "broker":
        listeners += [f"CONTROLLER://{name}:{CONTROLLER_PORT}"]
    if role != "controller":
        listeners += [f"PLAINTEXT://{name}:{CLIENT_PORT}"]
        listeners += [f"REPLICATION://{name}:{shape.replication_port}"]
        listeners += [f"SASL://{name}:{SASL_PORT}"] if shape.sasl else []
    values = {
        **FAST,
        **(SASL_KEYS if shape.sasl else {}),
        "process.roles": "broker,controller" if role == COMBINED else role,
        "node.id": str(node_id),
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listeners),
        "log.dirs": f"/{name}",
        **_quorum_keys(node_id, role, shape),
        **{key: value.replace(NAME, name) for key, value in shape.overrides.items()},
    }
    return load(None, environment={}, overrides=values, hostname=name)


def _quorum_keys(node_id: int, role: str, shape: Shape) -> dict[str, str]:
    """Return the quorum keys of a node. A spare is never in controller.quorum.voters. Every
    controller is a bootstrap server."""
    voters = ",".join(f"{i}@{name_of(i, 'controller')}:{CONTROLLER_PORT}" for i in shape.voter_ids)
    servers = ",".join(
        f"{name_of(i, each)}:{CONTROLLER_PORT}"
        for i, each in shape.roles().items()
        if each != "broker"
    )
    keys: dict[str, str] = {}
    configured = role == "broker" or node_id in shape.voter_ids
    if shape.quorum is not Quorum.DYNAMIC and configured:
        keys["controller.quorum.voters"] = voters
    if shape.quorum is not Quorum.STATIC:
        keys["controller.quorum.bootstrap.servers"] = servers
    if shape.auto_join and role != "broker":
        keys["controller.quorum.auto.join.enable"] = "true"
    return keys

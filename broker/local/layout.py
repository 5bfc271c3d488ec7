"""The ids, ports, directories and configs of a local cluster's nodes.

The ids are those of `quorate up`: the controllers come first. A port belongs to the cluster while
it exists, even while its node is down. On Linux, a socket that is bound but never listens reserves
it, and the node's own socket may listen on the same port. Other systems do not allow this. There,
another process may take the port of a node that is down."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING

from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import random_uuid, uuid_to_text
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.node.opening.meta_properties import read_meta
from quorate.quorum.offline.storage_format import format_directory
from quorate.quorum.rpc.ports import free_socket
from quorate.quorum.seams import Address

if TYPE_CHECKING:
    from quorate.quorum.secured.secured_dir import SecuredDir

HOST = "127.0.0.1"
"""The host of all listeners."""
MAX_NODES = 100
"""Maximum number of controllers, and of brokers."""

Value = str | int | float | bool
"""The value of a property."""


OwnConfigs = Callable[[str, int], Mapping[str, str]]
"""Returns the further configs of one node, from the cluster id and the node's id. Blocks."""


def no_own_configs(cluster_id: str, node_id: int) -> Mapping[str, str]:
    """Return no configs: all nodes have the same."""
    return {}


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a cluster, the configs of all its nodes, and those of each node alone.

    The constructor raises ValueError if a number is not from 1 to MAX_NODES."""

    controllers: int = 1
    brokers: int = 1
    config: Mapping[str, Value] = field(default_factory=dict)
    own_configs: OwnConfigs = no_own_configs
    secure: bool = False
    """True if the cluster has TLS, logins and ACLs (`quorum/secured`)."""

    def __post_init__(self) -> None:
        for name in ("controllers", "brokers"):
            count = getattr(self, name)
            if not 1 <= count <= MAX_NODES:
                raise ValueError(f"{name}: value {count} must be from 1 to {MAX_NODES}")

    @property
    def controller_ids(self) -> range:
        """Return the ids of the controllers, from 1."""
        return range(1, self.controllers + 1)

    @property
    def broker_ids(self) -> range:
        """Return the ids of the brokers, which follow the controllers."""
        return range(self.controllers + 1, self.controllers + self.brokers + 1)


class Ports:
    """Free ports of this machine, reserved until `release` (only on Linux)."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def reserve(self) -> Address:
        """Reserve a free port and return its address."""
        with free_socket(HOST) as found:
            address = Address(HOST, found.getsockname()[1])
        keeper = socket.socket()
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind((HOST, address.port))
        if sys.platform == "linux":
            self._sockets.append(keeper)
        else:  # other systems allow no second socket on the port, so it stays free
            keeper.close()
        return address

    def release(self) -> None:
        """Release all reserved ports."""
        for keeper in self._sockets:
            keeper.close()


@dataclass(frozen=True, slots=True)
class Layout:
    """The configs and addresses of the nodes of one cluster."""

    configs: Mapping[int, NodeConfig]
    """The configs of each node, by node id."""
    clients: Mapping[int, Address]
    """The client address of each broker, by node id."""
    node_ports: Mapping[Address, int]
    """The node id of each address that other nodes connect to."""
    controllers: Mapping[int, Address]
    """The address of each controller, by node id."""
    secured: SecuredDir | None = None
    """The files for clients of a secure cluster."""


def lay_out(shape: Shape, ports: Ports, root: str) -> Layout:
    """Return the configs of all nodes below `root`, and format new directories.

    `shape.config` may change the replication defaults set here, but not the roles, ids, listeners
    and directories of the nodes. Raise ValueError if `root` holds a cluster of another shape, and
    ConfigError (a ValueError) if a config is invalid."""
    refuse_other_shape(shape, root)
    controllers = {node_id: ports.reserve() for node_id in shape.controller_ids}
    clients = {node_id: ports.reserve() for node_id in shape.broker_ids}
    replication = {node_id: ports.reserve() for node_id in shape.broker_ids}
    voters = ",".join(f"{node_id}@{address}" for node_id, address in controllers.items())
    cluster_id = cluster_id_in(root, controllers | clients)
    secured = secured_dir(root, cluster_id, controllers | clients) if shape.secure else None
    name = "PLAINTEXT" if secured is None else secured.client_listener
    listeners = {node_id: f"CONTROLLER://{address}" for node_id, address in controllers.items()} | {
        node_id: f"{name}://{clients[node_id]},REPLICATION://{replication[node_id]}"
        for node_id in shape.broker_ids
    }
    replicas = min(3, shape.brokers)
    common = {
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(max(1, replicas - 1)),
        "offsets.topic.replication.factor": str(replicas),
        **{name: as_text(value) for name, value in shape.config.items()},
    }
    configs = {
        node_id: load(
            None,
            environment={},
            overrides={
                **({} if secured is None else secured.settings(node_id)),
                **common,
                "process.roles": "controller" if node_id in controllers else "broker",
                "node.id": str(node_id),
                "listeners": listeners[node_id],
                "log.dirs": f"{root}/{node_id}",
                **shape.own_configs(cluster_id, node_id),
            },
            hostname=HOST,
        )
        for node_id in (*shape.controller_ids, *shape.broker_ids)
    }
    format_nodes(list(configs.values()), cluster_id, secured)
    node_ports = {address: node_id for node_id, address in (controllers | replication).items()}
    return Layout(configs, clients, node_ports, controllers, secured)


def as_text(value: Value) -> str:
    """Return a value as the text of a property: a bool as `true` or `false`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def refuse_other_shape(shape: Shape, root: str) -> None:
    """Raise ValueError if `root` holds directories of nodes, but not of exactly these nodes."""
    held = sorted(int(name) for name in os.listdir(root) if name.isdecimal())
    wanted = [*shape.controller_ids, *shape.broker_ids]
    if held and held != wanted:
        raise ValueError(
            f"{root} holds a cluster of the nodes {held}, not {wanted}: ask for that one, or "
            "choose another directory"
        )


def cluster_id_in(root: str, node_ids: Iterable[int]) -> str:
    """Return the cluster id of the directories of nodes below `root` that are formatted, or a new
    one if there are none."""
    disk = OsDisk()
    metas = [read_meta(disk, f"{root}/{node_id}") for node_id in node_ids]
    disk.close()
    known = next((meta.cluster_id for meta in metas if meta is not None), None)
    return known or uuid_to_text(random_uuid(SystemRandom()))


def secured_dir(root: str, cluster_id: str, node_ids: Iterable[int]) -> SecuredDir:
    """Return the files of a secure cluster below `root`, which are made if they are missing."""
    from quorate.quorum.secured.secured_dir import SecuredDir

    found = SecuredDir(Path(root))
    if not found.exists:
        found.create(cluster_id, node_ids)
    return found


def format_nodes(
    configs: Sequence[NodeConfig], cluster_id: str, secured: SecuredDir | None
) -> None:
    """Format the directories that are not formatted yet. A new secure cluster gets an admin."""
    disk, chance = OsDisk(), SystemRandom()
    credentials = () if secured is None else (secured.credential(),)
    for config in configs:
        if read_meta(disk, config.log_dir) is None:
            format_directory(
                disk,
                config,
                cluster_id=cluster_id,
                directory_id=random_uuid(chance),
                wall_ms=time.time_ns() // 1_000_000,
                credentials=credentials if config.is_controller else (),
            )
    disk.close()


def joined(addresses: Mapping[int, Address]) -> str:
    """Return addresses as a HOST:PORT list."""
    return ",".join(str(address) for address in addresses.values())

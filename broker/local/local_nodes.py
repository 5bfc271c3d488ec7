"""The nodes of a local cluster, and what they know.

`cluster.py` adds the actions, faults and waits of its users."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from quorate.broker.local.errors import NodeFailed, NotInTime, WrongState
from quorate.broker.local.fault_rules import ClusterFaults
from quorate.broker.local.layout import Layout, Ports, Shape, joined, lay_out
from quorate.broker.local.node import LocalNode, RunningNode
from quorate.quorum.metadata.image import MetadataImage, Partition

POLL_S = 0.005
"""The interval at which the waiting methods examine the nodes, in seconds."""

T = TypeVar("T")


class LocalNodes:
    """The nodes of one cluster. All methods must be called on its event loop."""

    def __init__(self, shape: Shape, root: str) -> None:
        """Reserve ports, write configs and format directories below `root`. No node starts yet.

        Raise ValueError if `root` holds a cluster of another shape."""
        self.shape = shape
        self.failure: NodeFailed | None = None
        self._ports = Ports()
        try:
            self._layout: Layout = lay_out(shape, self._ports, root)
        except BaseException:
            self._ports.release()
            raise
        self._nodes = {
            node_id: LocalNode(config, self._layout.node_ports, self.failed)
            for node_id, config in self._layout.configs.items()
        }
        self._faults = ClusterFaults()

    # --- description

    @property
    def bootstrap(self) -> str:
        """Return the HOST:PORT list of all brokers for clients, whether the brokers run or not."""
        return joined(self._layout.clients)

    @property
    def bootstrap_controllers(self) -> str:
        """Return the HOST:PORT list of all controllers."""
        return joined(self._layout.controllers)

    @property
    def librdkafka_config(self) -> dict[str, str]:
        """Return the settings of a client of librdkafka, those of the admin if the cluster is
        secure."""
        secured = self._layout.secured
        login = {} if secured is None else secured.librdkafka_settings()
        return {"bootstrap.servers": self.bootstrap, **login}

    @property
    def client_properties(self) -> str | None:
        """Return the path of the file for clients of Java, or None if they need none because the
        cluster is not secure."""
        secured = self._layout.secured
        return None if secured is None else str(secured.java)

    @property
    def broker_ids(self) -> list[int]:
        """Return the ids of all brokers."""
        return list(self.shape.broker_ids)

    @property
    def controller_ids(self) -> list[int]:
        """Return the ids of all controllers."""
        return list(self.shape.controller_ids)

    @property
    def image(self) -> MetadataImage:
        """Return the most recent metadata image of any node that is not paused."""
        images = (node.image for node in self._nodes.values() if not node.paused)
        return max(images, key=lambda image: image.last.offset, default=MetadataImage())

    # --- internals
    def _active(self) -> int | None:
        for node in self._nodes.values():
            if node.running is not None and node.running.active and not node.paused:
                return node.id
        return None

    def _expected(self) -> frozenset[int]:
        nodes = (self._nodes[each] for each in self.broker_ids)
        return frozenset(each.id for each in nodes if each.running is not None and not each.paused)

    def _partition(self, topic: str, partition: int) -> Partition | None:
        image = self.image
        return image.partition(image.topic_id(topic), partition)

    def _serves(self, broker_id: int, topic: str, partitions: int) -> bool:
        found = self._nodes[broker_id].image.topic(topic)
        return found is not None and all(
            (each := found.partitions.get(i)) is not None and each.leader >= 0
            for i in range(partitions)
        )

    def failed(self, node_id: int | None, error: BaseException) -> None:
        """Record the first failure of a node. The id is None if the node is unknown.

        A node that stops because of its full disk has not failed."""
        if not self._faults.stops(node_id, error) and self.failure is None:
            self.failure = NodeFailed(node_id, error)

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _node(self, node_id: int) -> LocalNode:
        node = self._nodes.get(node_id)
        if node is None:
            raise WrongState(f"node {node_id} does not exist: the nodes are {list(self._nodes)}")
        return node

    def _running(self, node_id: int) -> RunningNode:
        self._check()
        running = self._node(node_id).running
        if running is None:
            raise WrongState(f"node {node_id} is not running: restart it first")
        return running

    def _require_role(self, node_id: int, ids: list[int], role: str) -> None:
        if node_id not in ids:
            raise WrongState(f"node {node_id} is not a {role}: the {role}s are {ids}")

    def _pause(self, node: LocalNode, paused: bool) -> None:
        assert node.running is not None
        faults = node.running.faults
        faults.apply(replace(faults.rules, paused=paused))

    def _apply_all_rules(self) -> None:
        for node in self._nodes.values():
            self._apply_rules(node)

    def _apply_rules(self, node: LocalNode) -> None:
        if node.running is None:
            return
        faults = node.running.faults
        faults.apply(self._faults.rules_of(node.id, faults.rules))

    async def _until(self, holds: Callable[[], bool], what: str, timeout_s: float) -> None:
        await self._found(lambda: True if holds() else None, what, timeout_s)

    async def _found(self, find: Callable[[], T | None], what: str, timeout_s: float) -> T:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        while True:
            self._check()
            found = find()
            if found is not None:
                return found
            if loop.time() > deadline_s:
                raise NotInTime(f"this did not happen within {timeout_s:g} s: {what}")
            await asyncio.sleep(POLL_S)

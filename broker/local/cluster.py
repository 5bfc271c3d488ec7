"""A cluster in this process, on the running event loop: the real nodes, real sockets, real files.

What breaks is asked for by node id. A node that fails by itself fails the cluster: every call
raises NodeFailed from then on, and so does leaving it. Waiting methods raise NotInTime and say
what they waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import TypeVar

from quorate.broker.local.errors import NodeFailed, NotInTime, WrongState
from quorate.broker.local.layout import Layout, Ports, Shape, Value, lay_out
from quorate.broker.local.node import LocalNode, Running
from quorate.broker.local.topics import create_topic
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.seams import Address

POLL_S = 0.005
TIMEOUT_S = 30.0

Nodes = int | Iterable[int]
T = TypeVar("T")


class Cluster:
    """Made and entered by `LocalCluster`; all methods are to be called on its loop."""

    def __init__(self, shape: Shape, root: str) -> None:
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
        self._severed: dict[tuple[int, int], bool] = {}  # pairs, and whether silently

    # --- what it is

    @property
    def bootstrap(self) -> str:
        """For clients: HOST:PORT of every broker, whether it runs or not."""
        return _joined(self._layout.clients)

    @property
    def bootstrap_controllers(self) -> str:
        return _joined(self._layout.controllers)

    @property
    def broker_ids(self) -> list[int]:
        return list(self.shape.broker_ids)

    @property
    def controller_ids(self) -> list[int]:
        return list(self.shape.controller_ids)

    @property
    def image(self) -> MetadataImage:
        """The cluster's metadata, as the node that is ahead has it."""
        images = (node.image for node in self._nodes.values() if not node.paused)
        return max(images, key=lambda image: image.last.offset, default=MetadataImage())

    # --- life

    async def start(self) -> None:
        for node in self._nodes.values():
            node.boot()
        for node in self._nodes.values():
            await node.start()
        await self.wait_ready()

    async def close(self, *, orderly: bool) -> None:
        """Brokers first. Raises nothing that a node failed of; see `failure`."""
        try:
            if orderly and self.failure is None:
                self.heal_now()
                for node in reversed(self._nodes.values()):
                    if node.running is not None:
                        self._pause(node, False)
                        await node.stop()
        finally:
            for node in self._nodes.values():
                await node.kill()
            self._ports.release()

    async def kill_broker(self, broker_id: int) -> None:
        """As kill -9: tasks dropped mid-await, sockets reset, no shutdown code."""
        self._running(broker_id)
        self._require_role(broker_id, self.broker_ids, "broker")
        await self._nodes[broker_id].kill()

    async def kill_controller(self, controller_id: int | None = None) -> int:
        """The active one, if none is named; returns its id."""
        chosen = await self.controller_id() if controller_id is None else controller_id
        self._running(chosen)
        self._require_role(chosen, self.controller_ids, "controller")
        await self._nodes[chosen].kill()
        return chosen

    async def stop(self, node_id: int) -> None:
        """In order, as SIGTERM: leaderships move before it goes."""
        self._running(node_id)
        node = self._nodes[node_id]
        if node.paused:
            raise WrongState(f"node {node_id} is paused: resume it, or kill it")
        await node.stop()
        self._check()

    async def restart(self, node_id: int) -> None:
        """Start a node that was killed or stopped; `wait_ready` waits for it to be unfenced."""
        self._check()
        node = self._node(node_id)
        if node.running is not None:
            raise WrongState(f"node {node_id} runs: kill or stop it first")
        node.boot()
        self._apply_rules(node)
        await node.start()

    # --- faults

    async def pause(self, node_id: int) -> None:
        """As SIGSTOP: its clock, transport and disk stand still; what peers send queues."""
        self._running(node_id)
        self._pause(self._nodes[node_id], True)

    async def resume(self, node_id: int) -> None:
        self._running(node_id)
        self._pause(self._nodes[node_id], False)

    async def partition(self, a: Nodes, b: Nodes, *, silent: bool = False) -> None:
        """Cut the links between the nodes of `a` and those of `b`, both ways; clients reach all.

        `silent`: links stay open and carry nothing, as when packets are lost."""
        self._check()
        for pair in product(_each(a), _each(b)):
            if pair[0] == pair[1]:
                raise WrongState(f"node {pair[0]} cannot be parted from itself")
            for node_id in pair:
                self._node(node_id)
            self._severed[pair] = silent
        self._apply_all_rules()

    async def heal(self) -> None:
        """Ends every partition."""
        self._check()
        self.heal_now()

    def heal_now(self) -> None:
        self._severed.clear()
        self._apply_all_rules()

    # --- waiting and asking

    async def wait_ready(self, timeout_s: float = TIMEOUT_S) -> None:
        """Until there is an active controller, and every broker that runs and is not paused shows
        its clients all of these as unfenced."""

        def ready() -> bool:
            expected = self._expected()
            return self._active() is not None and all(
                self._nodes[each].serves(expected) for each in sorted(expected)
            )

        await self._until(ready, "an active controller and all running brokers unfenced", timeout_s)

    async def wait_in_sync(self, topic: str, timeout_s: float = TIMEOUT_S) -> None:
        """Until all replicas of all partitions of the topic are in its ISRs."""

        def in_sync() -> bool:
            found = self.image.topic(topic)
            return found is not None and all(
                set(found.partitions[each].isr) == set(found.partitions[each].replicas)
                for each in found.partition_ids()
            )

        await self._until(in_sync, f"every replica of {topic} in sync", timeout_s)

    async def wait_fenced(self, broker_id: int, timeout_s: float = TIMEOUT_S) -> None:
        """Until the controller has fenced the broker."""
        self._node(broker_id)

        def fenced() -> bool:
            broker = self.image.brokers.get(broker_id)
            return broker is None or broker.fenced

        await self._until(fenced, f"broker {broker_id} fenced", timeout_s)

    async def controller_id(self, timeout_s: float = TIMEOUT_S) -> int:
        """The active controller; waits for there to be one."""
        return await self._found(self._active, "an active controller", timeout_s)

    async def leader(self, topic: str, partition: int = 0, timeout_s: float = TIMEOUT_S) -> int:
        """The broker that leads the partition; waits for there to be one."""

        def leader() -> int | None:
            found = self._partition(topic, partition)
            return None if found is None or found.leader < 0 else found.leader

        return await self._found(leader, f"a leader of {topic}-{partition}", timeout_s)

    async def isr(self, topic: str, partition: int = 0, timeout_s: float = TIMEOUT_S) -> list[int]:
        """The replicas in sync; waits for the partition to exist."""

        def isr() -> list[int] | None:
            found = self._partition(topic, partition)
            return None if found is None else sorted(found.isr)

        return await self._found(isr, f"partition {topic}-{partition}", timeout_s)

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, Value] | None = None,
    ) -> None:
        """Every running broker serves it when this returns. Without a factor, the default: as many
        replicas as there are brokers, three at most."""
        self._check()
        brokers = sorted(self._expected())
        if not brokers:
            raise WrongState("no broker runs that could create a topic")
        address = self._layout.clients[brokers[0]]
        await create_topic(address, name, partitions, replication_factor, config or {})

        def served() -> bool:
            return all(self._serves(each, name, partitions) for each in sorted(self._expected()))

        await self._until(served, f"topic {name} served by all running brokers", TIMEOUT_S)

    # --- inside

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
        if self.failure is None:
            self.failure = NodeFailed(node_id, error)

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _node(self, node_id: int) -> LocalNode:
        node = self._nodes.get(node_id)
        if node is None:
            raise WrongState(f"there is no node {node_id}: the nodes are {list(self._nodes)}")
        return node

    def _running(self, node_id: int) -> Running:
        self._check()
        running = self._node(node_id).running
        if running is None:
            raise WrongState(f"node {node_id} does not run")
        return running

    def _require_role(self, node_id: int, ids: list[int], role: str) -> None:
        if node_id not in ids:
            raise WrongState(f"node {node_id} is no {role}: those are {ids}")

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
        peers: dict[bool, list[int]] = {False: [], True: []}
        for (a, b), silent in self._severed.items():
            if node.id in (a, b):
                peers[silent].append(b if node.id == a else a)
        faults = node.running.faults
        faults.apply(replace(faults.rules, cut=tuple(peers[False]), hold=tuple(peers[True])))

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
                raise NotInTime(f"not within {timeout_s:g} s: {what}")
            await asyncio.sleep(POLL_S)


def _joined(addresses: Mapping[int, Address]) -> str:
    return ",".join(str(address) for address in addresses.values())


def _each(nodes: Nodes) -> list[int]:
    return [nodes] if isinstance(nodes, int) else list(nodes)

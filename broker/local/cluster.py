"""A cluster in this process, on the running event loop: real nodes, real sockets, real files.

Faults are requested by node id. If a node fails by itself, the cluster has failed. Every coroutine
method except `close` then raises NodeFailed, and so does the end of the `with` block. Methods that
wait raise NotInTime, which names the condition. A method raises WrongState if the node does not
exist or is in another state than the method requires."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from quorate.broker.local.errors import TopicRefused, WrongState
from quorate.broker.local.fault_rules import Nodes, pairs
from quorate.broker.local.layout import Value
from quorate.broker.local.local_nodes import POLL_S, LocalNodes
from quorate.broker.local.topics import admin_tls, create_topic, topic_request
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import CreateTopicsRequest
from quorate.quorum.rpc.kafka.client import ClientError
from quorate.quorum.rpc.tls.dialing_transport import DialingTransport
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import TransportError

TIMEOUT_S = 30.0
"""The default time limit of the waiting methods, in seconds."""


class Cluster(LocalNodes):
    """A running cluster, created by `LocalCluster`.

    All methods must be called on its event loop."""

    # --- start and stop

    async def start(self) -> None:
        """Start all nodes and wait until the cluster is ready, for at most TIMEOUT_S.

        Raise NotInTime, NodeFailed or the error of a node's start. The caller must then call
        `close`."""
        for node in self._nodes.values():
            node.boot()
        for node in self._nodes.values():
            await node.start()
        await self.wait_ready()

    async def close(self, *, orderly: bool) -> None:
        """Stop all nodes and release the ports.

        If `orderly` and no node has failed, faults end and each node stops cleanly, the brokers
        first. Otherwise all nodes are killed. An error of a clean stop is raised after the
        remaining nodes were killed. The failure of a node is not raised; see `failure`."""
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
        """Kill a broker as kill -9 does: tasks end, sockets are reset, no shutdown code runs."""
        self._running(broker_id)
        self._require_role(broker_id, self.broker_ids, "broker")
        await self._nodes[broker_id].kill()

    async def kill_controller(self, controller_id: int | None = None) -> int:
        """Kill a controller, by default the active one, and return its id.

        Without an id, wait until there is an active controller (see `controller_id`)."""
        chosen = await self.controller_id() if controller_id is None else controller_id
        self._running(chosen)
        self._require_role(chosen, self.controller_ids, "controller")
        await self._nodes[chosen].kill()
        return chosen

    async def stop(self, node_id: int) -> None:
        """Stop a node cleanly, as SIGTERM does.

        A broker's leaderships move before it stops, if the controller permits it in time. Raise
        WrongState if the node is paused."""
        self._running(node_id)
        node = self._nodes[node_id]
        if node.paused:
            raise WrongState(f"node {node_id} is paused: resume it, or kill it")
        await node.stop()
        self._check()

    async def restart(self, node_id: int) -> None:
        """Start a node that was killed or stopped. Partitions that name the node still apply.

        Its ports are open on return. Use `wait_ready` to wait until a broker is unfenced."""
        self._check()
        node = self._node(node_id)
        if node.running is not None:
            raise WrongState(f"node {node_id} is running: kill or stop it first")
        node.boot()
        self._apply_rules(node)
        await node.start()

    # --- faults

    async def pause(self, node_id: int) -> None:
        """Pause a node as SIGSTOP does: its clock, transport and disk stand still.

        Messages of its peers queue until `resume`."""
        self._running(node_id)
        self._pause(self._nodes[node_id], True)

    async def resume(self, node_id: int) -> None:
        """Resume a paused node."""
        self._running(node_id)
        self._pause(self._nodes[node_id], False)

    async def partition(self, a: Nodes, b: Nodes, *, silent: bool = False) -> None:
        """Cut the links between the nodes of `a` and those of `b`, in both directions.

        Clients still reach all nodes. With `silent` the links stay open and carry nothing, as if
        all packets were lost. Earlier partitions continue until `heal`. A partition also applies to
        nodes that are restarted later."""
        self._check()
        for pair in pairs(a, b):
            for node_id in pair:
                self._node(node_id)
            self._faults.severed[pair] = silent
        self._apply_all_rules()

    async def one_way(self, sender: int, receiver: int) -> None:
        """Hold all that `sender` sends to `receiver`, until `heal`. The other direction works.

        Links stay open. A new link needs both directions, so it waits."""
        self._check()
        for pair in pairs(self._node(sender).id, self._node(receiver).id):
            self._faults.one_way[pair] = None
        self._apply_all_rules()

    async def delay(self, node_id: int, delay_ms: int, bytes_per_s: int = 0) -> None:
        """Delay each frame between a node and the other nodes, until `heal`.

        With `bytes_per_s`, each link carries at most so much in each direction. Raise RulesError
        (a ValueError) for a value that is not valid."""
        await self._slow(node_id, delay_ms=delay_ms, bytes_per_s=bytes_per_s)

    async def slow_disk(self, node_id: int, flush_ms: int) -> None:
        """Let each flush of a node's disk take so much longer, until `heal`. Raise as `delay`."""
        await self._slow(node_id, disk_delay_ms=flush_ms)

    async def fill_disk(self, node_id: int, timeout_s: float = TIMEOUT_S) -> None:
        """Let the writes of a node fail with ENOSPC, and return when the node has stopped itself.

        A node with one log directory stops, as Kafka does. `restart` starts it again, and its disk
        then has space. Raise NotInTime if it does not stop."""
        self._running(node_id)
        stopped = self._faults.full[node_id] = asyncio.Event()
        self._apply_all_rules()
        try:
            await self._until(stopped.is_set, f"node {node_id} stopped by its disk", timeout_s)
            await self._nodes[node_id].kill()
        finally:
            self._faults.full.pop(node_id, None)
            self._apply_all_rules()

    async def heal(self) -> None:
        """End all partitions, one-way holds, delays and slow disks."""
        self._check()
        self.heal_now()

    async def _slow(self, node_id: int, **rules: int) -> None:
        self._check()
        self._node(node_id)
        self._faults.slow_down(node_id, **rules)
        self._apply_all_rules()

    def heal_now(self) -> None:
        """End all faults but pauses, even after a failure of the cluster."""
        self._faults.clear()
        self._apply_all_rules()

    # --- queries, which wait

    async def wait_ready(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until there is an active controller and all brokers are unfenced.

        Only brokers that run and are not paused count. The metadata image of each of these brokers
        must show all of them as unfenced."""

        def ready() -> bool:
            expected = self._expected()
            return self._active() is not None and all(
                self._nodes[each].serves(expected) for each in sorted(expected)
            )

        await self._until(ready, "an active controller and all running brokers unfenced", timeout_s)

    async def wait_in_sync(self, topic: str, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the topic exists and the ISR of each of its partitions holds all replicas."""

        def in_sync() -> bool:
            found = self.image.topic(topic)
            return found is not None and all(
                set(found.partitions[each].isr) == set(found.partitions[each].replicas)
                for each in found.partition_ids()
            )

        await self._until(in_sync, f"every replica of {topic} in sync", timeout_s)

    async def wait_fenced(self, broker_id: int, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the broker is fenced or is not registered."""
        self._node(broker_id)

        def fenced() -> bool:
            broker = self.image.brokers.get(broker_id)
            return broker is None or broker.fenced

        await self._until(fenced, f"broker {broker_id} fenced", timeout_s)

    async def controller_id(self, timeout_s: float = TIMEOUT_S) -> int:
        """Return the id of the active controller, and wait until there is one.

        Nodes that are paused do not count. A controller that was just separated from the others may
        still be active, and may be returned."""
        return await self._found(self._active, "an active controller", timeout_s)

    async def leader(self, topic: str, partition: int = 0, timeout_s: float = TIMEOUT_S) -> int:
        """Return the leader of the partition, and wait until there is one.

        The answer comes from the metadata. It names a broker that was killed until the controller
        has fenced this broker: use `wait_fenced` first."""

        def leader() -> int | None:
            found = self._partition(topic, partition)
            return None if found is None or found.leader < 0 else found.leader

        return await self._found(leader, f"a leader of {topic}-{partition}", timeout_s)

    async def isr(self, topic: str, partition: int = 0, timeout_s: float = TIMEOUT_S) -> list[int]:
        """Return the ISR in ascending order, and wait until the partition exists."""

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
        """Create a topic, and wait until all running brokers know a leader of each partition.

        Paused brokers do not count. The replication factor is by default that of the configs
        (`default.replication.factor`): the number of brokers, but at most three. `config` holds
        configs of the topic. The request is repeated if its answer is lost, or if the cluster
        cannot decide now. Raise WrongState if no broker runs, TopicRefused if the cluster refuses
        the topic, and NotInTime."""
        await self._create(topic_request(name, partitions, replication_factor, config or {}))

        def served() -> bool:
            return all(self._serves(each, name, partitions) for each in sorted(self._expected()))

        await self._until(served, f"topic {name} served by all running brokers", TIMEOUT_S)

    async def _create(self, request: CreateTopicsRequest) -> None:
        """Send the request until an answer tells the outcome, for at most TIMEOUT_S.

        An answer may be lost, for example because the active controller changes. If the next answer
        is that the topic exists, and it did not exist before, the earlier request has created
        it."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + TIMEOUT_S
        existed, unknown = self.image.topic(request.topics[0].name) is not None, False
        while True:
            self._check()
            try:
                await self._create_once(request)
                return
            except TopicRefused as refused:
                exists = refused.error == ErrorCode.TOPIC_ALREADY_EXISTS
                if exists and unknown and not existed:
                    return
                if not refused.retriable or loop.time() > deadline_s:
                    raise
            except (ClientError, TransportError):
                if loop.time() > deadline_s:
                    raise
            unknown = True
            await asyncio.sleep(POLL_S)

    async def _create_once(self, request: CreateTopicsRequest) -> None:
        brokers = sorted(self._expected())
        if not brokers:
            raise WrongState("no broker is running, so no topic can be created: restart one first")
        if self._layout.secured is None:
            await create_topic(AioTransport(), self._layout.clients[brokers[0]], request)
        else:  # controllers take the admin's certificate instead of a login
            address = self._layout.controllers[await self.controller_id()]
            tls = admin_tls(self._layout.secured)
            await create_topic(DialingTransport(AioTransport(), tls), address, request)

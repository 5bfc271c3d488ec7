"""One node of a local cluster, from a start to a stop or a crash, with fault injection.

It consists of the classes that `quorate server` starts. The exceptions of its callbacks, and errors
that make it stop itself, are failures of the node and of the cluster."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quorate.broker.node import BrokerNode
from quorate.config.node_config import NodeConfig
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.faults.faults import Faults
from quorate.quorum.faults.wrappers import with_faults
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node.controller.controller_node import ControllerNode
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.rpc.socket_options import SocketOptions
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address, Seams


@dataclass(slots=True)
class RunningNode:
    """The parts of a running node."""

    faults: Faults
    disk: OsDisk
    core: NodeCore
    controller: ControllerNode | None
    broker: BrokerNode | None

    @property
    def active(self) -> bool:
        """Return True if the node is the active controller."""
        return self.controller is not None and self.controller.shell.active


class LocalNode:
    """A node that can be started and stopped repeatedly: `boot`, `start`, then `kill` or `stop`.

    All methods run on the cluster's event loop. `running` is None except from `boot` until `kill`
    or `stop`."""

    def __init__(
        self,
        config: NodeConfig,
        node_ports: Mapping[Address, int],
        on_failed: Callable[[int, BaseException], None],
    ) -> None:
        self.id = config.node_id
        self.running: RunningNode | None = None
        self._config = config
        self._node_ports = node_ports
        self._on_failed = on_failed

    @property
    def paused(self) -> bool:
        """Return True if the node is paused."""
        return self.running is not None and self.running.faults.rules.paused

    @property
    def image(self) -> MetadataImage:
        """Return the image of the committed metadata. It is empty while the node does not run."""
        return MetadataImage() if self.running is None else self.running.core.image

    def serves(self, broker_ids: frozenset[int]) -> bool:
        """Return True if this node is a running broker whose image shows all these brokers as
        unfenced.
        """
        if self.running is None or self.running.broker is None or not self.running.broker.running:
            return False
        brokers = self.running.broker.replicas.registry.image.brokers
        return all(i in brokers and not brokers[i].fenced for i in broker_ids)

    def boot(self) -> None:
        """Open the data directory. Nothing is sent before `start`."""
        faults, disk = Faults(self._failed), OsDisk()
        faults.peer_of = self._node_ports.get
        transport = AioTransport(sockets=SocketOptions.of(self._config))
        seams = with_faults(Seams(AsyncioClock(), random.SystemRandom(), transport, disk), faults)
        try:
            core = NodeCore(self._config, seams, self._failed)
        except BaseException:
            faults.crash()
            disk.close()
            raise
        controller = ControllerNode(core) if self._config.is_controller else None
        broker = BrokerNode(core) if self._config.is_broker else None
        self.running = RunningNode(faults, disk, core, controller, broker)

    async def start(self) -> None:
        """Start the node. Its ports are open on return."""
        running = self.running
        assert running is not None
        for each in (running.controller, running.broker):
            if each is not None:
                await each.start()
        running.core.start()

    async def kill(self) -> None:
        """Kill the node as kill -9 does: none of its code runs any more, not even cleanup code.

        Do nothing if the node does not run."""
        running, self.running = self.running, None
        if running is not None:
            running.faults.crash()
            await running.faults.gone()
            running.disk.close()

    async def stop(self) -> None:
        """Stop the node as SIGTERM does: controlled shutdown or resignation.

        All data is durable on return. If a log cannot be closed, raise the error; the node then
        still has to be killed."""
        running = self.running
        assert running is not None
        for each in (running.broker, running.controller):
            if each is not None:
                await each.stop()
        running.core.close()
        running.core.release()
        await self.kill()  # only the injected clock, transport and disk are left

    def _failed(self, error: BaseException) -> None:
        self._on_failed(self.id, error)

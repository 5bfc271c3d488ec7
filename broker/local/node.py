"""One node of a local cluster: what runs from a start to a stop or a crash, behind faults.

It is made of the classes that `quorate server` starts. What one of its callbacks raises, and what
it stops itself for, is its failure, and the cluster's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quorate.broker.node import BrokerNode
from quorate.config.node_config import NodeConfig
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.controller_node import ControllerNode
from quorate.quorum.faults.faults import Faults
from quorate.quorum.faults.wrappers import with_faults
from quorate.quorum.log.disk import OsDisk
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node_core import NodeCore
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address, Seams


@dataclass(slots=True)
class Running:
    faults: Faults
    disk: OsDisk
    core: NodeCore
    controller: ControllerNode | None
    broker: BrokerNode | None

    @property
    def active(self) -> bool:
        return self.controller is not None and self.controller.shell.active


class LocalNode:
    def __init__(
        self,
        config: NodeConfig,
        node_ports: Mapping[Address, int],
        on_failed: Callable[[int, BaseException], None],
    ) -> None:
        self.id = config.node_id
        self.running: Running | None = None
        self._config = config
        self._node_ports = node_ports
        self._on_failed = on_failed

    @property
    def paused(self) -> bool:
        return self.running is not None and self.running.faults.rules.paused

    @property
    def image(self) -> MetadataImage:
        """What it has replayed of what is committed; nothing while it does not run."""
        return MetadataImage() if self.running is None else self.running.core.image

    def serves(self, broker_ids: frozenset[int]) -> bool:
        """Clients of this broker see all of these."""
        if self.running is None or self.running.broker is None or not self.running.broker.running:
            return False
        brokers = self.running.broker.replicas.registry.image.brokers
        return all(i in brokers and not brokers[i].fenced for i in broker_ids)

    def boot(self) -> None:
        """Opens the directory; nothing is sent before `start`."""
        faults, disk = Faults(self._failed), OsDisk()
        faults.peer_of = self._node_ports.get
        seams = with_faults(Seams(AsyncioClock(), random.Random(), AioTransport(), disk), faults)
        try:
            core = NodeCore(self._config, seams, self._failed)
        except BaseException:
            faults.crash()
            disk.close()
            raise
        controller = ControllerNode(core) if self._config.is_controller else None
        broker = BrokerNode(core) if self._config.is_broker else None
        self.running = Running(faults, disk, core, controller, broker)

    async def start(self) -> None:
        """Its ports are open when it returns."""
        running = self.running
        assert running is not None
        for each in (running.controller, running.broker):
            if each is not None:
                await each.start()
        running.core.start()

    async def kill(self) -> None:
        """kill -9: nothing of its own runs any more, not even what would tidy up."""
        running, self.running = self.running, None
        if running is not None:
            running.faults.crash()
            await running.faults.gone()
            running.disk.close()

    async def stop(self) -> None:
        """SIGTERM: controlled shutdown, or resignation; all is durable then."""
        running = self.running
        assert running is not None
        for each in (running.broker, running.controller):
            if each is not None:
                await each.stop()
        running.core.close()
        running.core.release()
        await self.kill()  # nothing is left but the seams

    def _failed(self, error: BaseException) -> None:
        self._on_failed(self.id, error)

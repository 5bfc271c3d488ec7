"""A cluster on virtual time: machines with a disk each, on which the production node classes run.

A machine keeps its disk and its clock's faults; its process comes and goes. Starting a process
here is what `quorum.controller_node.run` and `broker.node.run` do, but for the loop's exception
handler: whatever is raised out of a callback, and every node that stops itself, fails the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from quorate.broker.node import BrokerNode
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.quorum.controller_node import ControllerNode
from quorate.quorum.ids import random_uuid, uuid_to_text
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node_core import NodeCore
from quorate.quorum.seams import Address, Seams
from quorate.quorum.storage_format import format_directory
from tests.sim.clock import WALL_EPOCH_MS, SimClock
from tests.sim.disk import PowerCut, SimDisk
from tests.sim.host import Host
from tests.sim.loop import SimLoop
from tests.sim.network import SimNetwork
from tests.sim.transport import SimTransport

CONTROLLER_PORT = 9093
CLIENT_PORT = 9092
CLOCK_BASE_MS = 1 << 20

# Everything that takes its time takes less than in production: a run is twenty virtual seconds.
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


@dataclass(slots=True)
class Process:
    """What runs on a machine from a start to a crash."""

    host: Host
    clock: SimClock
    core: NodeCore
    controller: ControllerNode | None = None
    broker: BrokerNode | None = None


@dataclass(slots=True)
class Machine:
    name: str
    config: NodeConfig
    disk: SimDisk
    wall_offset_ms: int = 0
    clock_rate: float = 1.0
    disk_delay_s: float = 0.0  # before anything that is submitted to the disk is done
    process: Process | None = None
    stopping: bool = False
    power_losses: int = 0

    @property
    def id(self) -> int:
        return self.config.node_id

    @property
    def is_broker(self) -> bool:
        return self.config.is_broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    controllers: int = 3
    brokers: int = 3
    replication_port: int = 0  # 0: another one after each start
    overrides: Mapping[str, str] = field(default_factory=dict)


class Cluster:
    """`started` is told of every process before it runs, `trace` of what happens to machines."""

    def __init__(self, loop: SimLoop, seed: int | str, shape: Shape) -> None:
        self.loop = loop
        self.seed = seed
        self.network = SimNetwork(loop, self.random("network"))
        self.started: Callable[[Machine, Process], None] = lambda machine, process: None
        self.dying: Callable[[Machine, Process], None] = lambda machine, process: None
        self.failed: asyncio.Future[None] = loop.create_future()
        self.trace: list[str] = []
        self._disk_random = self.random("disk")
        loop.set_exception_handler(self._unhandled)
        voters = ",".join(
            f"{i}@{name_of(i, 'controller')}:{CONTROLLER_PORT}"
            for i in range(1, shape.controllers + 1)
        )
        cluster_id = uuid_to_text(random_uuid(self.random("cluster id")))
        self.machines: dict[str, Machine] = {}
        for node_id in range(1, shape.controllers + shape.brokers + 1):
            role = "controller" if node_id <= shape.controllers else "broker"
            config = node_config(node_id, role, voters, shape)
            machine = Machine(name_of(node_id, role), config, SimDisk(self._disk_random))
            format_directory(
                machine.disk,
                config,
                cluster_id=cluster_id,
                directory_id=random_uuid(self.random(f"directory {node_id}")),
                wall_ms=WALL_EPOCH_MS,
            )
            self.machines[machine.name] = machine

    def random(self, purpose: str) -> Random:
        """A stream of its own, so that one more draw does not shift all others."""
        return Random(f"{self.seed}/{purpose}")

    # -- machines --------------------------------------------------------------------------------

    @property
    def controllers(self) -> list[Machine]:
        return [each for each in self.machines.values() if not each.is_broker]

    @property
    def brokers(self) -> list[Machine]:
        return [each for each in self.machines.values() if each.is_broker]

    def broker_address(self, broker_id: int) -> Address:
        return Address(name_of(broker_id, "broker"), CLIENT_PORT)

    def start_all(self) -> None:
        for machine in self.machines.values():
            self.start(machine)

    def start(self, machine: Machine) -> None:
        assert machine.process is None, f"{machine.name} runs already"
        self.note(f"start {machine.name}")
        host = self.network.boot(machine.name)
        machine.disk = machine.disk.restart(self._disk_delay(machine, host))
        clock = SimClock(
            host,
            base_ms=CLOCK_BASE_MS * machine.id,
            wall_offset_ms=machine.wall_offset_ms,
            rate=machine.clock_rate,
        )
        random = Random(self._disk_random.getrandbits(64))
        seams = Seams(clock, random, SimTransport(self.network, host), machine.disk)
        core = NodeCore(
            machine.config, seams, lambda error: self.fail(NodeStopped(machine.name, error))
        )
        process = machine.process = Process(host, clock, core)
        if machine.is_broker:
            process.broker = BrokerNode(core)
        else:
            process.controller = ControllerNode(core)
        self.started(machine, process)
        host.spawn(_run(process)).add_done_callback(self.task_done)

    def stop(self, machine: Machine) -> None:
        """SIGTERM. The process is gone some time later, or never if nobody lets go of it."""
        process = machine.process
        assert process is not None and not machine.stopping
        self.note(f"stop {machine.name}")
        machine.stopping = True

        async def stop() -> None:
            node = process.broker or process.controller
            assert node is not None
            await node.stop()
            process.core.close()
            process.core.release()
            self.loop.call_soon(gone)

        def gone() -> None:
            if machine.process is process:
                self._end(machine, "stopped")

        process.host.spawn(stop()).add_done_callback(self.task_done)

    def kill(self, machine: Machine) -> None:
        """kill -9: what was written stays."""
        self._end(machine, "kill -9")

    def lose_power(self, machine: Machine) -> None:
        """What was not synced is gone, or any part of it."""
        self._end(machine, "power loss", power_loss=True)
        machine.power_losses += 1
        machine.disk = machine.disk.crash()

    def _end(self, machine: Machine, how: str, *, power_loss: bool = False) -> None:
        process = machine.process
        assert process is not None
        self.note(f"{how} {machine.name}")
        self.dying(machine, process)
        machine.process = None
        machine.stopping = False
        machine.disk.dead = True
        self.network.crash(process.host, power_loss=power_loss)

    def _disk_delay(self, machine: Machine, host: Host) -> Callable[[Callable[[], None]], None]:
        random = self._disk_random

        def later(callback: Callable[[], None]) -> None:
            delay_s = machine.disk_delay_s + 0.00005 + 0.0005 * random.random() ** 4
            host.call_at(self.loop.time() + delay_s, callback)

        return later

    # -- what is seen from above -----------------------------------------------------------------

    def note(self, event: str) -> None:
        self.trace.append(f"{self.loop.time():10.4f} {event}")

    def active_controllers(self) -> list[Machine]:
        return [
            each
            for each in self.controllers
            if each.process is not None
            and each.process.controller is not None
            and each.process.controller.shell.active
        ]

    def newest_image(self) -> MetadataImage:
        """The committed image of whoever is ahead."""
        images = [each.process.core.image for each in self.machines.values() if each.process]
        return max(images, key=lambda image: image.last.offset, default=MetadataImage())

    def is_registered(self, machine: Machine) -> bool:
        """Runs, and the log knows this incarnation of it."""
        broker = self.newest_image().brokers.get(machine.id)
        process = machine.process
        return (
            broker is not None
            and process is not None
            and broker.incarnation_id == process.core.incarnation
        )

    def fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.note(f"FAILED {error!r}")
            self.failed.set_exception(error)

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or AssertionError(context["message"])
        if isinstance(error, AssertionError):
            self.fail(error)
        elif not isinstance(error, PowerCut):
            self.fail(NodeStopped("a node", error))

    def task_done(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, PowerCut):
            self.fail(error)

    def close(self) -> None:
        """Ends whatever runs, so that nothing is left to the garbage collector's order."""
        for machine in self.machines.values():
            if machine.process is not None:
                machine.disk.dead = True
                self.network.crash(machine.process.host)
                machine.process = None


class NodeStopped(Exception):
    """A node found that it cannot go on; an exception that nobody catches stops it, too."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(f"{name}: {error!r}")
        self.__cause__ = error


async def _run(process: Process) -> None:
    node = process.controller or process.broker
    assert node is not None
    await node.start()
    process.core.start()


def name_of(node_id: int, role: str) -> str:
    return f"{role[0]}{node_id}"


def node_config(node_id: int, role: str, voters: str, shape: Shape) -> NodeConfig:
    name = name_of(node_id, role)
    listener = (
        f"CONTROLLER://{name}:{CONTROLLER_PORT}"
        if role == "controller"
        else f"PLAINTEXT://{name}:{CLIENT_PORT},REPLICATION://{name}:{shape.replication_port}"
    )
    values = {
        **FAST,
        "process.roles": role,
        "node.id": str(node_id),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": listener,
        "log.dirs": f"/{name}",
        **shape.overrides,
    }
    return load(None, environment={}, overrides=values, hostname=name)

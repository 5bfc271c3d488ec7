"""A cluster on virtual time: machines with one disk each, on which the production node classes run.

A machine keeps its disk and the faults of its clock while its processes start and end. A process
starts as in `quorum.node.controller_node.run` and `broker.running.run`. Only the exception handler
of the event loop differs: an exception of a callback fails the run, and so does a node that stops
itself.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from quorate.broker.controller.lifecycle import BrokerUnregistered
from quorate.broker.node import BrokerNode
from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import ReplicaKey, Uuid, random_uuid, uuid_to_text
from quorate.quorum.log.files.errors import CorruptLog, LogError
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.snapshot_file import CorruptSnapshot
from quorate.quorum.node.controller.controller_node import ControllerNode
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.node.opening.data_directory import METADATA_DIRECTORY
from quorate.quorum.offline.storage_format import InitialVoter, format_directory
from quorate.quorum.seams import Address, Seams
from tests.sim.world.clock import WALL_EPOCH_MS, SimClock
from tests.sim.world.disk import PowerCut, SimDisk
from tests.sim.world.disk_thread import Later
from tests.sim.world.distances import distances
from tests.sim.world.host import Host
from tests.sim.world.identities import prove_identity
from tests.sim.world.loop import SimLoop
from tests.sim.world.network import SimNetwork
from tests.sim.world.shape import (
    CLIENT_PORT,
    CONTROLLER_PORT,
    Shape,
    machine_of,
    name_of,
    node_config,
    voters_of,
)
from tests.sim.world.transport import SimTransport

__all__ = [
    "CLIENT_PORT",
    "CONTROLLER_PORT",
    "Machine",
    "NodeStopped",
    "Process",
    "Shape",
    "SimCluster",
    "name_of",
]

Found = Callable[["Machine", BaseException | None], None]
CLOCK_BASE_MS = 1 << 20
DAMAGE = (LogError, CorruptSnapshot)
DISK_ERRNOS = (errno.EIO, errno.ENOSPC, errno.EROFS)


@dataclass(slots=True)
class Process:
    """One process of a machine, from its start to its end."""

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
    key: ReplicaKey  # a wipe changes the directory id
    wall_offset_ms: int = 0
    clock_rate: float = 1.0
    # added before each piece of work submitted to the disk, and before its answer
    disk_delay_s: float = 0.0
    disk_delays: int = 0  # how often `disk_delay_s` was added
    process: Process | None = None
    stopping: bool = False
    may_fail: bool = False  # its disk fails, so the node may stop itself
    may_refuse: bool = False  # its directory is damaged, so the node may refuse to start
    # its disk lies about syncs, which a crash reveals because the page cache is lost
    lying: bool = False
    lost_metadata: bool = False  # its metadata directory was removed, and its id stayed
    metadata_losses: int = 0  # how often its metadata directory was removed
    flushed: int = 0  # the flushed offset of the metadata log when its latest process ended
    lost_below: int = 0
    """The node may have acknowledged records below this offset, and then lost them together with
    its metadata directory."""
    scarred: bool = False  # its disk has lied, so the node may stop whenever it meets the damage
    killed: bool = False  # the latest process ended by a kill or a power cut
    power_losses: int = 0
    wipes: int = 0

    @property
    def id(self) -> int:
        return self.config.node_id

    @property
    def is_broker(self) -> bool:
        return self.config.is_broker

    @property
    def is_controller(self) -> bool:
        return self.config.is_controller


class SimCluster:
    """The machines of one simulation, with the production classes of their nodes.

    Everything runs on the `SimLoop` that the caller passes. `failed` gets the first exception that
    a node raises or stops with. Each callback of `started` gets every process before it runs.
    `trace` collects the events of machines."""

    def __init__(self, loop: SimLoop, seed: int | str, shape: Shape) -> None:
        self.loop = loop
        self.seed = seed
        self.network = SimNetwork(loop, self.random("network"))
        self.network.streams = shape.streams
        if shape.distances:
            self.network.usual = distances(seed)
        self.network.identities = shape.identities
        self.started: list[Callable[[Machine, Process], None]] = []
        self.found_damage: Found = lambda machine, error: None
        """Called with the error of a running node that met damage, or with None if it does not
        start."""
        self.dying: list[Callable[[Machine, Process], None]] = []
        self.losing: list[Callable[[Machine], None]] = []
        """Callbacks, each called before a metadata directory is removed."""
        self.after_kills: dict[Uuid, None] = {}
        """The incarnations of processes that started after a kill or a power cut."""
        self.failed: asyncio.Future[None] = loop.create_future()
        self.trace: list[str] = []
        self._disk_random = self.random("disk")
        loop.set_exception_handler(self._unhandled)
        self.shape = shape
        self.cluster_id = uuid_to_text(random_uuid(self.random("cluster id")))
        self._directory_ids = self.random("directory ids")
        keys = {i: ReplicaKey(i, random_uuid(self._directory_ids)) for i in shape.roles()}
        voters = voters_of(shape, keys)
        self.machines: dict[str, Machine] = {}
        for node_id, role in shape.roles().items():
            config = node_config(node_id, role, shape)
            disk = SimDisk(self._disk_random)
            machine = Machine(name_of(node_id, role), config, disk, keys[node_id])
            self._format(machine, voters if node_id in shape.voter_ids else ())
            self.machines[machine.name] = machine

    def _format(self, machine: Machine, voters: Sequence[InitialVoter] = ()) -> None:
        format_directory(
            machine.disk,
            machine.config,
            cluster_id=self.cluster_id,
            directory_id=machine.key.directory_id,
            wall_ms=WALL_EPOCH_MS,
            voters=voters,
        )

    def wipe(self, machine: Machine, *, formatted: bool = True) -> None:
        """Give a machine without a process an empty disk and another directory id."""
        assert machine.process is None
        self.note(f"wipe {machine.name}")
        machine.disk = SimDisk(self._disk_random)
        machine.key = ReplicaKey(machine.id, random_uuid(self._directory_ids))
        machine.lost_metadata, machine.lost_below = False, 0
        machine.wipes += 1
        machine.power_losses += 1
        if formatted:
            self._format(machine)

    def lose_metadata(self, machine: Machine) -> None:
        """Remove the metadata directory of a machine without a process. The metadata mark and
        meta.properties stay, in the directory above."""
        assert machine.process is None
        self.note(f"{machine.name} loses its metadata directory")
        machine.disk = machine.disk.restart()
        for each in self.losing:
            each(machine)
        machine.lost_metadata = True
        machine.metadata_losses += 1
        machine.lost_below = max(machine.lost_below, machine.flushed)
        machine.disk.remove_tree(f"{machine.config.metadata_log_dir}/{METADATA_DIRECTORY}")
        machine.disk.sync_dir(machine.config.metadata_log_dir)

    def random(self, purpose: str) -> Random:
        """Return a random number generator for one purpose. One more draw for this purpose does not
        change the numbers of the others."""
        return Random(f"{self.seed}/{purpose}")

    # -- machines --------------------------------------------------------------------------------

    @property
    def controllers(self) -> list[Machine]:
        return [each for each in self.machines.values() if each.is_controller]

    @property
    def brokers(self) -> list[Machine]:
        return [each for each in self.machines.values() if each.is_broker]

    @property
    def combined(self) -> list[Machine]:
        return [each for each in self.brokers if each.is_controller]

    def addresses(self) -> dict[int, Address]:
        """Return the addresses for clients: the brokers', or the controllers' if there are no
        brokers."""
        nodes = [(each, CLIENT_PORT) for each in self.brokers]
        nodes = nodes or [(each, CONTROLLER_PORT) for each in self.controllers]
        return {each.id: Address(each.name, port) for each, port in nodes}

    def controller_addresses(self) -> dict[int, Address]:
        return {each.id: Address(each.name, CONTROLLER_PORT) for each in self.controllers}

    def start_all(self) -> None:
        for machine in self.machines.values():
            self.start(machine)

    def start(self, machine: Machine) -> None:
        assert machine.process is None, f"{machine.name} runs already"
        self.note(f"start {machine.name}")
        host = self.network.boot(machine.name)
        machine.disk = machine.disk.restart(self._disk_delay(machine, host))
        machine.disk.usual_calls = machine.disk.slow_calls = self._usual_calls(host)
        clock = SimClock(
            host,
            base_ms=CLOCK_BASE_MS * machine.id,
            wall_offset_ms=machine.wall_offset_ms,
            rate=machine.clock_rate,
        )
        random = Random(self._disk_random.getrandbits(64))
        seams = Seams(clock, random, SimTransport(self.network, host), machine.disk)
        try:
            core = NodeCore(machine.config, seams, lambda error: self._stopped(machine, error))
            if self.shape.identities:
                prove_identity(core, host)
            process = Process(host, clock, core)
            if machine.is_controller:
                process.controller = ControllerNode(core)
            if machine.is_broker:
                process.broker = BrokerNode(core)
        except Exception as error:
            allowed = machine.may_refuse or machine.scarred
            if not (allowed or (machine.may_fail and is_of_the_disk(error))):
                raise NodeStopped(machine.name, error) from error
            self.note(f"{machine.name} does not start: {error!r}")
            machine.disk.dead = True
            self.network.crash(host)
            if machine.scarred:
                self.found_damage(machine, None)
            return
        machine.process = process
        if machine.killed:
            self.after_kills[core.incarnation] = None
        for each in self.started:
            each(machine, process)
        host.spawn(_run(process)).add_done_callback(self.task_done)

    def stop(self, machine: Machine) -> None:
        """Stop a node as SIGTERM does. Its process ends some time later, or never if it hangs."""
        process = machine.process
        assert process is not None and not machine.stopping
        self.note(f"stop {machine.name}")
        machine.stopping = True

        async def stop() -> None:
            for node in (process.broker, process.controller):
                if node is not None:
                    await node.stop()
            process.core.close()
            process.core.release()
            self.loop.call_soon(gone)

        def gone() -> None:
            if machine.process is process:
                self._end(machine, "stopped")

        process.host.spawn(stop()).add_done_callback(self.task_done)

    def kill(self, machine: Machine) -> None:
        """End the process as kill -9 does. The disk keeps all written data, also unsynced data."""
        self._end(machine, "kill -9")

    def lose_power(self, machine: Machine, *, forgetful: bool = False) -> None:
        """End the process, if there is one, and lose an arbitrary part of the unsynced data, or all
        of it if `forgetful`."""
        if machine.process is not None:
            self._end(machine, "power loss", power_loss=True)
        machine.power_losses += 1
        machine.disk = machine.disk.crash(forgetful=forgetful)

    def _end(self, machine: Machine, how: str, *, power_loss: bool = False) -> None:
        process = machine.process
        assert process is not None
        self.note(f"{how} {machine.name}")
        for each in self.dying:
            each(machine, process)
        machine.flushed = process.core.log.flushed_offset
        machine.process = None
        machine.killed = how in ("kill -9", "power loss") and not machine.stopping
        machine.stopping = False
        machine.disk.dead = True
        self.network.crash(process.host, power_loss=power_loss)

    def _disk_delay(self, machine: Machine, host: Host) -> Callable[[Callable[[], None]], None]:
        random = self._disk_random

        def later(callback: Callable[[], None]) -> None:
            machine.disk_delays += machine.disk_delay_s > 0
            delay_s = machine.disk_delay_s + 0.00005 + 0.0005 * random.random() ** 4
            host.call_at(self.loop.time() + delay_s, callback)

        return later

    def _usual_calls(self, host: Host) -> Later | None:
        """Return a function that delays a call of the disk's thread, or None if calls take no
        time."""
        longest_s, random = self.shape.disk_call_s, self._disk_random

        def later(callback: Callable[[], None]) -> None:
            host.call_at(self.loop.time() + longest_s * random.random(), callback)

        return later if longest_s else None

    # -- the state of the cluster ----------------------------------------------------------------

    def note(self, event: str) -> None:
        self.trace.append(f"{self.loop.time():10.4f} {event}")

    def is_past(self, node_id: int) -> bool:
        """Return True if a node runs that does not know the latest generation of the quorum."""
        latest = max(map(generation_of, self.machines.values()))
        nodes = (each for each in self.machines.values() if each.id == node_id and each.process)
        return any(generation_of(each) < latest for each in nodes)

    def active_controllers(self) -> list[Machine]:
        """Return the active controllers of the latest generation of the quorum."""
        latest = max(map(generation_of, self.machines.values()))
        return [
            each
            for each in self.controllers
            if each.process is not None
            and each.process.controller is not None
            and each.process.controller.shell.active
            and generation_of(each) == latest
        ]

    def newest_image(self) -> MetadataImage:
        """Return the committed image of the node that is furthest ahead."""
        images = [
            (generation_of(each), each.process.core.image)
            for each in self.machines.values()
            if each.process
        ]
        return max(
            images,
            key=lambda found: (found[0], found[1].last.offset),
            default=(0, MetadataImage()),
        )[1]

    def is_registered(self, machine: Machine) -> bool:
        """Return True if the broker runs and the metadata log has the registration of this
        incarnation."""
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

    def _stopped(self, machine: Machine, error: BaseException) -> None:
        """Handle a node that stopped itself. This fails the run, except if the node's disk fails,
        if the node met damage of its disk, or if its broker was unregistered."""
        damaged = machine.scarred and isinstance(error, DAMAGE)
        if isinstance(error, BrokerUnregistered) and machine.process is not None:
            self._stops_unregistered(machine, machine.process)
        elif not (damaged or (machine.may_fail and is_of_the_disk(error))):
            self.fail(NodeStopped(machine.name, error))
        elif machine.process is not None:
            self.note(f"{machine.name} stops itself: {error!r}")
            process = machine.process
            self.loop.call_soon(lambda: self._gone(machine, process, error))

    def _stops_unregistered(self, machine: Machine, process: Process) -> None:
        """End the process of a broker that was unregistered while it ran. Start the broker again
        after a second, as an operator does."""
        self.note(f"{machine.name} stops: it was unregistered")
        self.loop.call_soon(lambda: self._gone(machine, process))

        def again() -> None:
            if machine.process is None and not (machine.may_fail or self.failed.done()):
                self.start(machine)

        self.loop.call_later(1.0, again)

    def _gone(self, machine: Machine, process: Process, error: BaseException | None = None) -> None:
        if machine.process is process:
            self._end(machine, "failed")
            if machine.scarred:
                self.found_damage(machine, error)

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or AssertionError(context["message"])
        self._raised(error, NodeStopped("a node", error))

    def task_done(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._raised(error, error)

    def faults_done(self, task: asyncio.Task[Any]) -> None:
        """Fail the run if the task that draws faults has failed. A PowerCut fails the run, too,
        because this task belongs to no machine that could lose power."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)

    def _raised(self, error: BaseException, failure: BaseException) -> None:
        """Handle an exception that no code caught. Damage of a log stops the node that read it, and
        an error of a failing disk stops the nodes with such disks. Any other error except a
        PowerCut fails the run."""
        failing = [each for each in self.machines.values() if each.may_fail and each.process]
        if isinstance(error, AssertionError):
            self.fail(error)
        elif isinstance(error, CorruptLog):
            self._reader_of(error).fail(error)
        elif failing and is_of_the_disk(error):
            for machine in failing:
                assert machine.process is not None
                machine.process.core.fail(error)  # as the handler of a real event loop does
        elif not isinstance(error, PowerCut):
            self.fail(failure)

    def _reader_of(self, damage: CorruptLog) -> NodeCore:
        machine = self.machines[machine_of(damage.path)]
        assert machine.process is not None
        return machine.process.core

    def close(self) -> None:
        """End all processes, so that the result does not depend on the order of garbage
        collection."""
        for machine in self.machines.values():
            if machine.process is not None:
                machine.disk.dead = True
                self.network.crash(machine.process.host)
                machine.process = None


def generation_of(machine: Machine) -> int:
    """Return the generation of the quorum as the machine's process knows it, or -1 if no process
    runs."""
    process = machine.process
    return -1 if process is None else len(process.core.generations.rebuilds)


class NodeStopped(Exception):
    """The error of a node that cannot continue: it stopped itself, or raised an exception that no
    code caught."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(f"{name}: {error!r}")
        self.__cause__ = error


def is_of_the_disk(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in DISK_ERRNOS:
            return True
        error = error.__cause__ or error.__context__
    return False


async def _run(process: Process) -> None:
    for node in (process.controller, process.broker):
        if node is not None:
            await node.start()
    process.core.start()

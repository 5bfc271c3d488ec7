"""The faults as data that can be repeated: the kind, the target, the time and the duration.

Faults stay within the fault model, so that every failure is a bug (`limits.py`). A process is
killed at any time, and `kill -9` keeps the written bytes. A controller loses power at any time, a
broker only while other brokers surely keep its records. `damage.py` damages stored bytes. A fault
that is not allowed at the moment does nothing, and it spares the nodes that are protected at the
moment. A schedule therefore stays within the fault model if parts of it are left out. `effects.py`
counts the faults that had an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from tests.sim.checks.electorate import Electorate
from tests.sim.faults.crashes import Crashes
from tests.sim.faults.damage import Damage
from tests.sim.faults.disk_faults import DISK_FAULTS
from tests.sim.faults.effects import Effects
from tests.sim.faults.limits import BESIDE, Limits
from tests.sim.world.cluster import Machine, SimCluster

Undo = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. `seed` decides everything else about it that is random."""

    kind: str
    at_s: float
    lasts_s: float = 0.0
    names: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    values: dict[str, float] = field(default_factory=dict)
    seed: int = 0

    def __str__(self) -> str:
        words = [f"{self.at_s:.4f} {self.kind}", *self.names]
        if self.others:
            words += ["|", *self.others]
        words += [f"{name}={value:.4g}" for name, value in self.values.items()]
        return " ".join([*words, f"for {self.lasts_s:.3f} s"])


class Faults:
    """Carries out faults, and undoes them when they end."""

    def __init__(self, cluster: SimCluster, electorate: Electorate) -> None:
        self.done: list[Fault] = []
        self.effects = Effects()
        self._cluster = cluster
        self._electorate = electorate
        self.limits = Limits(cluster, electorate, lambda: self._undo.values())
        self.damage = Damage(cluster, self.limits, self.effects, self._undo_later)
        self.could_scar = self.damage.could_scar
        crashes = Crashes(cluster, self.limits, self.damage, self.effects, self._restart)
        self._undo: dict[Undo, Fault] = {}
        self._kinds: dict[str, Callable[[Fault], Undo | None]] = {
            "kill": self._kill,
            "lose_power": self._lose_power,
            "wipe": self._wipe,
            "lose_metadata": self._lose_metadata,
            "stop": self._stop,
            "kill_all": self._kill_all,
            "outage": self._outage,
            "pause": self._pause,
            "step_clock": self._step_clock,
            "slow_disk": self._slow_disk,
            "slow_calls": self._slow_calls,
            **dict.fromkeys(DISK_FAULTS, self._bad_disk),
            **self.damage.kinds,
            "crash_at_call": crashes.carry_out,
            "partition": partial(self._block, both_ways=True),
            "partition_one_way": partial(self._block, both_ways=False),
            "isolate": partial(self._block, both_ways=True),
            "bridge": partial(self._block, both_ways=True),
            "break_links": self._break_links,
            "refuse": self._refuse,
            "unread": self._leave_unread,
            "narrow": self._narrow,
            "slow": self._shape,
            "lossy": self._shape,
        }

    @property
    def under_way(self) -> int:
        return len(self._undo)

    def carry_out(self, fault: Fault) -> None:
        self.limits.look()
        if protected := self.limits.protected():
            fault = replace(
                fault,
                names=tuple(each for each in fault.names if each not in protected),
                others=tuple(each for each in fault.others if each not in protected),
            )
            if fault.kind not in BESIDE or len(fault.names) < (1, 2)[fault.kind == "break_links"]:
                return
        self._cluster.note(f"fault: {fault}")
        undo = self._kinds[fault.kind](fault)
        self.done.append(fault)
        if undo is not None:
            self._undo_later(undo, fault.lasts_s, fault)

    def _undo_later(self, undo: Undo, delay_s: float, fault: Fault) -> None:
        self._undo[undo] = fault
        loop = self._cluster.loop
        loop.call_at(loop.time() + delay_s, self._end, undo)

    def heal(self, controllers: Sequence[Machine] | None = None) -> None:
        """End all faults, and start every machine. With `controllers`, run only these controllers
        and all brokers."""
        self._cluster.note("heal" if controllers is None else "heal some")
        for undo in list(self._undo):
            self._end(undo)
        self._cluster.network.heal()
        for machine in self._cluster.machines.values():
            machine.disk_delay_s = 0.0
            running = machine.process is not None
            if machine.is_broker or controllers is None or machine in controllers:
                if not running:
                    self._cluster.start(machine)
            elif running:
                self._cluster.kill(machine)

    def _end(self, undo: Undo) -> None:
        if undo in self._undo:
            del self._undo[undo]
            undo()

    def _machines(self, fault: Fault) -> list[Machine]:
        return [self._cluster.machines[name] for name in fault.names]

    def _running(self, fault: Fault) -> list[Machine]:
        return [each for each in self._machines(fault) if each.process is not None]

    # -- machines --------------------------------------------------------------------------------

    def _restart(self, machines: Sequence[Machine]) -> Undo:
        def undo() -> None:
            for machine in machines:
                if machine.process is not None and machine.stopping:
                    self._cluster.kill(machine)  # it did not stop in time
                if machine.process is None:
                    self._cluster.start(machine)

        return undo

    def _kill(self, fault: Fault) -> Undo:
        machines = self._running(fault)
        self.effects.mark(fault, machines)
        for machine in machines:
            self._cluster.kill(machine)
        return self._restart(machines)

    def _lose_power(self, fault: Fault) -> Undo | None:
        machines = [each for each in self._running(fault) if self.limits.may_lose_unsynced(each)]
        self.effects.mark(fault, machines)
        for machine in machines:
            self.damage.cut_power(machine)
            self.limits.lost_data(machine)
        return self._restart(machines)

    def _wipe(self, fault: Fault) -> Undo | None:
        """Wipe the disk of a machine. A controller comes back as another replica, and a broker
        without any of its records."""
        (machine,) = self._machines(fault)
        if machine.process is None or not self.limits.may_lose_unsynced(machine):
            return None
        if machine.is_controller:
            if not self._electorate.may_wipe(machine):
                return None
            self._electorate.wiped(machine.key)
        self.effects.mark(fault)
        self._cluster.kill(machine)
        self._cluster.wipe(machine)
        machine.lying = machine.scarred = False
        self.limits.lost_data(machine)
        return self._restart([machine])

    def _lose_metadata(self, fault: Fault) -> Undo | None:
        """Remove the metadata directory of a controller, but not its meta.properties. The
        controller does not vote before it has caught up, so the others must be able to elect a
        leader."""
        (machine,) = self._machines(fault)
        if machine.process is None or not self._electorate.may_be_silent(machine):
            return None
        self.effects.mark(fault)
        self._cluster.kill(machine)
        self._cluster.lose_metadata(machine)
        return self._restart([machine])

    def _stop(self, fault: Fault) -> Undo:
        """Stop nodes as SIGTERM does: with a controlled shutdown, or with a handover of the
        quorum's leadership."""
        machines = [each for each in self._running(fault) if not each.stopping]
        self.effects.mark(fault, machines)
        for machine in machines:
            self._cluster.stop(machine)
        return self._restart(machines)

    def _kill_all(self, fault: Fault) -> Undo:
        machines = self._running(fault)
        self.effects.mark(fault, len(machines) > 1)
        random = Random(fault.seed)
        for machine in machines:
            if machine.is_broker or random.getrandbits(1):
                self._cluster.kill(machine)
            else:
                self.damage.cut_power(machine)
        return self._restart(machines)

    def _outage(self, fault: Fault) -> Undo:
        """Let machines go down one after the other in half of the time, and return in another
        order. A machine that returns has fewer records than those that went down later."""
        machines, random = self._running(fault), Random(fault.seed)
        returning = random.sample(machines, len(machines))
        gap_s = fault.lasts_s / (2 * len(machines) + 1)
        over: list[bool] = []

        def down(machine: Machine) -> None:
            self.limits.look()
            if machine.process is not None and machine.name not in self.limits.protected():
                self.effects.mark(fault)
                self._cluster.kill(machine)

        def up(machine: Machine) -> None:
            if machine.process is None and not machine.may_fail:
                self._cluster.start(machine)

        def later(number: int, move: Callable[[Machine], None], machine: Machine) -> None:
            def moved() -> None:
                if not over:
                    move(machine)

            loop = self._cluster.loop
            loop.call_at(loop.time() + number * gap_s, moved)

        for number, machine in enumerate(machines):
            later(number, down, machine)
        for number, machine in enumerate(returning, len(machines)):
            later(number, up, machine)
        restart = self._restart(machines)

        def undo() -> None:
            over.append(True)
            restart()

        return undo

    def _pause(self, fault: Fault) -> Undo:
        hosts = [each.process.host for each in self._running(fault) if each.process]
        for host in hosts:
            host.pause()

        def undo() -> None:
            for host in hosts:
                self._cluster.note(f"resume {host.name}")
                self.effects.mark(fault, host.held)
                host.resume()

        return undo

    def _step_clock(self, fault: Fault) -> None:
        for machine in self._machines(fault):
            machine.wall_offset_ms = int(fault.values["offset_ms"])
            if machine.process is not None:
                self.effects.mark(fault)
                machine.process.clock.wall_offset_ms = machine.wall_offset_ms

    # -- disks -----------------------------------------------------------------------------------

    def _slow_disk(self, fault: Fault) -> Undo:
        (machine,) = self._machines(fault)
        machine.disk_delay_s = fault.values["delay_s"]
        before = machine.disk_delays

        def undo() -> None:
            machine.disk_delay_s = 0.0
            self.effects.mark(fault, machine.disk_delays - before)

        return undo

    def _slow_calls(self, fault: Fault) -> Undo | None:
        """Let each call of the disk's thread take a while, during which the event loop
        continues."""
        (machine,) = self._machines(fault)
        if machine.process is None:
            return None
        disk, host, random = machine.disk, machine.process.host, Random(fault.seed)
        before = disk.overlaps

        def later(callback: Callable[[], None]) -> None:
            delay_s = random.uniform(0, fault.values["longest_s"])
            host.call_at(self._cluster.loop.time() + delay_s, callback)

        disk.slow_calls = later

        def undo() -> None:
            disk.slow_calls = disk.usual_calls
            self.effects.mark(fault, disk.overlaps - before)

        return undo

    def _bad_disk(self, fault: Fault) -> Undo | None:
        """Make the disk fail. The node stops, or continues without the failed operation. `undo`
        mends the disk and boots the machine."""
        (machine,) = self._machines(fault)
        if machine.process is None or not self.limits.may_lose_unsynced(machine):
            return None
        mended = self.damage.failing(machine, fault)

        def undo() -> None:
            mended()
            if self.limits.may_lose_unsynced(machine):
                self.damage.cut_power(machine)
                self.limits.lost_data(machine)
            if machine.process is None:
                self._cluster.start(machine)

        return undo

    # -- network ---------------------------------------------------------------------------------

    def _hindered(self, fault: Fault, pairs: Sequence[tuple[str, str]]) -> Undo:
        """Return a function that counts the fault if it hindered something on these paths since
        now."""
        paths = [self._cluster.network.path(*pair) for pair in pairs]
        before = sum(path.hindered for path in paths)

        def felt() -> None:
            self.effects.mark(fault, sum(path.hindered for path in paths) > before)

        return felt

    def _block(self, fault: Fault, *, both_ways: bool) -> Undo:
        network = self._cluster.network
        pairs = [(a, b) for a in fault.names for b in fault.others if a != b]
        if both_ways:
            pairs += [(b, a) for a, b in pairs]
        for source, target in pairs:
            network.block(source, target)
        felt = self._hindered(fault, pairs)

        def undo() -> None:
            felt()
            self._cluster.note(f"no longer: {fault}")
            for source, target in pairs:
                network.unblock(source, target)

        return undo

    def _leave_unread(self, fault: Fault) -> Undo:
        """Let processes leave their sockets unread. Arriving data stays in the kernels, and then at
        the sender."""
        network = self._cluster.network
        pairs = [(a, b) for a in fault.names for b in fault.others if a != b]
        paths = [network.path(*pair) for pair in pairs]
        before = sum(path.kept for path in paths)
        for source, target in pairs:
            network.leave_unread(source, target)

        def undo() -> None:
            self.effects.mark(fault, sum(path.kept for path in paths) > before)
            for source, target in pairs:
                network.read_again(source, target)

        return undo

    def _narrow(self, fault: Fault) -> Undo:
        """Let kernels take few bytes at a time, so that frames are written and read in parts."""
        paths = [
            self._cluster.network.path(a, b) for a in fault.names for b in fault.others if a != b
        ]
        before = sum(path.squeezed for path in paths)
        for path in paths:
            path.kernel_bytes = int(fault.values["kernel_bytes"])

        def undo() -> None:
            self.effects.mark(fault, sum(path.squeezed for path in paths) > before)
            for path in paths:
                path.kernel_bytes = 0

        return undo

    def _break_links(self, fault: Fault) -> None:
        """Close links while both ends live, which is a false hint that a process has ended."""
        self.effects.mark(fault, self._cluster.network.break_links(*fault.names))

    def _refuse(self, fault: Fault) -> Undo:
        """Break links to a live peer, and let it refuse new ones. A node has no better evidence
        that the peer has died, and here this evidence is false."""
        network = self._cluster.network
        (target,) = fault.names
        for source in fault.others:
            network.refuse(source, target)
            network.break_links(source, target)
        felt = self._hindered(fault, [(source, target) for source in fault.others])

        def undo() -> None:
            felt()
            self._cluster.note(f"no longer: {fault}")
            for source in fault.others:
                network.path(source, target).refused = False

        return undo

    def _shape(self, fault: Fault) -> Undo:
        network = self._cluster.network
        pairs = [(a, b) for a in fault.names for b in fault.others if a != b]
        for source, target in pairs:
            network.shape(source, target, **fault.values)
        felt = self._hindered(fault, pairs)

        def undo() -> None:
            felt()
            self._cluster.note(f"no longer: {fault}")
            for source, target in pairs:
                path = network.path(source, target)
                path.settings = path.usual

        return undo

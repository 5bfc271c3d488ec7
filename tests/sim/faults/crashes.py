"""Crashes at a drawn call of a disk: the process ends just before it renames, cuts or syncs a file.

A kill at a drawn time hardly ever comes between two disk calls that belong together, such as the
two renames that replace a segment. This fault waits for a call of a drawn kind, passes over a drawn
number of later calls, and ends the process before the next one. In some cases the machine loses
power, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tests.sim.faults.effects import Effects
from tests.sim.faults.limits import Limits
from tests.sim.world.cluster import Machine, Process, SimCluster

if TYPE_CHECKING:
    from tests.sim.faults.damage import Damage
    from tests.sim.faults.faults import Fault

Undo = Callable[[], None]
CALLS = (
    ("rename", ".cleaned"),
    ("rename", ".cleaned"),
    ("rename", ".swap"),
    ("rename", "-future"),
    ("rename", "checkpoint"),
    ("remove", ""),
    ("truncate", ".log"),
    ("sync", ".log"),
    ("sync_dir", ""),
)
"""The kinds of calls: the operation, and a part of the path."""
LATER = (0, 0, 1, 1, 2, 3, 5)
"""The numbers of further calls before which the process may end."""
POWER_LOSS_ONE_IN = 3
UNCHANGING = ("open", "exists", "is_dir", "list", "pread", "size")
"""Operations that leave the disk as it is. They are not counted."""
PAUSE_S = 0.2
SHARE = 0.1
"""The share of the seeds with such crashes, in addition to their other faults."""
LONGEST_S = 3.0
RESTART_S = 0.3
"""The virtual time from a crash to the next start. The fault may end earlier."""


class Crashes:
    """Carries out these faults. `restart` returns the function that starts machines again."""

    def __init__(
        self,
        cluster: SimCluster,
        limits: Limits,
        damage: Damage,
        effects: Effects,
        restart: Callable[[Sequence[Machine]], Undo],
    ) -> None:
        self._cluster = cluster
        self._limits = limits
        self._damage = damage
        self._effects = effects
        self._restart = restart

    def carry_out(self, fault: Fault) -> Undo | None:
        """Wait for the call until the fault ends. Start the machine again after a crash."""
        (machine,) = (self._cluster.machines[name] for name in fault.names)
        process, disk = machine.process, machine.disk
        if process is None or machine.may_fail:
            return None
        wanted, part = CALLS[int(fault.values["call"])]
        left = [int(fault.values["later"])]
        matched: list[bool] = []
        restart = self._restart([machine])

        def dies_before(operation: str, path: str) -> bool:
            if operation in UNCHANGING or machine.process is not process:
                return False
            if not matched:
                if operation != wanted or part not in path:
                    return False
                matched.append(True)
            if left[0] > 0:
                left[0] -= 1
                return False
            disarm()
            self._limits.look()
            if machine.may_fail or machine.name in self._limits.protected():
                return False
            self._cluster.note(f"{machine.name} crashes before {operation} {path}")
            process.host.pause()  # no event reaches the process any more
            loop = self._cluster.loop
            loop.call_soon(self._end, machine, process, fault)
            loop.call_at(loop.time() + RESTART_S, start_early)
            return True

        def disarm() -> None:
            disk.dies_before = lambda operation, path: False

        over: list[bool] = []

        def start_early() -> None:
            if not over and machine.process is None and not machine.may_fail:
                restart()

        def undo() -> None:
            over.append(True)
            disarm()
            restart()

        disk.dies_before = dies_before
        return undo

    def _end(self, machine: Machine, process: Process, fault: Fault) -> None:
        if machine.process is not process:
            return
        self._effects.mark(fault)
        if fault.values["power_loss"] and self._limits.may_lose_unsynced(machine):
            self._damage.cut_power(machine)
            self._limits.lost_data(machine)
        else:
            self._cluster.kill(machine)

"""Controllers that the faults cut off from all other nodes.

No message reaches such a controller, so it cannot win a vote. Pre-vote keeps its epoch as it is
(Raft §9.6). A leader that is cut off resigns, because no majority fetches from it (check-quorum),
and enters the next epoch without a vote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from quorate.quorum.raft.effects import Role
from tests.sim.world.cluster import Machine, Process, SimCluster
from tests.sim.world.network import Path

QUIET_S = 1.0
"""After this time no message is in flight any more."""
RESIGNS_S = 2.2
"""A leader resigns after 1.5 fetch timeouts of 1 s, by its own clock."""


@dataclass(slots=True)
class Spell:
    """A time during which one process was cut off and did not pause."""

    process: Process
    since_s: float
    latest: int | None = None
    """The latest epoch that the process may enter, or None until the last message has arrived."""


class CutOff:
    """Checks the controllers that are cut off. `checks` counts the spells that were long enough to
    prove something."""

    def __init__(self, cluster: SimCluster) -> None:
        self.checks: Counter[str] = Counter()
        self._cluster = cluster
        self._spells: dict[str, Spell] = {}

    def look(self, machine: Machine, process: Process) -> str:
        """Return the fault of a running controller that is cut off, or "". Call it in every
        sweep."""
        raft = process.core.replica.raft
        spell = self._spells.get(machine.name)
        if process.host.paused or len(raft._core.voters.ids) < 2 or not self._is_cut_off(machine):
            self._spells.pop(machine.name, None)
            return ""
        now_s = self._cluster.loop.time()
        since_s = self._cut_off_since_s(machine)
        if spell is None or spell.process is not process or since_s > spell.since_s:
            # Between two sweeps a path may have been free and may have delivered what it held back.
            self._spells[machine.name] = Spell(process, now_s)
            return ""
        if now_s < spell.since_s + QUIET_S:
            return ""
        if spell.latest is None:
            leads = raft.role in (Role.LEADER, Role.RESIGNED)
            spell.latest = raft.epoch + leads
            self.checks["epoch of a node that is cut off"] += 1
        if raft.epoch > spell.latest:
            return f"{machine.name} is cut off, and enters epoch {raft.epoch}"
        if now_s >= spell.since_s + RESIGNS_S and raft.role is Role.LEADER:
            return f"{machine.name} is cut off for {RESIGNS_S} s, and leads epoch {raft.epoch} on"
        return ""

    def _paths(self, machine: Machine) -> Iterator[Path]:
        for other in self._cluster.machines:
            if other != machine.name:
                yield self._cluster.network.path(machine.name, other)
                yield self._cluster.network.path(other, machine.name)

    def _is_cut_off(self, machine: Machine) -> bool:
        return all(path.blocked for path in self._paths(machine))

    def _cut_off_since_s(self, machine: Machine) -> float:
        return max(path.blocked_at_s for path in self._paths(machine))

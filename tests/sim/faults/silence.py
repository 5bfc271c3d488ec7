"""The check that a controller without its metadata directory votes for no other controller until it
has its records again.

It may have acknowledged records that only one other voter has. Its vote could elect a leader
without them (KAFKA-12181). The check knows the committed records, and reads the votes from the
disks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.sim.checks.persisted_votes import durable_election
from tests.sim.world.cluster import Machine


@dataclass(frozen=True, slots=True)
class Loss:
    """The facts about a controller at the moment when it lost its metadata directory."""

    epoch: int
    """The last epoch in its election file."""
    acknowledged: int
    """The end of the committed records that it may have acknowledged."""


class Silence:
    """The controllers that lost their directory and have not caught up since.

    `committed` returns the end of the committed records. `checks` counts the votes that were
    checked."""

    def __init__(self, committed: Callable[[], int]) -> None:
        self.checks: Counter[str] = Counter()
        self._committed = committed
        self._losses: dict[str, Loss] = {}

    def losing(self, machine: Machine) -> None:
        """Record the state of a controller before its metadata directory is removed."""
        before = self._losses.get(machine.name, Loss(0, 0))
        election = durable_election(machine)
        self._losses[machine.name] = Loss(
            max(before.epoch, 0 if election is None else election.epoch),
            max(before.acknowledged, min(machine.flushed, self._committed())),
        )

    def look(self, machine: Machine) -> str:
        """Return the fault of the vote on the disk of a running controller, or ""."""
        loss, process = self._losses.get(machine.name), machine.process
        if loss is None or process is None:
            return ""
        end = process.core.end_offset
        if not machine.lost_metadata or end >= loss.acknowledged:
            del self._losses[machine.name]
            return ""
        self.checks["votes of controllers that lost their records"] += 1
        found = durable_election(machine)
        voted = None if found is None else found.voted
        if found is None or voted is None or found.epoch <= loss.epoch:
            return ""
        if voted.id == machine.id:  # with this vote it can vote for no other replica in the epoch
            return ""
        return (
            f"{machine.name} lost its metadata, its log ends at {end} before {loss.acknowledged}, "
            f"and it voted for {voted} in epoch {found.epoch}"
        )

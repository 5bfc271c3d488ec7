"""The verdicts of the checks of histories, and the number of histories that stayed undecided."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tests.sim.checks.linearizability import Operation, Undecided, linearization

State = TypeVar("State", bound=Hashable)
MOST_UNDECIDED = 0.01
"""The share of the histories of a campaign that may stay undecided."""
FEWEST_HISTORIES = 100
"""A campaign with fewer histories is too small for the share to mean anything."""


@dataclass(slots=True)
class Verdicts:
    """The number of histories that were checked. Each undecided one is also a checked one."""

    checked: int = 0
    undecided: int = 0

    def explained(self, history: Sequence[Operation[State]], initial: State) -> bool | None:
        """Return True if some order explains the history, False if none does, and None if the
        search gave up."""
        self.checked += 1
        try:
            return linearization(history, initial) is not None
        except Undecided:
            self.undecided += 1
            return None


def too_many_undecided(checked: int, undecided: int) -> str:
    """Return the reason why a campaign proves too little, or ""."""
    if checked < FEWEST_HISTORIES or undecided <= MOST_UNDECIDED * checked:
        return ""
    return f"{undecided} of {checked} histories are undecided, more than {MOST_UNDECIDED:.0%}"

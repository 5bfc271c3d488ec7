"""The faults that had an effect, counted by kind.

A fault that is drawn may hit nothing: the node is down, no frame is in flight, no disk call comes.
Only effects show that a kind of fault tests anything.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sim.faults.faults import Fault


class Effects:
    """Counts the faults that had an effect. Each fault counts once, however many effects it has."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._marked: dict[int, Fault] = {}

    def mark(self, fault: Fault, effect: object = True) -> None:
        """Count the fault if `effect` is true and it does not count yet."""
        if effect and id(fault) not in self._marked:
            self._marked[id(fault)] = fault
            self.counts[fault.kind] += 1

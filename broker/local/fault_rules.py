"""The faults of a local cluster: which fault rules each node has because of all of them.

A fault stays in force when its node is restarted, until `heal`. The thread of the event loop owns
the object."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from quorate.broker.local.errors import WrongState
from quorate.quorum.faults.rules import Rules

DISK_FULL = ("/",)
"""The paths below which a full disk accepts no write: all."""


Nodes = int | Iterable[int]
"""One node id, or several."""


def pairs(a: Nodes, b: Nodes) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a node of `a` and one of `b`. Raise WrongState if both are the same."""
    sides = ([each] if isinstance(each, int) else list(each) for each in (a, b))
    for pair in product(*sides):
        if pair[0] == pair[1]:
            raise WrongState(f"node {pair[0]} cannot be separated from itself")
        yield pair[0], pair[1]


@dataclass(slots=True)
class ClusterFaults:
    """All faults of a cluster, but for pauses."""

    severed: dict[tuple[int, int], bool] = field(default_factory=dict)
    """The separated pairs of nodes. The value is True if their links stay open."""
    one_way: dict[tuple[int, int], None] = field(default_factory=dict)
    """The pairs of a sender and a receiver that does not receive what it sends."""
    slow: dict[int, dict[str, int]] = field(default_factory=dict)
    """The rules of slow links and slow disks by node, such as `delay_ms`."""
    full: dict[int, asyncio.Event] = field(default_factory=dict)
    """The nodes whose disks are full, with an event that is set when the node stops for that."""

    def clear(self) -> None:
        """End all faults."""
        for each in (self.severed, self.one_way, self.slow, self.full):
            each.clear()

    def stops(self, node_id: int | None, error: BaseException) -> bool:
        """Return True, and set the event, if a node stops with this error for its full disk."""
        full = None if node_id is None else self.full.get(node_id)
        if full is None or getattr(error, "errno", None) != errno.ENOSPC:
            return False
        full.set()
        return True

    def slow_down(self, node_id: int, **rules: int) -> None:
        """Add rules to the slow links and disks of a node. The value 0 ends a rule.

        Raise RulesError if a value is not valid."""
        kept: dict[str, Any] = {**self.slow.get(node_id, {}), **rules}
        Rules(**kept)
        self.slow[node_id] = kept

    def rules_of(self, node_id: int, now: Rules) -> Rules:
        """Return the rules of a node, which keeps its pause of `now`."""
        peers: dict[bool, list[int]] = {False: [], True: []}
        for (a, b), silent in self.severed.items():
            if node_id in (a, b):
                peers[silent].append(b if node_id == a else a)
        found = Rules(
            cut=tuple(peers[False]),
            hold=tuple(peers[True]),
            hold_to=tuple(to for sender, to in self.one_way if sender == node_id),
            disk_full=DISK_FULL if node_id in self.full else (),
            paused=now.paused,
        )
        slow: dict[str, Any] = dict(self.slow.get(node_id, {}))
        return replace(found, **slow)

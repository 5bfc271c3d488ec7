"""The observations of the client that writes to one broker only, also when it does not lead. Pure.

Times are in ms since the start of the run, unless a name says otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from quorate.cli.chaos.timeline.timeline import StateInterval

GRACE_MS = 250
"""Time, in ms after a change of leader, in which the old leader may still acknowledge writes.

A follower that does not know the new leader yet may confirm such a write. The new leader then has
it, too."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error that a pinned client received for a batch, and the time at which it was sent."""

    partition: int
    ms: int
    error: str


@dataclass(slots=True, kw_only=True)
class Pinned:
    """The results of the client that wrote to one broker only."""

    node: int
    from_ms: int
    until_ms: int = 0
    acknowledged: int = 0
    """The number of acknowledged records."""
    refused: Counter[str] = field(default_factory=Counter)
    """The number of errors by name."""
    refusals: list[Refusal] = field(default_factory=list)
    """The first MAX_REFUSALS errors (`writer.py`)."""
    successes: list[tuple[int, int]] = field(default_factory=list)
    """(partition, time at which the batch was sent) of each acknowledged batch."""
    diverged: int = 0
    """The records in the broker's log that the new leaders did not have when the fault ended."""

    def late(self, leadership: Sequence[StateInterval]) -> list[tuple[int, int]]:
        """Return (partition, time) of the acknowledged batches sent while another broker led.

        Batches sent within GRACE_MS after the change of the leader do not count."""
        return [
            (partition, ms)
            for partition, ms in self.successes
            if not_led(self.node, partition, ms, leadership, GRACE_MS)
        ]

    def refusals_without_lead(self, leadership: Sequence[StateInterval]) -> list[Refusal]:
        """Return the errors for batches that were sent while another broker led."""
        return [
            each
            for each in self.refusals
            if not_led(self.node, each.partition, each.ms, leadership, 0)
        ]


def not_led(
    node: int, partition: int, ms: int, leadership: Sequence[StateInterval], grace_ms: int
) -> bool:
    """Return True if another node, or none, led the partition for `grace_ms` before `ms`."""
    return any(
        interval.subject == partition
        and interval.start_ms + grace_ms < ms <= interval.end_ms
        and interval.leader != node
        for interval in leadership
    )

"""The outcome of one run of a rehearsal, and the distribution of the outcomes of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MEASURES = (
    "unclean_elections", "leaderless_ms", "longest_leaderless_ms", "leaderless_partitions",
    "below_min_ms", "below_min_partitions", "waiting_ms", "recovery_ms", "leader_moves",
)  # fmt: skip
"""The measures of an outcome. The first ones say more about how bad a run was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one seed. Sums are over all partitions. All times are in ms.

    Troubles that a partition already had at the beginning do not count for it."""

    seed: int
    brokers: tuple[int, ...]
    """The brokers that the scenario concerned."""
    leaderless_ms: int
    longest_leaderless_ms: int
    leaderless_partitions: int
    below_min_ms: int
    """With a leader, but with an ISR below min.insync.replicas."""
    below_min_partitions: int
    waiting_ms: int
    """With a leader, but with a dead replica in the ISR, for which acks=all waits."""
    unclean_elections: int
    leader_moves: int
    recovery_ms: int | None
    """The time from the first fault until all these troubles had ended, or None if one remained."""
    duration_ms: int
    """The length of the run from the first fault. Troubles that remained count up to its end."""
    events: tuple[tuple[int, str], ...] = ()
    """Times since the first fault with sentences. Empty unless the caller asked for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The spread of one measure over the runs.

    A run without recovery counts as longer than all others, and is None here."""

    smallest: int | None
    median: int | None
    p95: int | None
    largest: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """The outcomes of all seeds of one scenario at one moment.

    `offset` and `timestamp_ms` are those of the moment. `not_recovered` counts the runs in which a
    trouble remained. `worst` is the run that is worst by the measures, in the order of MEASURES."""

    scenario: str
    offset: int
    timestamp_ms: int
    partitions: int
    outcomes: tuple[Outcome, ...]
    spreads: dict[str, Spread]
    not_recovered: int
    worst: Outcome


def spread(values: Sequence[int | None]) -> Spread:
    """Return the spread of at least one value. Ranks are the nearest ones, rounded up."""
    ordered = sorted(values, key=lambda each: (each is None, each or 0))

    def ranked(percent: int) -> int | None:
        return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]

    return Spread(smallest=ordered[0], median=ranked(50), p95=ranked(95), largest=ordered[-1])


def badness(outcome: Outcome) -> tuple[float, ...]:
    """Return the measures in the order in which runs are compared. A missing recovery is worst."""
    values = (getattr(outcome, name) for name in MEASURES)
    return tuple(float("inf") if each is None else float(each) for each in values)

"""The evidence of a run, from which the checks compute the verdict. Pure.

A run that ends early leaves observations out; each check says what it then lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from quorate.cli.chaos.checks.availability import Availability
from quorate.cli.chaos.checks.faults import Fault
from quorate.cli.chaos.checks.observations import (
    AdminWaits,
    Expiry,
    GroupReads,
    MetadataWrites,
    Reassignment,
    Resignation,
)
from quorate.cli.chaos.checks.pinned_client import Pinned
from quorate.cli.chaos.timeline.timeline import StateInterval
from quorate.cli.chaos.workload.comparison import Verdict
from quorate.cli.chaos.workload.latencies import KINDS, Latencies, Summary, summary

PHASES = ("before", "during", "after")
"""The names of the times before, during and after the faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that the checks use."""

    compared: Verdict
    """The comparison of the written records with those in the partitions at the end."""
    unread: Mapping[int, str] = field(default_factory=dict)
    """The partitions that could not be read back, with the reasons."""
    acks_one: bool = False
    """True if the producers used acks=1."""
    sent: int
    read_along: int
    """The number of records read during the run."""
    unread_along: int = 0
    """The number of acknowledged records that the consumer had not read when it ended."""
    taken_back: int
    """The number of records read during the run that changed or were missing later."""
    different_replicas: Sequence[int]
    """The partitions whose replicas differ at the end."""
    replicas_compared: bool = True
    failures: Sequence[str]
    """The fatal errors of producers."""
    failed_steps: Sequence[str]
    problems: Sequence[str] = ()
    """The parts of the run after the steps that failed, with the reasons."""
    faults: Sequence[Fault] = ()
    fault_steps: int = 0
    """The number of steps of the run that cause a fault."""
    expiries: Sequence[Expiry]
    pinned: Sequence[Pinned]
    resignations: Sequence[Resignation] = ()
    reassignment: Reassignment | None = None
    isr_shrinks: int = 0
    """The times that the ISR of a partition lost a replica."""
    writes: Availability
    reads: Availability
    metadata: MetadataWrites
    group: GroupReads | None = None
    """The observations of the consumer group, or None for a run without one."""
    admin: AdminWaits | None = None
    """The requests of the admin client, or None for a run without one."""
    latencies: Mapping[str, Latencies] = field(default_factory=dict)
    """The latencies of clients by their kind, of KINDS in `latencies.py`."""
    leadership: Sequence[StateInterval]
    brokers: Sequence[StateInterval] = ()
    """The intervals in which brokers were serving or fenced."""
    controllers: Sequence[StateInterval] = ()
    """The intervals in which controllers were active, one for each term."""
    voters: Sequence[int] = ()
    """The ids of all controllers."""
    end_ms: int = 0
    """The time at which the clients ended."""
    not_judged: Mapping[str, str] = field(default_factory=dict)
    """The checks that have no evidence on this cluster, with the reasons."""

    def phases(self) -> tuple[tuple[str, int, int], ...]:
        """Return the names and intervals of the times before, during and after the faults.

        Without faults the whole run is the time before them."""
        if not self.faults:
            return (("before", 0, self.end_ms),)
        start_ms = min(each.start_ms for each in self.faults)
        end_ms = max(each.end_ms for each in self.faults)
        return (
            ("before", 0, start_ms),
            ("during", start_ms, end_ms),
            ("after", end_ms, self.end_ms),
        )

    def batches(self) -> dict[str, int]:
        """Return the number of acknowledged batches before the first fault, while a fault lasted,
        and after the last one.

        Batches between two faults are in none of them, because they prove nothing about a fault."""
        found = {name: self.writes.count(start, end) for name, start, end in self.phases()}
        if self.faults:
            lasting = merged((each.start_ms, each.end_ms) for each in self.faults)
            found["during"] = sum(self.writes.count(start, end) for start, end in lasting)
        return found

    def controller_moves(self) -> int:
        """Return how often a controller became active during the run, also the same one again."""
        return max(0, len(self.controllers) - 1)

    def leader_moves(self) -> int:
        """Return how often a partition got another leader, or none, after its first one."""
        return len(self.leadership) - len({each.subject for each in self.leadership})

    def latency_summaries(self) -> dict[str, dict[str, Summary]]:
        """Return the summaries of the latencies by kind and phase, those of PHASES."""
        spans = {name: (start_ms, end_ms) for name, start_ms, end_ms in self.phases()}
        return {
            kind: {
                name: summary(
                    self.latencies.get(kind, Latencies()).between(*spans.get(name, (0, 0)))
                )
                for name in PHASES
            }
            for kind in KINDS
        }


def merged(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of intervals, in order and without overlaps."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found

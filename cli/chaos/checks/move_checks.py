"""The checks of the moves that a scenario expects: controllers, leaders, ISRs, replicas. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.cli.chaos.checks.check import Check
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.scenario.scenario import Expected

CONTROLLER_MOVES, LEADER_MOVES, ISR_MOVES = "controller moves", "leader moves", "isr moves"
"""The names of the checks that count new terms of controllers, and changes of partitions."""


def moves(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the checks of the numbers of elected controllers, of new leaders, and of ISRs that
    shrank.

    A scenario without such a bound gets no check. The first controller of the run, and the first
    leader of a partition, are not new. A number that was not observed is not good."""
    found = (
        (
            CONTROLLER_MOVES,
            "times a controller became active",
            evidence.controller_moves() if evidence.controllers else None,
            expected.min_controller_moves,
            expected.max_controller_moves,
        ),
        (
            LEADER_MOVES,
            "partitions got another leader, or none",
            evidence.leader_moves() if evidence.leadership else None,
            expected.min_leader_moves,
            expected.max_leader_moves,
        ),
        (
            ISR_MOVES,
            "times an ISR lost a replica",
            evidence.isr_shrinks if evidence.leadership else None,
            expected.min_isr_shrinks,
            expected.max_isr_shrinks,
        ),
    )
    for name, what, count, low, high in found:
        if low is None and high is None:
            continue
        if count is None:
            yield Check(name, False, f"the metadata was not read: it is not known how many {what}")
            continue
        good = (low or 0) <= count and (high is None or count <= high)
        allowed = f"{low or 0:,} or more" if high is None else f"{low or 0:,} to {high:,}"
        yield Check(name, good, f"{count:,} {what} (expected: {allowed})")


def reassigned(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that a reassignment ended, and that a fault happened meanwhile."""
    moving = evidence.reassignment
    if moving is None:
        return
    count = len(moving.targets)
    if moving.end_ms is None:
        yield Check("reassigned", False, f"the replicas of {count:,} partitions have not moved")
        return
    end_ms = moving.end_ms
    meanwhile = [
        f"{each.kind} of {each.node}"
        for each in evidence.faults
        if moving.start_ms <= each.start_ms <= end_ms
    ]
    text = f"the replicas of {count:,} partitions moved in {end_ms - moving.start_ms:,} ms"
    said = f"during {', '.join(meanwhile)}" if meanwhile else "but without any fault meanwhile"
    yield Check("reassigned", bool(meanwhile), f"{text}, {said}")

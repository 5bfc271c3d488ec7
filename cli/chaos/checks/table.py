"""The checks of a verdict: pure functions from the observations of a run to results with reasons.

One module holds one family of checks. `FAMILIES` is the table of all checks. A run is good if every
check is good. A check that concerns something that the run did not do yields nothing, such as the
refusals of a pinned client in a run without one. A check that lacks what it needs is bad. Only a
check whose evidence cannot exist on the cluster of the run is not judged, and listed as such.

- completion_checks.py: every step succeeded, and the run could examine the cluster to its end.
- fault_checks.py: every fault had an effect; brokers were fenced and led nothing.
- record_checks.py: no record is lost, changed or duplicated; all replicas are equal.
- client_checks.py: enough writes before, during and after; the availability of writes and reads.
- group_checks.py, admin_checks.py: the consumer group, and the requests of the admin client.
- metadata_checks.py: the availability of metadata; another controller became active.
- move_checks.py: the moves of controllers, leaders, ISRs and replicas.
- session_checks.py: the length of an expired session, and the refusals of its broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from quorate.cli.chaos.checks import (
    admin_checks,
    client_checks,
    completion_checks,
    fault_checks,
    group_checks,
    metadata_checks,
    move_checks,
    record_checks,
    session_checks,
)
from quorate.cli.chaos.checks.check import Check, NotJudged
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.scenario.scenario import Expected


class Family(NamedTuple):
    """A function that yields checks, their names, and a sentence about them."""

    yields: Callable[[Evidence, Expected], Iterator[Check]]
    names: tuple[str, ...]
    doc: str


FAMILIES = (
    Family(completion_checks.steps, ("steps",), "Every step reaches its end in time."),
    Family(completion_checks.end, ("end",), "All faults end, and the cluster recovers."),
    Family(fault_checks.effect, ("effect",), "Every fault affects its node."),
    Family(fault_checks.pauses, ("pauses",), "A paused node stands still for long enough."),
    Family(fault_checks.fenced, ("fenced",), "A broker that is killed or stopped is fenced."),
    Family(fault_checks.leaders, ("leaders",), "A fenced broker leads no partition."),
    Family(metadata_checks.failover, ("failover",), "Another controller becomes active."),
    Family(metadata_checks.resigned, ("resigned",), "An isolated active controller resigns."),
    Family(
        metadata_checks.stale_answers,
        ("stale answers",),
        "An isolated controller carries out nothing, and says that it is not active.",
    ),
    Family(record_checks.read_back, ("read back",), "Every partition can be read at the end."),
    Family(record_checks.lost, ("lost",), "No acknowledged record is lost."),
    Family(
        record_checks.unchanged,
        ("duplicated", "out of order", "changed", "at another offset"),
        "Records occur once, in order, unchanged, and at the acknowledged offset.",
    ),
    Family(record_checks.replicas, ("replicas",), "All in-sync replicas are equal at the end."),
    Family(client_checks.producers, ("producers",), "Producers receive transient errors only."),
    Family(client_checks.writes, ("writes",), "Enough writes before, during and after the faults."),
    Family(client_checks.availability, ("availability",), "No write waits longer than the bound."),
    Family(client_checks.taken_back, ("taken back",), "Records that were read do not change."),
    Family(
        client_checks.consumer, ("consumer",), "Acknowledged records are read within the bound."
    ),
    Family(
        metadata_checks.metadata, ("metadata",), "No metadata change waits longer than the bound."
    ),
    Family(
        metadata_checks.refused_metadata,
        ("no majority",),
        "No metadata changes without a majority, and controllers refuse clearly.",
    ),
    Family(group_checks.delivered, ("group records",), "The group reads every record."),
    Family(group_checks.offsets, ("group offsets",), "No committed offset goes back."),
    Family(
        group_checks.rebalances,
        ("group rebalances",),
        "The partitions of a killed member soon have another one.",
    ),
    Family(admin_checks.admin, ("admin",), "No request of the admin client waits too long."),
    Family(
        move_checks.moves,
        ("controller moves", "leader moves", "isr moves"),
        "Controllers, leaders and ISRs change as often as expected.",
    ),
    Family(move_checks.reassigned, ("reassigned",), "A reassignment ends, although faults happen."),
    Family(session_checks.session, ("session",), "A silent session has the configured length."),
    Family(session_checks.refused, ("refused",), "A broker that does not lead refuses writes."),
)


def checks(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the checks of the evidence, in the order of FAMILIES, without those of `not_judged`."""
    for family in FAMILIES:
        for check in family.yields(evidence, expected):
            if check.name not in evidence.not_judged:
                yield check


def not_judged(evidence: Evidence, expected: Expected) -> Iterator[NotJudged]:
    """Yield the checks that concern the run, and that its cluster gives no evidence for."""
    for family in FAMILIES:
        for check in family.yields(evidence, expected):
            if check.name in evidence.not_judged:
                yield NotJudged(check.name, evidence.not_judged[check.name])

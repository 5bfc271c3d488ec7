"""The checks of the consumer group of a run, whose members are killed and replaced. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.cli.chaos.checks.check import Check, first
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.scenario.scenario import Expected


def delivered(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that members of the group have read every record at least once."""
    group = evidence.group
    if group is None:
        return
    missing = [
        f"partition {partition}: none from offset {offset:,} on"
        for partition, offset in sorted(group.missing.items())
    ]
    if not group.records:
        missing.append("the group read nothing")
    text = f"the group read every record, {group.records:,}, at least once"
    yield Check("group records", not missing, first(missing, text))


def offsets(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that no committed offset was lower than one before it."""
    group = evidence.group
    if group is None:
        return
    wrong = list(group.went_back)
    if not group.commits:
        wrong.append("no offset was committed")
    text = f"{group.commits:,} offsets committed, none went back, {group.joins:,} joins"
    yield Check("group offsets", not wrong, first(wrong, text))


def rebalances(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that the partitions of each killed member soon had another one.

    It is not good if no member was killed although the workload says so."""
    group = evidence.group
    if group is None or not group.kills_members:
        return
    allowed = expected.max_rebalance_ms
    wrong = [] if group.rebalances else ["no member was killed, so no rebalance was tested"]
    for each in group.rebalances:
        lasted_ms = each.lasted_ms(evidence.end_ms)
        if lasted_ms > allowed:
            wrong.append(f"partitions had no member for {lasted_ms:,} ms (allowed: {allowed:,} ms)")
    longest = max((each.lasted_ms(evidence.end_ms) for each in group.rebalances), default=0)
    text = (
        f"{len(group.rebalances):,} members killed, every partition had a member again after "
        f"{longest:,} ms at most (allowed: {allowed:,} ms)"
    )
    yield Check("group rebalances", not wrong, first(wrong, text))

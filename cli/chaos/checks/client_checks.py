"""The checks of the producers and the consumer of the run. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.cli.chaos.checks.check import Check, first, listed
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.scenario.scenario import Expected


def producers(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that no producer received an error that shows a lost record."""
    text = first(evidence.failures, "producers received only transient errors")
    if not evidence.sent:
        text = "no producer sent anything"
    yield Check("producers", not evidence.failures and evidence.sent > 0, text)


def writes(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that enough batches were acknowledged before, during and after the faults.

    "During" is the time in which at least one fault lasted. Pauses between faults do not count.
    Every partition must also acknowledge one before the first fault, and one after the last."""
    wanted = {
        "before": expected.min_batches_before,
        "during": expected.min_batches_during,
        "after": expected.min_batches_after,
    }
    counted, missing = [], []
    batches = evidence.batches()
    for name, start_ms, end_ms in evidence.phases():
        count = batches[name]
        counted.append(f"{count:,} {name}")
        if count < wanted[name]:
            missing.append(f"{count:,} batches {name} the faults, fewer than {wanted[name]:,}")
        if name == "during" or not wanted[name]:
            continue
        if idle := evidence.writes.idle(start_ms, end_ms):
            missing.append(f"none {name} the faults in partitions {listed(idle)}")
    if not evidence.writes.done:
        missing.append("no batch was acknowledged")
    text = first(missing, f"batches acknowledged: {', '.join(counted)} the faults")
    yield Check("writes", not missing, text)


def availability(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that no write waited too long."""
    longest, allowed = evidence.writes.longest_ms(), expected.max_unavailable_ms
    text = f"no partition waited longer than {longest:,} ms (allowed: {allowed:,} ms)"
    if not evidence.writes.known:
        text = "no client wrote, so it is not known how long a write waits"
    yield Check("availability", evidence.writes.known and longest <= allowed, text)


def taken_back(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that records that a consumer has read do not change or disappear.

    It is not good if the consumer read nothing, because it then proves nothing."""
    text = (
        f"{evidence.read_along:,} records read during the run, {evidence.taken_back:,} of them "
        "changed or missing later"
    )
    yield Check("taken back", evidence.read_along > 0 and not evidence.taken_back, text)


def consumer(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that the consumer read every acknowledged record, and soon enough."""
    longest, allowed = evidence.reads.longest_ms(), expected.max_unread_ms
    text = f"every acknowledged record was read within {longest:,} ms (allowed: {allowed:,} ms)"
    if longest > allowed:
        worst = max(evidence.reads.outages, key=lambda each: each.duration_ms)
        text = (
            f"an acknowledged record of partition {worst.partition} was not read for "
            f"{longest:,} ms (allowed: {allowed:,} ms)"
        )
    if evidence.unread_along:
        text = f"{evidence.unread_along:,} acknowledged records were not read during the run"
    if not evidence.reads.known:
        text = "no consumer read, so it is not known how long a record stays unread"
    good = evidence.reads.known and longest <= allowed and not evidence.unread_along
    yield Check("consumer", good, text)

"""The checks that faults happened: each one had an effect on its node and in the cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.cli.chaos.checks.check import Check, first, listed
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.checks.faults import BROKERS, DISK_FAULTS, KILL, PAUSE, STOP, Fault
from quorate.cli.chaos.scenario.scenario import Expected
from quorate.cli.chaos.timeline.timeline import FENCED

FENCING = frozenset({KILL, STOP, *DISK_FAULTS})
"""The kinds of faults after which the cluster must fence a broker, however short they are."""


def effect(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that every fault affected its node.

    A run without any fault is not good, because it tests nothing."""
    without = [
        f"the {each.kind} of node {each.node} had no complete effect: {each.effect}"
        for each in evidence.faults
        if not each.affected
    ]
    if not evidence.faults:
        without.append("no fault was injected, so nothing was tested")
    said = [f"{each.kind} of {each.role} {each.node} ({each.effect})" for each in evidence.faults]
    yield Check("effect", not without, first(without, first(said, "")))


def pauses(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield a check for each paused node: it stood still long enough for the others to miss it.

    A scenario without `min_pause_ms` gets no such check."""
    least_ms = expected.min_pause_ms
    for fault in evidence.faults:
        if fault.kind != PAUSE or least_ms is None:
            continue
        lasted_ms = fault.end_ms - fault.start_ms
        text = (
            f"node {fault.node} stood still for {lasted_ms:,} ms (expected: {least_ms:,} or more)"
        )
        yield Check("pauses", lasted_ms >= least_ms, text)


def fenced(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield a check for each broker that was killed or stopped: the cluster fenced it.

    It must be fenced before it starts again, or within `max_unavailable_ms` if it starts earlier. A
    later fencing is that of every new registration, and proves nothing."""
    for fault in evidence.faults:
        if fault.role not in BROKERS or fault.kind not in FENCING:
            continue
        after_ms = fenced_after_ms(fault, evidence)
        limit_ms = max(fault.end_ms - fault.start_ms, expected.max_unavailable_ms)
        text = f"broker {fault.node} was not fenced after the {fault.kind}"
        if after_ms is not None:
            text = f"broker {fault.node} was fenced {after_ms:,} ms after the {fault.kind} began"
            if after_ms > limit_ms:
                text += ", only because it registered again"
        yield Check("fenced", after_ms is not None and after_ms <= limit_ms, text)


def leaders(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield a check for each broker that was fenced during its fault: it leads nothing then."""
    for fault in evidence.faults:
        after_ms = fenced_after_ms(fault, evidence)
        if not fault.led or after_ms is None or fault.start_ms + after_ms > fault.end_ms:
            continue
        moved = {
            each.subject
            for each in evidence.leadership
            if each.leader != fault.node and fault.start_ms <= each.start_ms <= fault.end_ms
        }
        kept = set(fault.led) - moved
        text = f"{len(fault.led):,} partitions that broker {fault.node} led got another leader"
        if kept:
            text = f"broker {fault.node} was fenced and still led partitions {listed(kept)}"
        yield Check("leaders", not kept, text)


def fenced_after_ms(fault: Fault, evidence: Evidence) -> int | None:
    """Return the time from the begin of a broker's fault to its first fencing, or None."""
    found = [
        each.start_ms - fault.start_ms
        for each in evidence.brokers
        if each.subject == fault.node and each.what == FENCED and each.start_ms >= fault.start_ms
    ]
    return min(found, default=None)

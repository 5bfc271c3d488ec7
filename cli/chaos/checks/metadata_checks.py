"""The checks of changes of metadata, and of the active controller. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from quorate.cli.chaos.checks.check import Check, first, listed
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.checks.faults import ACTIVES, GONE, Fault
from quorate.cli.chaos.checks.observations import (
    ANSWERED,
    CHANGE,
    NOT_CONTROLLER,
    READ,
    MetadataAnswer,
)
from quorate.cli.chaos.scenario.scenario import Expected


def metadata(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that metadata could be changed, and that no change waited too long."""
    found = evidence.metadata.availability
    missing = [
        f"no change of metadata was committed {name} the faults"
        for name, start_ms, end_ms in evidence.phases()
        if name != "during" and not found.count(start_ms, end_ms)
    ]
    longest, allowed = found.longest_ms(), expected.max_metadata_wait_ms
    if longest > allowed:
        missing.append(f"a change of metadata waited {longest:,} ms (allowed: {allowed:,} ms)")
    committed = sum(map(len, found.done.values()))
    text = (
        f"{committed:,} changes of metadata committed, none waited longer than {longest:,} ms "
        f"(allowed: {allowed:,} ms)"
    )
    yield Check("metadata", not missing, first(missing, text))


def refused_metadata(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield a check for each interval in which faults leave no majority of the controllers.

    No change of metadata may be committed then. Each controller without a fault must refuse one
    clearly (NOT_CONTROLLER). Only requests that were sent and answered in the interval count: a
    timeout says nothing, and an answer before the loss of the majority proves nothing."""
    for start_ms, end_ms in without_majority(evidence):
        answers = [
            each
            for each in evidence.metadata.asked
            if each.what == CHANGE and start_ms <= each.sent_ms and each.ms <= end_ms
        ]
        committed = evidence.metadata.availability.count(start_ms, end_ms)
        committed += sum(each.error == ANSWERED for each in answers)
        clear = [each for each in answers if each.error == NOT_CONTROLLER]
        silent = {*living(evidence, start_ms, end_ms)} - {each.node for each in clear}
        text = (
            f"{committed:,} changes of metadata committed without a majority of the controllers, "
            f"from {start_ms:,} to {end_ms:,} ms; {len(clear):,} of {len(answers):,} refused as "
            f"not the active controller{times_of(clear)}"
        )
        if silent and evidence.metadata.asks_controllers:
            text += f"; controllers that refused none: {listed(silent)}"
        good = not silent or not evidence.metadata.asks_controllers
        yield Check("no majority", good and not committed, text)


def living(evidence: Evidence, start_ms: int, end_ms: int) -> list[int]:
    """Return the controllers that no fault removed at any time of the interval."""
    gone = {
        each.node
        for each in evidence.faults
        if each.kind in GONE and each.start_ms < end_ms and start_ms < each.end_ms
    }
    return [each for each in evidence.voters if each not in gone]


def times_of(answers: Sequence[MetadataAnswer]) -> str:
    """Return the times of the first and the last answer as text, or ""."""
    if not answers:
        return ""
    return f", the first at {answers[0].ms:,} ms and the last at {answers[-1].ms:,} ms"


def failover(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield a check for each fault that removed the active controller: another one became active.

    It must have the first term after the begin of the fault. The term must begin before the end of
    the fault, or within `max_metadata_wait_ms` if the fault is shorter, as in a quick restart. If a
    fault leaves no majority, a new term after it is enough."""
    lost = without_majority(evidence)
    for fault in evidence.faults:
        if fault.role not in ACTIVES or fault.kind not in GONE:
            continue
        anyone = any(start <= fault.end_ms and fault.start_ms <= end for start, end in lost)
        terms = [each for each in evidence.controllers if each.start_ms >= fault.start_ms]
        new = sorted(terms, key=lambda each: each.start_ms)[:1]
        until_ms = max(fault.end_ms, fault.start_ms + expected.max_metadata_wait_ms)
        if not anyone:
            new = [each for each in new if each.subject != fault.node and each.start_ms <= until_ms]
        text = f"no other controller became active during the {fault.kind} of {fault.node}"
        if anyone:
            text = f"no controller became active after the {fault.kind} of {fault.node}"
        if new:
            after_ms = new[0].start_ms - fault.start_ms
            text = (
                f"controller {new[0].subject} became active {after_ms:,} ms after the "
                f"{fault.kind} of the active controller {fault.node} began"
            )
        yield Check("failover", bool(new), text)


def resigned(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield a check for each isolated controller that was asked: it soon stopped to answer as the
    active one (check quorum)."""
    for each in evidence.resignations:
        allowed = expected.max_resign_ms
        said = each.resigned_ms
        if said is None:
            text = f"controller {each.node} did not resign in {each.answers:,} answers"
            yield Check("resigned", False, text)
            continue
        after_ms = said - each.isolated_ms
        text = (
            f"controller {each.node} answered that it is not active {after_ms:,} ms after its "
            f"isolation (allowed: {allowed:,} ms)"
        )
        yield Check("resigned", after_ms <= allowed, text)


def stale_answers(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield a check for each isolated controller that was asked: it answered nothing as the active
    controller that no majority knows.

    It must not carry out a change or answer a read, because it cannot commit. It must refuse at
    least one of both clearly, because a controller that never answers proves nothing."""
    for each in evidence.resignations:
        answers = [
            answer
            for answer in evidence.metadata.asked
            if answer.node == each.node and each.isolated_ms <= answer.sent_ms
        ]
        carried_out = [answer for answer in answers if answer.error == ANSWERED]
        clear = [answer for answer in answers if answer.error == NOT_CONTROLLER]
        kinds = {what: sum(answer.what == what for answer in clear) for what in (CHANGE, READ)}
        text = (
            f"controller {each.node} refused {kinds[CHANGE]:,} changes and {kinds[READ]:,} reads "
            f"of metadata as not the active controller during its isolation{times_of(clear)}"
        )
        for stale in carried_out[:1]:
            after_ms = stale.ms - each.isolated_ms
            text = (
                f"controller {each.node} answered a {stale.what} of metadata as the active "
                f"controller {after_ms:,} ms after its isolation"
            )
        yield Check("stale answers", not carried_out and all(kinds.values()), text)


def without_majority(evidence: Evidence) -> list[tuple[int, int]]:
    """Return the intervals in which faults left no majority of the controllers."""
    faults = [
        each for each in evidence.faults if each.node in evidence.voters and each.kind in GONE
    ]
    edges = sorted({ms for each in faults for ms in (each.start_ms, each.end_ms)})
    found: list[tuple[int, int]] = []
    for start_ms, end_ms in pairwise(edges):
        down = {each.node for each in faults if covers(each, start_ms, end_ms)}
        if 2 * (len(evidence.voters) - len(down)) > len(evidence.voters):
            continue
        if found and found[-1][1] == start_ms:
            found[-1] = (found[-1][0], end_ms)
        else:
            found.append((start_ms, end_ms))
    return found


def covers(fault: Fault, start_ms: int, end_ms: int) -> bool:
    """Return True if the fault lasts through the interval."""
    return fault.start_ms <= start_ms and end_ms <= fault.end_ms

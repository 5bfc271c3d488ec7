"""The verdict on a run, from its evidence. The module is pure.

A run is good if every check is good and if the checks are meaningful: some records were
acknowledged, and each broker with a pinned client refused writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from quorate.cli.chaos.comparison import Verdict, Violations
from quorate.cli.chaos.scenario import Expected
from quorate.cli.chaos.timeline import Event, StateInterval

GRACE_MS = 250
"""Time, in ms after a change of leader, in which the old leader may still acknowledge writes.

A follower that does not know the new leader yet may confirm such a write. The new leader then has
it, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """The end of the session of a broker whose heartbeats do not reach the controllers.

    Times are ms since the start of the run."""

    node: int
    timeout_ms: int
    """The value of broker.session.timeout.ms."""
    last_heartbeat_ms: int
    """The time at which the last heartbeat left the broker."""
    fenced_ms: int
    cause: str
    """The cause in the record that fenced the broker."""

    @property
    def after_ms(self) -> int:
        """Return the time from the last heartbeat to the fencing, in ms."""
        return self.fenced_ms - self.last_heartbeat_ms


@dataclass(slots=True, kw_only=True)
class Pinned:
    """The results of the client that wrote to one broker only.

    Times are ms since the start of the run."""

    node: int
    from_ms: int
    until_ms: int = 0
    acknowledged: int = 0
    """The number of acknowledged records."""
    refused: Counter[str] = field(default_factory=Counter)
    """The number of errors by name."""
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
            for interval in leadership
            if interval.subject == partition
            and interval.start_ms + GRACE_MS < ms <= interval.end_ms
            and interval.leader != self.node
        ]


@dataclass(frozen=True, slots=True)
class Outage:
    """An interval, in ms since the start, in which writes to a partition waited."""

    partition: int
    start_ms: int
    end_ms: int

    @property
    def duration_ms(self) -> int:
        """Return the length of the interval."""
        return self.end_ms - self.start_ms


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the verdict, with its result as text."""

    name: str
    good: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that the checks use."""

    compared: Verdict
    """The comparison of the written records with those in the partitions at the end."""
    sent: int
    read_along: int
    """The number of records read during the run."""
    taken_back: int
    """The number of those records that changed or were missing later."""
    different_replicas: Sequence[int]
    """The partitions whose replicas differ at the end."""
    failures: Sequence[str]
    """The fatal errors of producers."""
    failed_steps: Sequence[str]
    expiries: Sequence[Expiry]
    pinned: Sequence[Pinned]
    outages: Sequence[Outage]
    leadership: Sequence[StateInterval]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a run."""

    scenario: str
    title: str
    about: str
    variants: Sequence[str]
    partitions: int
    evidence: Evidence
    checks: Sequence[Check]
    timeline: Sequence[Event]
    nodes: Sequence[StateInterval]
    started_wall_ms: int
    duration_ms: int

    @property
    def good(self) -> bool:
        """Return True if all checks are good."""
        return all(check.good for check in self.checks)

    @property
    def verdict(self) -> str:
        """Return "good" or "bad"."""
        return "good" if self.good else "bad"

    def unavailable_ms(self) -> dict[int, int]:
        """Return the total time of outages of each partition, in ms."""
        found = dict.fromkeys(range(self.partitions), 0)
        for outage in self.evidence.outages:
            found[outage.partition] += outage.duration_ms
        return found

    def refused(self) -> dict[str, int]:
        """Return the number of each error that the pinned clients received."""
        return dict(sorted(sum((each.refused for each in self.evidence.pinned), Counter()).items()))

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON values.

        `changed` includes records at another offset. `truncated` counts the records that only a
        broker with a pinned client had."""
        evidence, compared = self.evidence, self.evidence.compared
        return {
            "scenario": self.scenario,
            "variants": list(self.variants),
            "verdict": self.verdict,
            "checks": [asdict(check) for check in self.checks],
            "sent": evidence.sent,
            "acknowledged": compared.acknowledged,
            "read": compared.read,
            "lost": compared.lost.count,
            "duplicated": compared.doubled.count,
            "out_of_order": compared.reordered.count,
            "changed": compared.changed.count + compared.moved.count,
            "refused": self.refused(),
            "sessions": [{**asdict(each), "after_ms": each.after_ms} for each in evidence.expiries],
            "truncated": sum(each.diverged for each in evidence.pinned),
            "unavailable_ms": {str(key): ms for key, ms in self.unavailable_ms().items()},
            "duration_ms": self.duration_ms,
            "timeline": [
                {"ms": each.ms, "what": each.what, "node": each.node, "cause": each.cause}
                for each in self.timeline
            ],
        }


def checks(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield all checks of the evidence."""
    compared = evidence.compared
    yield Check(
        "steps",
        not evidence.failed_steps,
        "; ".join(evidence.failed_steps) or "every step succeeded",
    )
    something = compared.acknowledged > 0
    text = f"{compared.acknowledged:,} records acknowledged, {compared.lost.count:,} lost"
    yield Check("lost", something and not compared.lost.count, text + example(compared.lost))
    for name, violations in (
        ("duplicated", compared.doubled),
        ("out of order", compared.reordered),
        ("changed", compared.changed),
        ("at another offset", compared.moved),
    ):
        yield Check(name, not violations.count, f"{violations.count:,} {name}{example(violations)}")
    text = (
        f"{evidence.read_along:,} records read during the run, {evidence.taken_back:,} of them "
        "changed or missing later"
    )
    yield Check("taken back", not evidence.taken_back, text)
    different = ", ".join(map(str, evidence.different_replicas))
    text = f"replicas differ: partitions {different}" if different else "all replicas are equal"
    gone = [each for each in evidence.pinned if each.diverged]
    for each in () if different else gone:
        text += f"; broker {each.node} truncated {each.diverged:,} records that only it had"
    yield Check("replicas", not different, text)
    text = "; ".join(evidence.failures[:3]) or "producers received only transient errors"
    yield Check("producers", not evidence.failures, text)
    for expiry in evidence.expiries:
        yield expired(expiry, expected.expiry_tolerance_ms)
    for pinned in evidence.pinned:
        yield refused(pinned, evidence.leadership)
    longest = max((each.duration_ms for each in evidence.outages), default=0)
    text = f"no partition waited longer than {longest:,} ms (allowed: "
    good = longest <= expected.max_unavailable_ms
    yield Check("availability", good, f"{text}{expected.max_unavailable_ms:,} ms)")


def expired(expiry: Expiry, tolerance_ms: int) -> Check:
    """Return the check of a session's length.

    It is good if the time from the last heartbeat to the fencing differs from
    broker.session.timeout.ms by `tolerance_ms` at most."""
    good = abs(expiry.after_ms - expiry.timeout_ms) <= tolerance_ms
    text = (
        f"broker {expiry.node} was fenced {expiry.after_ms:,} ms after its last heartbeat "
        f"({expiry.cause}; broker.session.timeout.ms is {expiry.timeout_ms:,}, tolerance "
        f"{tolerance_ms:,} ms)"
    )
    return Check("session", good, text)


def refused(pinned: Pinned, leadership: Sequence[StateInterval]) -> Check:
    """Return the check that a broker with a pinned client refused writes when it did not lead.

    It must have acknowledged no late batch (`Pinned.late`), and the client must have had at least
    one error, which may be the lack of an answer."""
    late = pinned.late(leadership)
    errors = ", ".join(f"{count:,} x {name}" for name, count in sorted(pinned.refused.items()))
    text = (
        f"broker {pinned.node}, while it did not lead, acknowledged {len(late):,} batches of the "
        f"client that wrote only to it, and refused with {errors or 'nothing'}"
    )
    return Check("refused", not late and bool(pinned.refused), text)


def example(violations: Violations) -> str:
    """Return the first violation as text, if there is one."""
    return f": {violations.examples[0]}" if violations.examples else ""

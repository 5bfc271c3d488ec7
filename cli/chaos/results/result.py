"""The result of a run: its checks, its observations and its timeline, and the same as JSON. Pure.

`schema.py` describes the JSON. SCHEMA_VERSION changes with every change after
which a reader of the previous version would read something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quorate.cli.chaos.checks.availability import Availability
from quorate.cli.chaos.checks.check import Check, NotJudged
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.timeline.timeline import Event, StateInterval
from quorate.cli.chaos.workload.latencies import Summary

SCHEMA_VERSION = 5
"""The version of the JSON. Version 1 had no `schema_version`, `faults` and `availability`, version
2 no `latency_ms`, `leader_moves` and `isr_shrinks`, and version 3 no `not_judged`. Version 4 had 0
in place of null for a number that was not measured, and no `latency_ms` of phases without any."""


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
    seed: int = 0
    """The seed of all random choices of the run."""
    not_judged: Sequence[NotJudged] = ()
    """The checks that have no evidence on this cluster."""
    left_behind: Sequence[str] = ()
    """The things that the run could not remove or restore, such as its topic."""
    ended_by: str | None = None
    """The name of the signal that ended the run early, or None."""

    @property
    def good(self) -> bool:
        """Return True if all checks are good."""
        return all(check.good for check in self.checks)

    @property
    def verdict(self) -> str:
        """Return "good" or "bad"."""
        return "good" if self.good else "bad"

    def unavailable_ms(self) -> dict[int, int]:
        """Return the total time of outages of each partition, in ms. Empty if no client wrote."""
        if not self.evidence.writes.known:
            return {}
        found = dict.fromkeys(range(self.partitions), 0)
        for outage in self.evidence.writes.outages:
            found[outage.partition] += outage.duration_ms
        return found

    def refused(self) -> dict[str, int]:
        """Return the number of each error that the pinned clients received."""
        return dict(sorted(sum((each.refused for each in self.evidence.pinned), Counter()).items()))

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON values, in the form of SCHEMA_VERSION.

        `changed` includes records at another offset. `truncated` counts the records that only a
        broker with a pinned client had. A number that was not measured is null, and never 0."""
        evidence, compared = self.evidence, self.evidence.compared
        unavailable = self.unavailable_ms()
        return {
            "schema_version": SCHEMA_VERSION,
            "scenario": self.scenario,
            "variants": list(self.variants),
            "verdict": self.verdict,
            "checks": [asdict(check) for check in self.checks],
            "not_judged": [asdict(each) for each in self.not_judged],
            "faults": [{**asdict(each), "led": len(each.led)} for each in evidence.faults],
            "sent": evidence.sent,
            "acknowledged": compared.acknowledged,
            "read": compared.read,
            "read_along": evidence.read_along,
            "lost": compared.lost.count,
            "unverified": compared.unverified,
            "duplicated": compared.doubled.count,
            "out_of_order": compared.reordered.count,
            "changed": compared.changed.count + compared.moved.count,
            "refused": self.refused(),
            "sessions": [{**asdict(each), "after_ms": each.after_ms} for each in evidence.expiries],
            "truncated": sum(each.diverged for each in evidence.pinned),
            "batches": evidence.batches(),
            "availability": {
                "longest_write_ms": longest_ms(evidence.writes),
                "longest_read_ms": longest_ms(evidence.reads),
                "longest_metadata_ms": longest_ms(evidence.metadata.availability),
            },
            "latency_ms": {
                kind: {name: percentiles(each) for name, each in summaries.items()}
                for kind, summaries in evidence.latency_summaries().items()
            },
            "leader_moves": evidence.leader_moves() if evidence.leadership else None,
            "isr_shrinks": evidence.isr_shrinks if evidence.leadership else None,
            "unavailable_ms": {str(each): unavailable.get(each) for each in range(self.partitions)},
            "seed": self.seed,
            "started_wall_ms": self.started_wall_ms,
            "duration_ms": self.duration_ms,
            "left_behind": list(self.left_behind),
            "timeline": [
                {"ms": each.ms, "what": each.what, "node": each.node, "cause": each.cause}
                for each in self.timeline
            ],
        }


def longest_ms(found: Availability) -> int | None:
    """Return the length of the longest outage, or None if nothing was measured."""
    return found.longest_ms() if found.known else None


def percentiles(found: Summary) -> dict[str, int | None]:
    """Return a summary without its histogram. Without any latency, all but the count is None."""
    numbers = {"p50": found.p50, "p99": found.p99, "max": found.max}
    return {
        "count": found.count,
        **{name: value if found.count else None for name, value in numbers.items()},
    }

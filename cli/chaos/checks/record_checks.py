"""The checks of the records in the partitions at the end of the run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from quorate.cli.chaos.checks.check import Check, first, listed
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.scenario.scenario import Expected
from quorate.cli.chaos.workload.comparison import Violations

REPLICAS = "replicas"
"""The name of the check that compares the replicas' files."""


def read_back(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that every partition could be read at the end."""
    reasons = [f"partition {number}: {why}" for number, why in sorted(evidence.unread.items())]
    text = f"{len(reasons):,} partitions could not be read at the end: {first(reasons, '')}"
    good = f"every partition was read at the end, {evidence.compared.read:,} records"
    yield Check("read back", not reasons, text if reasons else good)


def lost(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that no acknowledged record is missing.

    It is not good without any acknowledged record, because it then proves nothing."""
    compared = evidence.compared
    text = f"{compared.acknowledged:,} records acknowledged, {compared.lost.count:,} lost"
    if compared.unverified:
        text += f", {compared.unverified:,} in partitions that could not be read"
    good = compared.acknowledged > compared.unverified and not compared.lost.count
    if evidence.acks_one:
        yield lost_of_acks_one(evidence, text)
        return
    yield Check("lost", good, text + example(compared.lost))


def lost_of_acks_one(evidence: Evidence, text: str) -> Check:
    """Return the check of acks=1: only partitions whose leader changed lost records.

    With acks=1 the leader acknowledges a record before a follower has it."""
    compared = evidence.compared
    terms = Counter(each.subject for each in evidence.leadership)
    wrong = {each for each in compared.lost_in if terms[each] < 2}
    text += "; acks=1 promises a record only as long as its leader leads"
    if wrong:
        text += f", and partitions {listed(wrong)} lost some without a change of their leader"
    return Check("lost", compared.acknowledged > compared.unverified and not wrong, text)


def unchanged(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the checks that records occur once, in order, unchanged and at their offsets.

    They are not good if no record was read at the end, because they then prove nothing."""
    compared = evidence.compared
    for name, violations in (
        ("duplicated", compared.doubled),
        ("out of order", compared.reordered),
        ("changed", compared.changed),
        ("at another offset", compared.moved),
    ):
        text = f"{violations.count:,} {name}{example(violations)}"
        if not compared.read:
            text = f"no record was read at the end, so it is not known if one is {name}"
        yield Check(name, compared.read > 0 and not violations.count, text)


def replicas(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that all in-sync replicas of a partition have the same bytes."""
    if not evidence.replicas_compared:
        yield Check(REPLICAS, False, "the files of the replicas could not be compared")
        return
    different = ", ".join(map(str, evidence.different_replicas))
    text = f"replicas differ: partitions {different}" if different else "all replicas are equal"
    gone = [each for each in evidence.pinned if each.diverged]
    for each in () if different else gone:
        text += f"; broker {each.node} truncated {each.diverged:,} records that only it had"
    yield Check(REPLICAS, not different, text)


def example(violations: Violations) -> str:
    """Return the first violation as text, if there is one."""
    return f": {violations.examples[0]}" if violations.examples else ""

"""The checks that the run did everything that its verdict needs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.cli.chaos.checks.check import Check, first
from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.scenario.scenario import Expected


def steps(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that every step succeeded."""
    yield Check(
        "steps", not evidence.failed_steps, first(evidence.failed_steps, "every step succeeded")
    )


def end(evidence: Evidence, expected: Expected) -> Iterator[Check]:
    """Yield the check that the cluster recovered and the run examined it completely."""
    said = "the cluster recovered, and every part of the run ended in time"
    yield Check("end", not evidence.problems, first(evidence.problems, said))

"""The outcomes of `chaos run all`: the results, and the scenarios that were not run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quorate.cli.chaos.results.result import SCHEMA_VERSION, Result
from quorate.cli.client.errors import PARTLY


@dataclass(frozen=True, slots=True)
class NotRun:
    """A scenario that its cluster cannot run, or that a signal to `run all` left out."""

    scenario: str
    reason: str

    @property
    def verdict(self) -> str:
        """Return "refused"."""
        return "refused"

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {
            "schema_version": SCHEMA_VERSION,
            "scenario": self.scenario,
            "verdict": self.verdict,
            "reason": self.reason,
        }


Outcome = Result | NotRun


def results_of(outcomes: Sequence[Outcome]) -> list[Result]:
    """Return the results of the scenarios that ran."""
    return [each for each in outcomes if isinstance(each, Result)]


def exit_status(outcomes: Sequence[Outcome]) -> int:
    """Return 1 if a verdict is bad or no scenario ran. Otherwise return PARTLY if a scenario was
    refused, because a good verdict says nothing about it, and 0 if all were good."""
    results = results_of(outcomes)
    if not results or not all(each.good for each in results):
        return 1
    return 0 if len(results) == len(outcomes) else PARTLY

"""The summary of several runs: one row for each result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorate.cli.chaos.results.result import Result
from quorate.cli.terminal.tables import Cell, Mark, Table


def summary_lines(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of the summary, in the order of the runs."""
    yield f"{'scenario':<22}{'verdict':<9}{'seconds':>8}  {'acknowledged':>12}  failed checks"
    for each in results:
        yield (
            f"{each.scenario:<22}{each.verdict:<9}{each.duration_ms / 1000:>8.1f}  "
            f"{each.evidence.compared.acknowledged:>12,}  {failed_checks(each) or '-'}"
        )


def summary_table(results: Sequence[Result]) -> Table:
    """Return the summary as a table of a terminal, the bad results first."""
    return Table(
        columns=("Scenario", "Verdict", "Seconds", "Acknowledged", "Failed checks"),
        rows=[
            (
                each.scenario,
                Cell(each.verdict, Mark.GOOD if each.good else Mark.BAD),
                round(each.duration_ms / 1000, 1),
                each.evidence.compared.acknowledged,
                failed_checks(each) or None,
            )
            for each in sorted(results, key=lambda result: result.good)
        ],
    )


def failed_checks(result: Result) -> str:
    """Return the names of the checks that failed, separated by commas."""
    return ", ".join(sorted({check.name for check in result.checks if not check.good}))

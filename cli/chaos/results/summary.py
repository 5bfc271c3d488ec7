"""The summary of several runs: one row for each scenario. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorate.cli.chaos.results.outcome import NotRun, Outcome
from quorate.cli.chaos.results.result import Result
from quorate.cli.terminal.tables import Cell, Mark, Table

MARKS = {"good": Mark.GOOD, "bad": Mark.BAD, "refused": Mark.WARN}
WORST_FIRST = ("bad", "refused", "good")


def summary_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of the summary, in the order of the runs."""
    yield f"{'scenario':<22}{'verdict':<9}{'seconds':>8}  {'acknowledged':>12}  failed checks"
    for each in outcomes:
        if isinstance(each, NotRun):
            yield f"{each.scenario:<22}{each.verdict:<9}{'-':>8}  {'-':>12}  {each.reason}"
        else:
            yield (
                f"{each.scenario:<22}{each.verdict:<9}{each.duration_ms / 1000:>8.1f}  "
                f"{each.evidence.compared.acknowledged:>12,}  {failed_checks(each) or '-'}"
            )


def summary_table(outcomes: Sequence[Outcome]) -> Table:
    """Return the summary as a table of a terminal, the bad verdicts first."""
    rows: list[tuple[str | int | float | Cell | None, ...]] = []
    for each in sorted(outcomes, key=lambda outcome: WORST_FIRST.index(outcome.verdict)):
        verdict = Cell(each.verdict, MARKS[each.verdict])
        if isinstance(each, NotRun):
            rows.append((each.scenario, verdict, None, None, each.reason))
        else:
            seconds, acknowledged = each.duration_ms / 1000, each.evidence.compared.acknowledged
            failed = failed_checks(each) or None
            rows.append((each.scenario, verdict, round(seconds, 1), acknowledged, failed))
    return Table(
        columns=("Scenario", "Verdict", "Seconds", "Acknowledged", "Failed checks"), rows=rows
    )


def failed_checks(result: Result) -> str:
    """Return the names of the checks that failed, separated by commas."""
    return ", ".join(sorted({check.name for check in result.checks if not check.good}))

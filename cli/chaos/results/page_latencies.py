"""The table of latencies on a result page, with a histogram in each row. Pure text functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from quorate.cli.chaos.checks.evidence import Evidence
from quorate.cli.chaos.workload.latencies import BOUNDS_MS, Summary, bar_name

HEADS = ("latency of", "faults", "#count", "#p50 ms", "#p99 ms", "#max ms", "distribution")


def latency_section(
    evidence: Evidence, table: Callable[[str, Sequence[str], Sequence[str]], str]
) -> str:
    """Return the HTML of the latencies by kind and phase. `table` makes a table of rows."""
    rows = [
        row(kind, name, each)
        for kind, phases in evidence.latency_summaries().items()
        for name, each in phases.items()
        if each.count
    ]
    if not rows:
        return "<h2>Latency for clients</h2><p class=soft>Unknown: none was measured.</p>"
    first, last = escape(bar_name(0)), escape(bar_name(len(BOUNDS_MS)))
    note = f"<p class=soft>The bars of a distribution go from {first} to {last}.</p>"
    return f"<h2>Latency for clients</h2>{table('latency', HEADS, rows)}{note}"


def row(kind: str, phase: str, found: Summary) -> str:
    """Return the HTML of one row."""
    numbers = "".join(
        f"<td class=n data-v={value}>{value:,}</td>"
        for value in (found.count, found.p50, found.p99, found.max)
    )
    said = f"{kind} latency {phase} the faults: half within {found.p50:,} ms"
    return (
        f"<tr><td>{kind}</td><td>{phase}</td>{numbers}<td>"
        f'<span class=bars role=img aria-label="{said}">{histogram(found.bars)}</span></td></tr>'
    )


def histogram(bars: Sequence[int]) -> str:
    """Return the bars of a histogram as HTML, whose heights are relative to the highest one."""
    highest = max(bars)
    return "".join(
        f'<i style="height:{100 * count / highest:.1f}%" '
        f'title="{escape(bar_name(number))}: {count:,}"></i>'
        for number, count in enumerate(bars)
    )

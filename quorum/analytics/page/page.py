"""The HTML page of the report: one self-contained file.

The input is a History of plain rows (`page_text.py`), so this module does not need Spark. The
timeline has one lane for the active controller, one for each broker and one for each partition. A
lane consists of HTML boxes whose positions are percentages. The page therefore scales, zooms and
prints without a drawing library. The page shows at most MAX_LANES partitions and MAX_EVENTS events,
and says so if it leaves out rows of the History. The History itself may be cut (`report.MAX_ROWS`).
"""

from __future__ import annotations

from html import escape

from quorate.quorum.analytics.log.text import clock, span
from quorate.quorum.analytics.page.page_assets import SCRIPT, STYLE
from quorate.quorum.analytics.page.page_tables import availability, events, sessions
from quorate.quorum.analytics.page.page_text import History
from quorate.quorum.analytics.page.page_timeline import timeline


def render(history: History) -> str:
    """Return the page as HTML."""
    sections = "".join(
        (_head(history), timeline(history), availability(history), sessions(history))
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>History of {escape(history.source)}</title><style>{STYLE}</style></head>"
        f"<body>{sections}{events(history)}<script>{SCRIPT}</script></body></html>\n"
    )


def _head(history: History) -> str:
    lost = [row for row in history.availability if row["leaderless_ms"]]
    changes = sum(1 for row in history.leadership if row["leader_epoch"])
    cards = (
        ("partitions", f"{len(history.availability):,}", False),
        ("records", f"{history.records:,}", False),
        ("leader epochs after the first", f"{changes:,}", False),
        ("partitions ever without a leader", f"{len(lost):,}", bool(lost)),
        (
            "longest time without a leader",
            span(max((row["longest_ms"] for row in history.availability), default=0)),
            bool(lost),
        ),
    )
    shown = "".join(
        f'<div class="card{" bad" if bad else ""}"><b>{value}</b>{label}</div>'
        for label, value, bad in cards
    )
    return (
        f"<h1>What happened</h1><p class=soft><code>{escape(history.source)}</code><br>"
        f"{clock(history.start_ms)} to {clock(history.end_ms)} UTC, "
        f"{span(history.end_ms - history.start_ms)}</p><div class=cards>{shown}</div>"
    )

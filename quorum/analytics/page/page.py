"""The HTML page of the report: one self-contained file.

The input is a History of plain rows (`page_text.py`), so this module does not need Spark. The page
needs no network: style and script are inline. It names every row that it leaves out.
"""

from __future__ import annotations

from html import escape

from quorate.quorum.analytics.log.text import clock, span
from quorate.quorum.analytics.page.page_assets import SCRIPT, STYLE, ZOOM_SCRIPT
from quorate.quorum.analytics.page.page_tables import (
    availability,
    events,
    outages,
    sessions,
    warnings,
)
from quorate.quorum.analytics.page.page_text import History
from quorate.quorum.analytics.page.page_timeline import timeline


def render(history: History) -> str:
    """Return the page as HTML."""
    sections = (_head, warnings, timeline, availability, outages, sessions, events)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title(history))}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(section(history) for section in sections)}"
        f"<script>{SCRIPT}{ZOOM_SCRIPT}</script></body></html>\n"
    )


def title(history: History) -> str:
    """Return the title: the cluster and the range of time."""
    cluster = f"Cluster {history.cluster_id}" if history.cluster_id else history.source
    return f"{cluster}, {clock(history.start_ms)} to {clock(history.end_ms)} UTC"


def _head(history: History) -> str:
    figures = history.figures
    lost = bool(figures.partitions_without_leader)
    cards = (
        ("partitions", f"{figures.partitions:,}", False),
        ("records", f"{figures.records:,}", False),
        ("leader changes", f"{figures.leader_changes:,}", False),
        ("ISR shrinks", f"{figures.isr_shrinks:,}", False),
        ("partitions ever without a leader", f"{figures.partitions_without_leader:,}", lost),
        ("longest time without a leader", span(figures.longest_without_leader_ms), lost),
        ("times in which acks=all failed", f"{figures.outages:,}", bool(figures.outages)),
    )
    shown = "".join(
        f'<div class="card{" bad" if bad else ""}"><b>{value}</b>{label}</div>'
        for label, value, bad in cards
    )
    scope = f"<br>Only {escape(history.scope)}." if history.scope else ""
    lasted = span(history.end_ms - history.start_ms)
    cluster = f"Cluster {history.cluster_id}" if history.cluster_id else "A cluster"
    return (
        f"<h1>{escape(cluster)}: what happened</h1><p class=soft>"
        f"{clock(history.start_ms)} to {clock(history.end_ms)} UTC, {lasted}<br>"
        f"<code>{escape(history.source)}</code>{scope}</p><div class=cards>{shown}</div>"
    )

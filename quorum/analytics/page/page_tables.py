"""The tables of the report: warnings, availability, outages, broker sessions, and events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from quorate.quorum.analytics.log.text import clock, span
from quorate.quorum.analytics.page.page_text import (
    MAX_EVENTS,
    MAX_WORST,
    History,
    cut,
    named,
    why,
)
from quorate.quorum.metadata.records import NO_LEADER


def warnings(history: History) -> str:
    """Return the table of warnings, the errors first, or "" if there are none."""
    figures = history.figures
    if not figures.errors + figures.notes:
        return ""
    body = [
        _row(
            row["severity"],
            row["kind"],
            _number(row["first_offset"], row["first_offset"]),
            row["detail"],
            css="bad" if row["severity"] == "error" else "",
        )
        for row in history.warnings
    ]
    count = figures.errors + figures.notes
    said = f"About this log: {_count(figures.errors, 'error')}, {_count(figures.notes, 'note')}."
    if figures.errors:
        said += " Records are missing or contradict each other, so this page may be wrong."
    return (
        f"<h2>Warnings</h2><p>{said}</p>{cut(len(body), count, 'warnings', 'first')}"
        f"{_table('warnings', ('severity', 'kind', '#offset', 'what'), body)}"
    )


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def availability(history: History) -> str:
    """Return the table of the partitions of the timeline, the worst first."""
    body = []
    for row in history.lanes:
        share = 100.0 * row["available"]
        windows = "; ".join(
            f"{clock(window['start_ms'])[11:]} for {span(window['duration_ms'])}"
            for window in row["windows"][:MAX_WINDOWS]
        )
        if len(row["windows"]) > MAX_WINDOWS:
            windows += f"; and {len(row['windows']) - MAX_WINDOWS:,} more"
        body.append(
            _row(
                named(row),
                _number(row["total_ms"], span(row["total_ms"])),
                f'<td data-v="{share:.6f}"><span class="meter up"><i style="width:{share:.2f}%">'
                f"</i></span>{share:.3f} %</td>",
                _number(row["leaderless_ms"], span(row["leaderless_ms"])),
                _number(row["failing_ms"], span(row["failing_ms"])),
                _number(row["leader_changes"], row["leader_changes"]),
                _number(row["isr_shrinks"], row["isr_shrinks"]),
                windows,
            )
        )
    heads = (
        "partition", "#lived", "has a leader", "#without a leader", "#acks=all fails",
        "#leader changes", "#ISR shrinks", "without a leader at",
    )  # fmt: skip
    note = cut(len(body), history.figures.partitions, "partitions", "worst")
    return (
        "<h2>Availability</h2><div class=bar>"
        "<input type=search placeholder='filter partitions' aria-label='filter this table' "
        f"data-filters='#availability tbody tr'></div>{note}{_table('availability', heads, body)}"
    )


MAX_WINDOWS = 5
"""Maximum number of times without a leader in one row of the table of availability."""


def outages(history: History) -> str:
    """Return the table of the longest times in which acks=all failed."""
    body = [
        _row(
            named(row),
            OUTAGES[row["kind"]],
            _time(row["start_ms"]),
            _number(row["duration_ms"], span(row["duration_ms"])),
            "" if row["end_ms"] is None else clock(row["end_ms"]),
            f"{row['smallest_isr']} of {'?' if row['min_isr'] is None else row['min_isr']}",
            _cause(row["cause"]),
            css="bad" if row["end_ms"] is None else "",
        )
        for row in history.outages
    ]
    heads = (
        "partition", "what", "from", "#for", "until", "smallest ISR of min.insync.replicas", "why",
    )  # fmt: skip
    note = cut(len(body), history.figures.outages, "times", "longest")
    return f"<h2>Times in which acks=all failed</h2>{note}{_table('outages', heads, body)}"


OUTAGES = {
    "offline": "no leader",
    "below_min": "ISR below min.insync.replicas",
    "both": "no leader, and ISR below min.insync.replicas",
}
"""Words for the kinds of the table `min_isr_windows`."""


def sessions(history: History) -> str:
    """Return the table of the newest broker sessions."""
    body = [
        _row(
            _number(row["broker"], row["broker"]),
            _number(row["broker_epoch"], row["broker_epoch"]),
            _time(row["registered_ms"]),
            _time(row["unfenced_ms"]),
            _time(row["end_ms"]),
            _number(row["duration_ms"], span(row["duration_ms"])),
            row["ended"] or "lasts",
            _cause(row["cause"]) if row["ended"] else "",
        )
        for row in history.sessions[-MAX_WORST:]
    ]
    heads = (
        "#broker", "#epoch", "registered", "unfenced", "ended", "#in service", "how", "why",
    )  # fmt: skip
    note = cut(len(body), history.figures.sessions, "sessions", "newest")
    return f"<h2>Broker sessions</h2>{note}{_table('sessions', heads, body)}"


def events(history: History) -> str:
    """Return the table of the newest MAX_EVENTS events, the newest first."""
    found = sorted(_happenings(history), key=lambda event: event[0], reverse=True)
    body = [
        _row(_time(at_ms), _number(offset, offset), what, _cause(cause), css="bad" if bad else "")
        for (offset, _, at_ms), what, cause, bad in found[:MAX_EVENTS]
    ]
    older = ""
    if len(found) > MAX_EVENTS:
        older = (
            f"<p class=soft>Shown: the newest {MAX_EVENTS:,} events. Older ones are in the tables "
            "<code>leadership</code>, <code>isr</code>, <code>sessions</code> and "
            "<code>quorum</code>.</p>"
        )
    return (
        "<h2>Events</h2><div class=bar><input type=search placeholder='filter events' "
        "aria-label='filter events' data-filters='#events tbody tr'></div>"
        f"{older}{_table('events', ('time', '#offset', 'what', 'why'), body)}"
    )


Happening = tuple[tuple[int, int, int], str, str, bool]
"""((offset, order within the offset, time in ms), text, cause, True if the event is a problem)."""


def _happenings(history: History) -> Iterable[Happening]:
    for row in history.new_leaders:
        lost = row["leader"] == NO_LEADER
        if row["began"] == "created":
            what = f"{named(row)} is created, led by {row['leader']}"
        else:
            what = f"{named(row)} is led by {row['leader']}, leader epoch {row['leader_epoch']}"
        if lost:
            what = f"{named(row)} has no leader"
        yield (row["start_offset"], 1, row["start_ms"]), what, row["cause"], lost
    for row in history.new_isrs:
        if row["began"] == "created":
            continue
        if row["added"] and row["removed"]:
            what = f"ISR changes to {row['isr']}"
        elif row["removed"]:
            what = f"ISR loses {row['removed']}, is {row['isr']}"
        else:
            what = f"ISR gains {row['added']}, is {row['isr']}"
        bad = bool(row["below_min"])
        below = f", below min.insync.replicas {row['min_isr'] or '(unknown)'}" if bad else ""
        what = f"{named(row)}: {what}{below}"
        yield (row["start_offset"], 2, row["start_ms"]), what, row["cause"], bad
    for row in history.quorum:
        voters = ", ".join(map(str, row["voters"]))
        what = f"controller {row['leader']} is active, epoch {row['epoch']}, voters {voters}"
        yield (row["start_offset"], 0, row["start_ms"]), what, "", False
    for row in history.sessions:
        broker = f"broker {row['broker']}"
        if row["unfenced_offset"] is not None and _in_range(row["unfenced_ms"], history):
            what = f"{broker} is in service, epoch {row['broker_epoch']}"
            yield (row["unfenced_offset"], 0, row["unfenced_ms"]), what, "broker-unfenced", False
        if row["end_offset"] is not None and row["end_ms"] is not None:
            what = f"{broker} left service: {row['ended']}"
            bad = row["ended"] != "shutdown"
            yield (row["end_offset"], 0, row["end_ms"]), what, row["cause"], bad


def _in_range(at_ms: int, history: History) -> bool:
    return history.start_ms <= at_ms


def _table(name: str, heads: Sequence[str], body: Sequence[str]) -> str:
    shown = "".join(
        f"<th class=n scope=col><button>{head[1:]}</button></th>"
        if head.startswith("#")
        else f"<th scope=col><button>{head}</button></th>"
        for head in heads
    )
    return (
        f"<div class=frame tabindex=0 role=region aria-label='{name}'><table id={name}>"
        f"<thead><tr>{shown}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _row(*cells: str, css: str = "") -> str:
    """Return a table row. Cells that do not begin with `<td` are text and are escaped."""
    made = (cell if cell.startswith("<td") else f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr class="{css}">{"".join(made)}</tr>' if css else f"<tr>{''.join(made)}</tr>"


def _number(value: int, shown: object) -> str:
    return f'<td class=n data-v="{value}">{shown}</td>'


def _time(at_ms: int | None) -> str:
    if at_ms is None:
        return "<td></td>"
    return f'<td data-v="{at_ms}"><time>{clock(at_ms)}</time></td>'


def _cause(cause: str) -> str:
    return f'<td title="{escape(why(cause))}">{escape(cause)}</td>'

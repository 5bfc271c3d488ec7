"""The tables of the report: availability, broker sessions, and events in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from quorate.quorum.analytics.log.text import clock, span
from quorate.quorum.analytics.page.page_text import MAX_EVENTS, MAX_LANES, History, cut, topic, why
from quorate.quorum.metadata.records import NO_LEADER


def availability(history: History) -> str:
    """Return the table of partitions, by their total time without a leader, the longest first.

    It has at most MAX_LANES rows."""
    rows = sorted(
        history.availability,
        key=lambda row: (-row["leaderless_ms"], topic(row), row["partition"]),
    )
    body = []
    for row in rows[:MAX_LANES]:
        share = 100.0 * (1 - row["available"])
        windows = "; ".join(
            f"{clock(window['start_ms'])[11:]} for {span(window['duration_ms'])}"
            for window in row["windows"]
        )
        body.append(
            _row(
                f"{topic(row)}-{row['partition']}",
                _number(row["total_ms"], span(row["total_ms"])),
                _number(row["leaderless_ms"], span(row["leaderless_ms"])),
                f'<td data-v="{share:.6f}"><span class=meter><i style="width:{share:.2f}%">'
                f"</i></span>{100 - share:.3f} %</td>",
                _number(row["leader_epochs"], row["leader_epochs"]),
                windows,
            )
        )
    heads = ("partition", "#lived", "#without a leader", "available", "#leader epochs", "when")
    return (
        f"<h2>Availability</h2>{cut(len(rows), MAX_LANES, 'partitions')}"
        f"{_table('availability', heads, body)}"
    )


def sessions(history: History) -> str:
    """Return the table of broker sessions."""
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
        for row in history.sessions
    ]
    heads = (
        "#broker", "#epoch", "registered", "unfenced", "ended", "#in service", "how", "why",
    )  # fmt: skip
    return f"<h2>Broker sessions</h2>{_table('sessions', heads, body)}"


def events(history: History) -> str:
    """Return the table of the last MAX_EVENTS events, in the order of the log."""
    events = sorted(_happenings(history), key=lambda event: event[0])
    body = [
        _row(_time(at_ms), _number(offset, offset), what, _cause(cause), css="bad" if bad else "")
        for (offset, _, at_ms), what, cause, bad in events[-MAX_EVENTS:]
    ]
    return (
        "<h2>Events</h2><div class=bar><input type=search placeholder='filter events' "
        "aria-label='filter events' data-filters='#events tbody tr'></div>"
        f"{cut(len(events), MAX_EVENTS, 'events', 'the last ')}"
        f"{_table('events', ('time', '#offset', 'what', 'why'), body)}"
    )


Happening = tuple[tuple[int, int, int], str, str, bool]
"""((offset, order within the offset, time in ms), text, cause, True if the event is a problem)."""


def _happenings(history: History) -> Iterable[Happening]:
    for row in history.leadership:
        name = f"{topic(row)}-{row['partition']}"
        lost = row["leader"] == NO_LEADER
        if lost:
            what = f"{name} has no leader"
        elif row["leader_epoch"]:
            what = f"{name} is led by {row['leader']}, leader epoch {row['leader_epoch']}"
        else:
            what = f"{name} is created, led by {row['leader']}"
        yield (row["start_offset"], 1, row["start_ms"]), what, row["cause"], lost
    for row in history.isr:
        if row["added"] and row["removed"]:
            what = f"ISR changes to {row['isr']}"
        elif row["removed"]:
            what = f"ISR loses {row['removed']}, is {row['isr']}"
        elif len(row["added"]) < row["size"]:
            what = f"ISR gains {row['added']}, is {row['isr']}"
        else:
            continue
        below = f", below min.insync.replicas {row['min_isr']}" if row["below_min"] else ""
        what = f"{topic(row)}-{row['partition']}: {what}{below}"
        yield (row["offset"], 2, row["timestamp_ms"]), what, row["cause"], row["below_min"]
    for row in history.quorum:
        voters = ", ".join(map(str, row["voters"]))
        what = f"controller {row['leader']} is active, epoch {row['epoch']}, voters {voters}"
        yield (row["start_offset"], 0, row["start_ms"]), what, "", False
    for row in history.sessions:
        broker = f"broker {row['broker']}"
        if row["unfenced_offset"] is not None:
            what = f"{broker} is in service, epoch {row['broker_epoch']}"
            yield (row["unfenced_offset"], 0, row["unfenced_ms"]), what, "broker-unfenced", False
        if row["end_offset"] is not None:
            what = f"{broker} left service: {row['ended']}"
            bad = row["ended"] != "shutdown"
            yield (row["end_offset"], 0, row["end_ms"]), what, row["cause"], bad


def _table(name: str, heads: Sequence[str], body: Sequence[str]) -> str:
    shown = "".join(
        f"<th class=n>{head[1:]}</th>" if head.startswith("#") else f"<th>{head}</th>"
        for head in heads
    )
    return (
        f"<div class=frame><table id={name}><thead><tr>{shown}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
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

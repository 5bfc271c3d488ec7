"""The rows of the newest changes of partitions: those that a node delays first. All pure."""

from __future__ import annotations

from quorate.cli.console.views.table import Row
from quorate.cli.status.changes_in_flight import Change, ChangesReport, node_text, span

CHANGES = ("offset", "topic", "partition", "state", "change", "cause", "took", "waits for")
NODES = ("node", "state", "stages")
IN_FLIGHT, COMPLETE = "in flight", "complete"


def change_rows(report: ChangesReport) -> list[Row]:
    """Return a row for each change: those in flight first, the oldest of them first, and then the
    complete ones, the newest first."""
    delayed = sorted((each for each in report.changes if each.delays), key=lambda each: each.offset)
    complete = [each for each in report.changes if not each.delays]
    complete.sort(key=lambda each: -each.offset)
    return [change_row(each, report.time_ms) for each in (*delayed, *complete)]


def change_row(change: Change, now_ms: int) -> Row:
    """Return the row of a change. `took` is the time from its request until the last host has acted
    on it, or until now if it is in flight."""
    ends_ms = [change.appended_ms, *change.acted_ms.values()]
    return (
        change.offset,
        change.topic,
        change.partition,
        IN_FLIGHT if change.delays else COMPLETE,
        ", ".join(f"{name} {value}" for name, value in change.change.items()),
        change.cause,
        span(change.requested_ms, now_ms if change.delays else max(ends_ms)),
        ", ".join(f"node {each.node_id} {each.what}" for each in change.delays),
    )


def node_rows(report: ChangesReport) -> list[Row]:
    """Return a row for each node with the stages of the metadata log that it has reached.

    Nodes that do not answer come first."""
    rows: list[Row] = []
    for node_id, node in sorted(report.nodes.items(), key=lambda pair: (bool(pair[1]), pair[0])):
        state = "silent" if node is None else "active" if node.is_active else "ok"
        rows.append((node_id, state, node_text(node, report.committed)))
    return rows

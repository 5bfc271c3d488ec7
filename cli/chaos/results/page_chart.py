"""The chart of a result page: lanes of all nodes and partitions on one time axis. Pure text.

The lanes of nodes stay in view while those of partitions scroll. They show the states of a node,
and its faults over them. The upper part of a partition's lane shows its leaders, the lower part the
times at which clients could not write. The partitions to which most happened come first. The zoom
is that of the report (`ZOOM_SCRIPT`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from quorate.cli.chaos.checks.availability import Outage
from quorate.cli.chaos.results.page_lanes import Scale, lane
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.timeline.timeline import (
    ACTIVE,
    BAD_DISK,
    CUT,
    DEAD,
    FENCED,
    MUTED,
    PAUSED,
    SERVING,
    SKEWED,
    SLOW,
    STANDBY,
    StateInterval,
)
from quorate.quorum.metadata.causes import DOCS

MAX_LANES = 1000
"""The most partitions that are shown: those that could not be written for the longest time."""
DENSE_FROM_LANES = 40
"""With more partitions, each lane is less high."""
PINNED_NODES = 12
"""The most nodes whose lanes stay in view while the partitions scroll."""
COLOURS = 10
"""The number of colours of brokers. Further brokers share them."""
STATES = {
    SERVING: "in service",
    STANDBY: "voter",
    ACTIVE: "active controller",
    FENCED: "fenced",
    MUTED: "messages dropped",
    CUT: "cut off",
    PAUSED: "paused",
    SLOW: "slow",
    BAD_DISK: "bad disk",
    SKEWED: "wrong clock",
    DEAD: "down",
}
OVER = (MUTED, CUT, PAUSED, SLOW, BAD_DISK, SKEWED)
"""States drawn over the state of the node in the cluster."""
QUIET = (SERVING, STANDBY)
"""States that the summary of a lane leaves out, because nothing happens in them."""
TITLE = "Nodes and partitions"


def chart(result: Result) -> str:
    """Return the chart with its legend, its filter and its zoom as HTML."""
    if not result.nodes:
        return f"<h2>{TITLE}</h2><p class=soft>Unknown: the run saw no state of any node.</p>"
    scale = Scale(max(result.duration_ms, 1))
    colours = _colours(result.evidence.leadership)
    shown = worst_first(result)[:MAX_LANES]
    dense = " dense" if len(shown) > DENSE_FROM_LANES else ""
    nodes, marks = _node_lanes(result.nodes, scale), scale.marks(result.timeline)
    pinned = " pinned" if nodes.count("data-name") <= PINNED_NODES else ""
    left_out = result.partitions - len(shown)
    note = (
        f"<p class=soft>The {MAX_LANES:,} partitions that waited longest are shown. {left_out:,} "
        "are left out.</p>"
    ) * (left_out > 0 and result.evidence.writes.known)
    return (
        f"<h2>{TITLE}</h2><div class=bar>"
        '<input type=search placeholder="filter partitions" aria-label="filter partitions" '
        'data-filters="#lanes .rule ~ .lane">'
        "<label>zoom <input type=range min=0 max=16 step=.5 value=0 data-zooms='#lanes'></label>"
        f"{_legend(result, colours)}</div>{note}"
        "<p class=soft>The partitions to which most happened come first.</p>"
        "<div class=chart tabindex=0 role=region aria-label='nodes and partitions'>"
        f'<div class="scale{dense}" id=lanes data-start=0 data-end={scale.end_ms}>{scale.axis()}'
        f"<div class='head{pinned}'>{nodes}{marks}</div>"
        f"<div class=rule>partitions</div>{_partition_lanes(result, shown, scale, colours)}"
        f"{marks}</div></div>"
    )


def worst_first(result: Result) -> list[int]:
    """Return the partitions in the order of what happened: the longest time without writes, then
    the most leaders."""
    lost_ms = result.unavailable_ms()
    leaders = Counter(interval.subject for interval in result.evidence.leadership)
    return sorted(lost_ms, key=lambda each: (-lost_ms[each], -leaders[each], each))


def _legend(result: Result, colours: Mapping[int, str]) -> str:
    used = {interval.what for interval in result.nodes}
    keys = [
        (f"s-{state}{' hatched' * (state in OVER)}", text)
        for state, text in STATES.items()
        if state in used
    ]
    if result.evidence.writes.known:
        keys += [(colour, f"led by broker {broker}") for broker, colour in colours.items()]
        keys += [("up", "clients write"), ("lost", "no leader, or clients wait")]
    return "".join(f'<span class=key><i class="{css}"></i>{text}</span>' for css, text in keys)


def _node_lanes(intervals: Iterable[StateInterval], scale: Scale) -> str:
    by_node: dict[int, list[StateInterval]] = {}
    for interval in intervals:
        by_node.setdefault(interval.subject, []).append(interval)
    lanes = []
    for node, states in sorted(by_node.items()):
        broker = any(each.what in (SERVING, FENCED) for each in states)
        name = f"{'broker' if broker else 'controller'} {node}"
        happened = [
            f"{STATES[each.what]} from {_seconds(each.start_ms)} to {_seconds(each.end_ms)}"
            for each in sorted(states, key=lambda each: each.start_ms)
            if each.what not in QUIET
        ]
        summary = f"{name}: {', '.join(happened) or 'nothing happened'}"
        boxes = [_node_box(each, scale) for each in states]
        lanes.append(lane(name, boxes, summary, "tall"))
    return "".join(lanes)


def _node_box(interval: StateInterval, scale: Scale) -> str:
    text = STATES[interval.what]
    lasted = f"{interval.start_ms / 1000:.3f} s to {interval.end_ms / 1000:.3f} s"
    title = (
        f"node {interval.subject}: {text}\n{lasted}\n{DOCS.get(interval.cause) or interval.cause}"
    )
    if interval.what in OVER:
        return scale.box(interval.start_ms, interval.end_ms, f"s-{interval.what} over", title)
    return scale.box(interval.start_ms, interval.end_ms, f"s-{interval.what}", title, text)


def _partition_lanes(
    result: Result, shown: Sequence[int], scale: Scale, colours: Mapping[int, str]
) -> str:
    if not result.evidence.writes.known:
        return "<p class=soft>Unknown: no client wrote.</p>"
    leaders: dict[int, list[StateInterval]] = {}
    for interval in result.evidence.leadership:
        leaders.setdefault(interval.subject, []).append(interval)
    outages: dict[int, list[Outage]] = {}
    for outage in result.evidence.writes.outages:
        outages.setdefault(outage.partition, []).append(outage)
    lost_ms = result.unavailable_ms()
    lanes = []
    for partition in shown:
        name, terms = f"partition {partition}", leaders.get(partition, ())
        boxes = [
            *(_leader_box(interval, scale, colours) for interval in terms),
            scale.box(0, scale.end_ms, "up", f"{name}: writes are acknowledged"),
            *(_outage_box(outage, scale) for outage in outages.get(partition, ())),
        ]
        moves = max(0, len(terms) - 1)
        summary = (
            f"{name}: {moves:,} changes of the leader, no writes for {lost_ms[partition]:,} ms"
        )
        lanes.append(lane(name, boxes, summary, "two"))
    return "".join(lanes)


def _colours(leadership: Sequence[StateInterval]) -> dict[int, str]:
    brokers = sorted({interval.leader for interval in leadership if interval.leader >= 0})
    return {broker: f"b{index % COLOURS}" for index, broker in enumerate(brokers)}


def _leader_box(interval: StateInterval, scale: Scale, colours: Mapping[int, str]) -> str:
    leader = f"broker {interval.leader}" if interval.leader >= 0 else "no leader"
    title = (
        f"partition {interval.subject}: {leader}, leader epoch {interval.epoch}\n"
        f"from {interval.start_ms / 1000:.3f} s for {interval.end_ms - interval.start_ms:,} ms\n"
        f"{DOCS.get(interval.cause) or interval.cause}"
    )
    css = colours.get(interval.leader, "lost")
    return scale.box(interval.start_ms, interval.end_ms, css, title)


def _outage_box(outage: Outage, scale: Scale) -> str:
    title = (
        f"partition {outage.partition}: a write waited {outage.duration_ms:,} ms\n"
        f"from {outage.start_ms / 1000:.3f} s"
    )
    return scale.box(outage.start_ms, outage.end_ms, "lost", title)


def _seconds(ms: int) -> str:
    return escape(f"{ms / 1000:.1f} s")

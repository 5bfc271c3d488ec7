"""The timeline of the report: lanes of the active controllers, of each broker and of each
partition, on a common time axis.

A lane consists of HTML boxes whose positions are percentages. It therefore scales, zooms and prints
without a drawing library. The upper part of a partition's lane shows its leaders, the lower part
its ISR.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from quorate.quorum.analytics.log.text import clock, span
from quorate.quorum.analytics.page.page_axis import axis, percent
from quorate.quorum.analytics.page.page_text import (
    History,
    Row,
    cut,
    internal_last,
    named,
    why,
)
from quorate.quorum.metadata.records import NO_LEADER

DENSE_FROM_LANES = 40
"""The number of partitions above which the lanes are drawn with less height."""
COLOURS = 10
"""The number of colours of brokers. With more brokers, some share a colour."""
MAX_KEYS = 24
"""Maximum number of brokers in the legend."""
PINNED_BROKERS = 12
"""Maximum number of brokers whose lanes stay in view while the partitions scroll."""
TERM_COLOURS = ("b9", "b8")
LEGEND = (
    ("lost", "no leader"),
    ("isr part", "ISR incomplete"),
    ("isr low", "ISR below min.insync.replicas"),
)
"""The classes of boxes that are not those of brokers, and their meanings."""
Key = tuple[str, int]
"""Topic id and partition."""


def timeline(history: History) -> str:
    """Return the timeline as HTML."""
    colours = _colours(history)
    leaders, isrs = _by_partition(history.leadership), _by_partition(history.isr)
    dense = " dense" if len(history.lanes) > DENSE_FROM_LANES else ""
    rows = "".join(
        _partition_lane(lane, leaders[_key(lane)], isrs[_key(lane)], history, colours)
        for lane in internal_last(history.lanes)
    )
    pinned = " pinned" if len(colours) <= PINNED_BROKERS else ""
    note = cut(len(history.lanes), history.figures.partitions, "partitions", "worst")
    return (
        "<h2>Timeline</h2><div class=bar>"
        '<input type=search placeholder="filter partitions" aria-label="filter partitions" '
        'data-filters="#lanes .rule ~ .lane">'
        "<label>zoom <input type=range min=0 max=16 step=.5 value=0 data-zooms='#lanes'></label>"
        f"{_legend(colours)}</div>{note}"
        "<p class=soft>The partitions to which most happened come first, internal topics last.</p>"
        f"<div class=chart tabindex=0 role=region aria-label=timeline>"
        f'<div class="scale{dense}" id=lanes data-start={history.start_ms} '
        f"data-end={history.end_ms}>{axis(history)}<div class='head{pinned}'>"
        f"{_controller_lane(history)}{_broker_lanes(history, colours)}</div>"
        f"<div class=rule>partitions</div>{rows}</div></div>"
    )


def _legend(colours: Mapping[int, str]) -> str:
    keys = [(colour, f"broker {broker}") for broker, colour in colours.items()]
    shown = [*keys[:MAX_KEYS], *LEGEND]
    more = len(keys) - MAX_KEYS
    text = "".join(
        f'<span class=key><i class="{colour}"></i>{name}</span>' for colour, name in shown
    )
    terms = "".join(f'<i class="{colour}"></i>' for colour in TERM_COLOURS)
    text += f"<span class=key>{terms}terms of active controllers</span>"
    if more > 0:
        text += f"<span class=key>and {more:,} more brokers, which the boxes name</span>"
    return text


def _colours(history: History) -> dict[int, str]:
    brokers = {row["broker"] for row in history.sessions}
    brokers.update(row["leader"] for row in history.leadership if row["leader"] != NO_LEADER)
    return {broker: f"b{index % COLOURS}" for index, broker in enumerate(sorted(brokers))}


def _key(row: Row) -> Key:
    return row["topic_id"], row["partition"]


def _by_partition(rows: Iterable[Row]) -> defaultdict[Key, list[Row]]:
    lanes: defaultdict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        lanes[_key(row)].append(row)
    return lanes


def _partition_lane(
    lane: Row,
    spells: Sequence[Row],
    isrs: Sequence[Row],
    history: History,
    colours: Mapping[int, str],
) -> str:
    name = named(lane)
    boxes = []
    for row in spells:
        leader = row["leader"]
        lost = leader == NO_LEADER
        who = "no leader" if lost else f"broker {leader}"
        title = (
            f"{name}: {who}, leader epoch {row['leader_epoch']}\n"
            f"from {clock(row['start_ms'])} (offset {row['start_offset']}) for "
            f"{span(row['duration_ms'])}\n{why(row['cause'])}"
        )
        css = "lost" if lost else colours[leader]
        boxes.append(_box(row, history, css, title, "" if lost else str(leader)))
    boxes += [
        _box(row, history, f"isr {css}", _isr_title(name, row), "")
        for row in isrs
        if (css := _isr_class(row))
    ]
    gone = lane["gone_ms"] is not None
    about = f"{name}, topic id {lane['topic_id']}{', deleted' if gone else ''}"
    if (left_out := lane["spells"] - len(spells)) > 0:
        about += f", {left_out:,} older leader epochs are not drawn"
    summary = (
        f"{name}: {lane['leader_changes']} leader changes, {span(lane['leaderless_ms'])} without a "
        f"leader, {lane['isr_shrinks']} ISR shrinks"
    )
    return _lane(name, about, boxes, "lane gone" if gone else "lane", summary)


def _isr_class(row: Row) -> str:
    """Return the class of an ISR's box, or "" for a complete ISR, which has none."""
    if row["below_min"]:
        return "low"
    return "part" if row["size"] < row["replication_factor"] else ""


def _isr_title(name: str, row: Row) -> str:
    setting = "unknown" if row["min_isr"] is None else row["min_isr"]
    return (
        f"{name}: ISR {row['isr']}, {row['size']} of {row['replication_factor']} replicas, "
        f"min.insync.replicas {setting}\nfrom {clock(row['start_ms'])} "
        f"(offset {row['start_offset']}) for {span(row['duration_ms'])}\n{why(row['cause'])}"
    )


def _broker_lanes(history: History, colours: Mapping[int, str]) -> str:
    lanes: dict[int, list[str]] = {broker: [] for broker in colours}
    for row in history.sessions:
        if row["unfenced_ms"] is None:
            continue
        ended = row["ended"]
        end = f"{ended}: {why(row['cause'])}" if ended else "still in service"
        title = (
            f"broker {row['broker']}, epoch {row['broker_epoch']}\nin service from "
            f"{clock(row['unfenced_ms'])} for {span(row['duration_ms'])}\n{end}"
        )
        css = colours[row["broker"]]
        lanes[row["broker"]].append(_box(row, history, css, title, str(row["broker"])))
    return "".join(
        _lane(f"broker {broker}", f"broker {broker}", boxes, "lane", f"broker {broker} in service")
        for broker, boxes in lanes.items()
    )


def _controller_lane(history: History) -> str:
    boxes = []
    for term, row in enumerate(history.quorum):
        controller = row["leader"]
        title = (
            f"controller {controller}, epoch {row['epoch']}\nfrom {clock(row['start_ms'])} "
            f"(offset {row['start_offset']}) for {span(row['duration_ms'])}\n"
            f"voters {', '.join(map(str, row['voters']))}"
        )
        css = TERM_COLOURS[term % len(TERM_COLOURS)]
        boxes.append(_box(row, history, css, title, str(controller)))
    return _lane("controller", "the quorum's leader", boxes, "lane", "active controllers")


def _lane(name: str, about: str, boxes: Sequence[str], css: str, summary: str) -> str:
    return (
        f'<div class="{css}" data-name="{escape(name)}"><span title="{escape(about)}">'
        f'{escape(name)}</span><div class=track role=img aria-label="{escape(summary)}">'
        f"{''.join(boxes)}</div></div>"
    )


def _box(row: Row, history: History, css: str, title: str, label: str) -> str:
    left = percent(row["start_ms"], history)
    right = 100.0 if row["end_ms"] is None else percent(row["end_ms"], history)
    return (
        f'<i class="{css}" style="left:{left:.3f}%;width:{max(right - left, 0):.3f}%" '
        f'title="{escape(title)}">{label}</i>'
    )

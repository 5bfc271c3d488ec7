"""The timeline of the report: lanes of the active controllers, of each broker and of each
partition, on a common time axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from quorate.quorum.analytics.log.text import clock, span
from quorate.quorum.analytics.page.page_text import MAX_LANES, History, Row, cut, topic, why
from quorate.quorum.metadata.records import NO_LEADER

DENSE_FROM_LANES = 40
"""The number of partitions above which the lanes are drawn with less height."""
COLOURS = 10
"""The number of colours of brokers. With more brokers, some share a colour."""
TERM_COLOURS = ("b9", "b8")
AXIS_STEPS_MS = tuple(
    unit * count
    for unit, counts in (
        (1, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1_000, (1, 2, 5, 10, 15, 30)),
        (60_000, (1, 2, 5, 10, 15, 30)),
        (3_600_000, (1, 2, 4, 6, 12)),
        (86_400_000, (1, 2, 7, 14, 30, 90, 365)),
    )
    for count in counts
)
"""The distances of the labels on the axis to choose from, in ms."""
MAX_TICKS = 9
"""About the maximum number of labels on the axis."""
LAST_TICK_PERCENT = 95.0
"""The largest position of a label on the axis. A label further right would be cut off at the
edge.
"""


def timeline(history: History) -> str:
    """Return the timeline as HTML."""
    colours = _colours(history)
    lanes = _by_partition(history.leadership)
    shown = list(lanes.items())[:MAX_LANES]
    dense = " dense" if len(shown) > DENSE_FROM_LANES else ""
    keys = "".join(
        f'<span class=key><i class="{colour}"></i>broker {broker}</span>'
        for broker, colour in colours.items()
    )
    rows = "".join(_partition_lane(name, spells, history, colours) for name, spells in shown)
    return (
        "<h2>Leadership</h2><div class=bar>"
        '<input type=search placeholder="filter partitions" aria-label="filter partitions" '
        'data-filters="#lanes .lane[data-name]">'
        "<label>zoom <input type=range min=0 max=16 step=.5 value=0 data-zooms='#lanes'></label>"
        f'{keys}<span class=key><i class="lost"></i>no leader</span></div>'
        f'{cut(len(lanes), MAX_LANES, "partitions")}<div class=chart><div class="scale{dense}" '
        f"id=lanes>{_axis(history)}<div class=rule>active controller</div>"
        f"{_controller_lane(history)}<div class=rule>brokers in service</div>"
        f"{_broker_lanes(history, colours)}<div class=rule>partitions</div>{rows}</div></div>"
    )


def _colours(history: History) -> dict[int, str]:
    brokers = {row["broker"] for row in history.sessions}
    brokers.update(row["leader"] for row in history.leadership if row["leader"] != NO_LEADER)
    return {broker: f"b{index % COLOURS}" for index, broker in enumerate(sorted(brokers))}


def _by_partition(leadership: Iterable[Row]) -> dict[tuple[str, int, str], list[Row]]:
    lanes: dict[tuple[str, int, str], list[Row]] = {}
    for row in leadership:
        lanes.setdefault((topic(row), row["partition"], row["topic_id"]), []).append(row)
    return dict(sorted(lanes.items()))


def _partition_lane(
    key: tuple[str, int, str], spells: Sequence[Row], history: History, colours: Mapping[int, str]
) -> str:
    topic, partition, topic_id = key
    boxes = []
    for row in spells:
        leader = row["leader"]
        lost = leader == NO_LEADER
        who = "no leader" if lost else f"broker {leader}"
        title = (
            f"{topic}-{partition}: {who}, leader epoch {row['leader_epoch']}\n"
            f"from {clock(row['start_ms'])} (offset {row['start_offset']}) for "
            f"{span(row['duration_ms'])}\n{why(row['cause'])}"
        )
        css = "lost" if lost else colours[leader]
        boxes.append(_box(row["start_ms"], row["end_ms"], history, css, title, leader))
    gone = spells[-1]["end_ms"] is not None
    name = f"{topic}-{partition}"
    about = f"{name}, topic id {topic_id}{', deleted' if gone else ''}"
    return _lane(name, about, boxes, "lane gone" if gone else "lane")


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
        box = _box(
            row["unfenced_ms"], row["end_ms"], history, colours[row["broker"]], title, row["broker"]
        )
        lanes[row["broker"]].append(box)
    return "".join(
        _lane(f"broker {broker}", f"broker {broker}", boxes, "lane")
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
        boxes.append(_box(row["start_ms"], row["end_ms"], history, css, title, controller))
    return _lane("controller", "the quorum's leader", boxes, "lane")


def _lane(name: str, about: str, boxes: Sequence[str], css: str) -> str:
    return (
        f'<div class="{css}" data-name="{escape(name)}"><span title="{escape(about)}">'
        f"{escape(name)}</span><div class=track>{''.join(boxes)}</div></div>"
    )


def _box(
    start_ms: int, end_ms: int | None, history: History, css: str, title: str, label: int
) -> str:
    left = _percent(start_ms, history)
    right = 100.0 if end_ms is None else _percent(end_ms, history)
    text = "" if label == NO_LEADER else label
    return (
        f'<i class="{css}" style="left:{left:.3f}%;width:{max(right - left, 0):.3f}%" '
        f'title="{escape(title)}">{text}</i>'
    )


def _percent(at_ms: int, history: History) -> float:
    whole = max(history.end_ms - history.start_ms, 1)
    return min(max((at_ms - history.start_ms) * 100.0 / whole, 0.0), 100.0)


def _axis(history: History) -> str:
    whole = max(history.end_ms - history.start_ms, 1)
    step = next((each for each in AXIS_STEPS_MS if whole / each <= MAX_TICKS), AXIS_STEPS_MS[-1])
    first = -(-history.start_ms // step) * step
    ticks = "".join(
        f'<em style="left:{_percent(at, history):.3f}%">{_tick(at, step)}</em>'
        for at in range(first, history.end_ms + 1, step)
        if _percent(at, history) <= LAST_TICK_PERCENT
    )
    return f'<div class="lane axis"><span>UTC</span><div class=track>{ticks}</div></div>'


def _tick(at_ms: int, step_ms: int) -> str:
    text = clock(at_ms)
    if step_ms >= 86_400_000:
        return text[:10]
    return text[11:16] if step_ms >= 60_000 else text[11:19] if step_ms >= 1_000 else text[11:]

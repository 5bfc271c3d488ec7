"""The HTML page of a scenario run: one self-contained file, light or dark as the reader's system.

Style and script are those of `quorate history report`. All lanes share one time axis. They show the
faults of nodes, the leaders of partitions, and the times at which clients could not write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from quorate.cli.chaos.checks.availability import Outage
from quorate.cli.chaos.results.page_lanes import Scale, lane
from quorate.cli.chaos.results.page_latencies import latency_section
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
    Event,
    StateInterval,
)
from quorate.cli.chaos.workload.comparison import Violations
from quorate.quorum.analytics.page.page_assets import SCRIPT, STYLE
from quorate.quorum.metadata.causes import DOCS

PARTITIONS = "Partitions: leaders, and times without writes"
AVAILABILITY = "Availability for clients"
MAX_LANES = 1000
"""The most partitions that are shown: those that could not be written for the longest time."""
DENSE_FROM_LANES = 40
"""With more partitions, each lane is less high."""
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
UNKNOWN = "unknown"
"""The text in place of a number that the run did not measure."""
OVER = (MUTED, CUT, PAUSED, SLOW, BAD_DISK, SKEWED)
"""States drawn over the state of the node in the cluster."""

OWN_STYLE = """
:root { --good:#2f7d3b; --ok:#8cc295; --quiet:#b9bec5; --silent:#d99a1b; --silent2:#f3dca8;
  --active:#2b6cb0; --down:#5b6068; }
@media screen and (prefers-color-scheme: dark) { :root { --good:#72c480; --ok:#33683e;
  --quiet:#4a5058; --silent:#e2ad45; --silent2:#5f4a1c; --active:#5b95d3; --down:#a3a9b2; } }
.card.good b { color:var(--good); }
.scale { position:relative; }
.marks { position:absolute; left:var(--label); right:0; top:20px; bottom:0; pointer-events:none; }
.marks b { position:absolute; top:0; bottom:0; width:1px; background:var(--soft); opacity:.45; }
.marks b.fault { background:var(--lost); opacity:.75; }
.marks b.fenced { background:var(--silent); opacity:.9; }
.axis span { color:var(--soft); }
.s-serving { background:var(--ok); } .s-active { background:var(--active); }
.s-fenced { background:var(--quiet); } .s-dead { background:var(--down); z-index:2; }
.tall.lane { height:28px; }
.track i.over { top:72%; z-index:2; border-left:0; background:
  repeating-linear-gradient(45deg,var(--silent) 0 5px,var(--silent2) 5px 8px); }
.s-standby { background:var(--track); }
.track i.s-serving, .track i.s-fenced, .track i.s-standby { color:var(--fg); }
.track i.s-dead { color:var(--panel); }
.frame:has(#availability) { width:fit-content; max-width:100%;
  min-width:min(36rem,100%); }
.two .track { height:86%; background:none; }
.two .track i { bottom:40%; }
.two .track i.up, .two .track i.lost { top:66%; bottom:0; border-left:0; }
.two .track i.up { z-index:0; } i.up { background:var(--line); }
.dense .two .track i { border-left:0; }
td.v { font-weight:600; color:var(--good); } tr.bad td.v { color:var(--lost); }
.notes { max-width:60rem; }
.bars { display:inline-flex; align-items:flex-end; height:1.6em; gap:1px; }
.bars i { width:7px; min-height:1px; background:var(--active); }
"""


def render(result: Result) -> str:
    """Return the page of a result."""
    scale = Scale(max(result.duration_ms, 1))
    body = "".join(
        (
            _head(result),
            _checks(result),
            _nodes(result, scale),
            _partitions(result, scale),
            latency_section(result.evidence, _table),
            _availability(result),
            _timeline(result.timeline),
        )
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(result.title)}: {result.verdict}</title>"
        f"<style>{STYLE}{OWN_STYLE}</style></head>"
        f"<body>{body}<script>{SCRIPT}</script></body></html>\n"
    )


def _head(result: Result) -> str:
    evidence, compared = result.evidence, result.evidence.compared
    known = evidence.writes.known
    longest = f"{evidence.writes.longest_ms():,} ms" if known else UNKNOWN
    waited = f"{sum(1 for ms in result.unavailable_ms().values() if ms):,}" if known else UNKNOWN
    cards = (
        ("verdict", result.verdict.upper(), "good" if result.good else "bad"),
        ("records acknowledged", f"{compared.acknowledged:,}", ""),
        ("lost", *_harm(compared.lost, compared.acknowledged - compared.unverified)),
        ("duplicated", *_harm(compared.doubled, compared.read)),
        ("longest wait of a writer", longest, ""),
        (f"of {result.partitions:,} partitions waited", waited, ""),
        *(
            (
                f"session of broker {each.node} after a heartbeat",
                f"{each.after_ms:,} ms",
                "",
            )
            for each in evidence.expiries
        ),
    )
    shown = "".join(
        f'<div class="card {css}"><b>{value}</b>{label}</div>' for label, value, css in cards
    )
    began = datetime.fromtimestamp(result.started_wall_ms / 1000, UTC)
    about = "" if result.about == "-" else f"{escape(result.about)}<br>"
    variants = ", ".join(map(escape, result.variants))
    return (
        f"<h1>{escape(result.title)}</h1><p class='soft notes'>{about}"
        f"<code>quorate chaos run {escape(result.scenario)}</code> ({variants}), "
        f"{began:%Y-%m-%d %H:%M:%S} UTC, {result.duration_ms / 1000:.1f} s</p>"
        f"<div class=cards>{shown}</div>"
    )


def _harm(found: Violations, examined: int) -> tuple[str, str]:
    """Return the number of violations and its CSS class. Without examined records none is known."""
    if found.count:
        return f"{found.count:,}", "bad"
    return ("0", "good") if examined else (UNKNOWN, "")


def _checks(result: Result) -> str:
    rows = [
        f'<tr class="{"" if check.good else "bad"}"><td class=v>{"ok" if check.good else "BAD"}'
        f"</td><td>{escape(check.name)}</td><td>{escape(check.text)}</td></tr>"
        for check in result.checks
    ]
    rows += [
        f"<tr class=soft><td>-</td><td>{escape(each.name)}</td>"
        f"<td>not judged, because {escape(each.reason)}</td></tr>"
        for each in result.not_judged
    ]
    return f"<h2>Verdict</h2>{_table('checks', ('', 'check', 'result'), rows)}"


def _nothing(title: str, why: str) -> str:
    """Return a section without content, which says what is not known."""
    return f"<h2>{title}</h2><p class=soft>{why}</p>"


def _nodes(result: Result, scale: Scale) -> str:
    if not result.nodes:
        return _nothing("Nodes", "Unknown: the run saw no state of any node.")
    by_node: dict[int, list[StateInterval]] = {}
    for interval in result.nodes:
        by_node.setdefault(interval.subject, []).append(interval)
    lanes = []
    for node, intervals in sorted(by_node.items()):
        role = (
            "broker" if any(each.what in (SERVING, FENCED) for each in intervals) else "controller"
        )
        boxes = [_node_box(interval, scale) for interval in intervals]
        lanes.append(lane(f"{role} {node}", boxes, "tall"))
    used = {interval.what for interval in result.nodes}
    keys = "".join(
        f'<span class=key><i class="s-{state}" {_hatched(state)}></i>{text}</span>'
        for state, text in STATES.items()
        if state in used
    )
    return (
        f"<h2>Nodes</h2><div class=bar>{keys}</div>"
        "<div class=chart tabindex=0 role=region aria-label=nodes><div class=scale>"
        f"{scale.axis()}{''.join(lanes)}{scale.marks(result.timeline)}</div></div>"
    )


def _hatched(state: str) -> str:
    colours = "var(--silent) 0 5px,var(--silent2) 5px 8px"
    style = f'style="background:repeating-linear-gradient(45deg,{colours})"'
    return style if state in OVER else ""


def _node_box(interval: StateInterval, scale: Scale) -> str:
    text = STATES[interval.what]
    lasted = f"{interval.start_ms / 1000:.3f} s to {interval.end_ms / 1000:.3f} s"
    title = (
        f"node {interval.subject}: {text}\n{lasted}\n{DOCS.get(interval.cause) or interval.cause}"
    )
    label = (
        ""
        if interval.what in OVER or interval.end_ms - interval.start_ms < scale.end_ms / 20
        else text
    )
    over = " over" if interval.what in OVER else ""
    return scale.box(interval.start_ms, interval.end_ms, f"s-{interval.what}{over}", title, label)


def _partitions(result: Result, scale: Scale) -> str:
    if not result.evidence.writes.known:
        return _nothing(PARTITIONS, "Unknown: no client wrote.")
    leaders: dict[int, list[StateInterval]] = {}
    for interval in result.evidence.leadership:
        leaders.setdefault(interval.subject, []).append(interval)
    outages: dict[int, list[Outage]] = {}
    for outage in result.evidence.writes.outages:
        outages.setdefault(outage.partition, []).append(outage)
    colours = _colours(result.evidence.leadership)
    lost_ms = result.unavailable_ms()
    worst = sorted(lost_ms, key=lambda each: (-lost_ms[each], each))
    shown = sorted(worst[:MAX_LANES])
    lanes = [
        lane(
            f"partition {partition}",
            [
                *(_leader_box(interval, scale, colours) for interval in leaders.get(partition, ())),
                scale.box(0, scale.end_ms, "up", f"partition {partition}: writes are acknowledged"),
                *(_outage_box(outage, scale) for outage in outages.get(partition, ())),
            ],
            "two",
        )
        for partition in shown
    ]
    dense = " dense" if len(lanes) > DENSE_FROM_LANES else ""
    left_out = result.partitions - len(shown)
    cut = (
        f"<p class=soft>The {MAX_LANES:,} partitions that waited longest are shown. {left_out:,} "
        "are left out.</p>"
    ) * (left_out > 0)
    keys = "".join(
        f'<span class=key><i class="{colour}"></i>led by broker {broker}</span>'
        for broker, colour in colours.items()
    )
    return (
        f"<h2>{PARTITIONS}</h2><div class=bar>"
        '<input type=search placeholder="filter partitions" aria-label="filter partitions" '
        'data-filters="#lanes .lane[data-name]">'
        "<label>zoom <input type=range min=0 max=16 step=.5 value=0 data-zooms='#lanes'></label>"
        f'{keys}<span class=key><i class="up"></i>clients write</span>'
        '<span class=key><i class="lost"></i>no leader, or clients wait</span></div>'
        f"{cut}<div class=chart tabindex=0 role=region aria-label=partitions>"
        f'<div class="scale{dense}" id=lanes>{scale.axis()}'
        f"{''.join(lanes)}{scale.marks(result.timeline)}</div></div>"
    )


def _colours(leadership: Sequence[StateInterval]) -> dict[int, str]:
    brokers = sorted({interval.leader for interval in leadership if interval.leader >= 0})
    return {broker: f"b{index % COLOURS}" for index, broker in enumerate(brokers)}


def _leader_box(interval: StateInterval, scale: Scale, colours: Mapping[int, str]) -> str:
    who = f"broker {interval.leader}" if interval.leader >= 0 else "no leader"
    title = (
        f"partition {interval.subject}: {who}, leader epoch {interval.epoch}\n"
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


def _availability(result: Result) -> str:
    if not result.evidence.writes.known:
        return _nothing(AVAILABILITY, "Unknown: no client wrote.")
    whole_ms = max(result.duration_ms, 1)
    longest: dict[int, int] = {}
    for outage in result.evidence.writes.outages:
        longest[outage.partition] = max(longest.get(outage.partition, 0), outage.duration_ms)
    by_length = sorted(result.unavailable_ms().items(), key=lambda item: (-item[1], item[0]))
    rows = []
    for partition, ms in by_length[:MAX_LANES]:
        share, at_once = max(0.0, 100 - 100 * ms / whole_ms), longest.get(partition, 0)
        rows.append(
            f"<tr><td class=n data-v={partition}>{partition}</td>"
            f"<td class=n data-v={ms}>{ms:,} ms</td>"
            f"<td class=n data-v={at_once}>{at_once:,} ms</td>"
            f'<td data-v="{ms}"><span class="meter up"><i style="width:{share:.2f}%"></i></span>'
            f"{share:.2f} %</td></tr>"
        )
    heads = ("#partition", "#not writable", "#longest", "available")
    return f"<h2>{AVAILABILITY}</h2>{_table('availability', heads, rows)}"


def _timeline(timeline: Sequence[Event]) -> str:
    return (
        "<h2>Timeline</h2><div class=bar><input type=search placeholder='filter events' "
        "aria-label='filter events' data-filters='#timeline tbody tr'></div>"
        + _table("timeline", ("#s", "node", "event", "cause"), list(_event_rows(timeline)))
    )


def _event_rows(timeline: Sequence[Event]) -> Iterator[str]:
    for event in timeline:
        node = "" if event.node is None else event.node
        cause = f'<td title="{escape(DOCS.get(event.cause, ""))}">{escape(event.cause)}</td>'
        css = "bad" if event.kind == "fault" else ""
        yield (
            f'<tr class="{css}"><td class=n data-v={event.ms}>{event.ms / 1000:.3f}</td>'
            f"<td>{node}</td><td>{escape(event.what)}</td>{cause}</tr>"
        )


def _table(name: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    shown = "".join(
        f"<th class=n scope=col><button>{head[1:]}</button></th>"
        if head.startswith("#")
        else f"<th scope=col><button>{head}</button></th>"
        for head in heads
    )
    return (
        f"<div class=frame tabindex=0 role=region aria-label='{name}'><table id={name}>"
        f"<thead><tr>{shown}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )

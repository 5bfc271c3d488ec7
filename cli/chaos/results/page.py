"""The HTML page of a scenario run: one self-contained file, light or dark as the reader's system.

Style and scripts are those of `quorate history report`. `page_chart.py` has the chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from quorate.cli.chaos.results.page_chart import MAX_LANES, chart
from quorate.cli.chaos.results.page_latencies import latency_section
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.timeline.timeline import Event
from quorate.cli.chaos.workload.comparison import Violations
from quorate.quorum.analytics.page.page_assets import SCRIPT, STYLE, ZOOM_SCRIPT
from quorate.quorum.metadata.causes import DOCS

AVAILABILITY = "Availability for clients"
UNKNOWN = "unknown"
"""The text in place of a number that the run did not measure."""

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
.tall.lane { height:26px; }
.tall .track i { white-space:nowrap; text-overflow:ellipsis; }
.track i.over { top:72%; z-index:2; border-left:0; }
.track i.over, .key i.hatched { background:
  repeating-linear-gradient(45deg,var(--silent) 0 5px,var(--silent2) 5px 8px); }
.dense .tall .track i { font-size:11px; padding-left:3px; } .dense .tall > span { font-size:12px; }
.tall.lane > span { line-height:26px; }
.head { position:relative; } .head .marks { top:0; z-index:2; } .head .marks b { opacity:.6; }
@media print { .head.pinned { position:relative; top:0; } }
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
    body = "".join(
        (
            _head(result),
            _checks(result),
            chart(result),
            latency_section(result.evidence, _table),
            _availability(result),
            _timeline(result.timeline),
        )
    )
    scripts = SCRIPT + (ZOOM_SCRIPT if result.nodes else "")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(result.title)}: {result.verdict}</title>"
        f"<style>{STYLE}{OWN_STYLE}</style></head>"
        f"<body>{body}<script>{scripts}</script></body></html>\n"
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
    return f"<h2>Verdict</h2>{_table('checks', ('verdict', 'check', 'result'), rows)}"


def _availability(result: Result) -> str:
    if not result.evidence.writes.known:
        return f"<h2>{AVAILABILITY}</h2><p class=soft>Unknown: no client wrote.</p>"
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

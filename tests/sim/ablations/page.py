"""A trace as a sequence diagram: one self-contained HTML file, with a lane per node, time
downwards, and the colours of the reader's system."""

from __future__ import annotations

from html import escape

from quorate.quorum.analytics.page.page_assets import STYLE
from tests.sim.ablations.trace import Event, Kind, Trace

LEFT, TOP, ROW = 84, 58, 24
LANES, WIDEST_LANE, NARROWEST_LANE = 450, 150, 64
"""The width of all lanes, and of one lane. The text of each event is to the right of all lanes, so
it must not begin off the screen."""

OWN_STYLE = """
p { max-width:110ch; }
svg { display:block; font:12px ui-monospace,Menlo,Consolas,monospace; }
svg text { fill:var(--fg); } svg text.dim { fill:var(--soft); }
.line { stroke:var(--line); } .band { fill:var(--track); }
.arrow { stroke:var(--accent); fill:none; stroke-width:1.4; } .tip { fill:var(--accent); }
.arrow.lost { stroke:var(--lost); stroke-dasharray:4 3; } .effect { fill:var(--up); }
.fault { fill:var(--lost); } svg text.fault { fill:var(--lost); }
svg text.sent { fill:var(--accent); }
.broken { fill:var(--lost); opacity:.14; } svg text.broken { fill:var(--lost); opacity:1;
  font-weight:700; }
@media screen { .chart { max-height:none; } }
@media print { svg { width:100%; height:auto; } }
"""
"""The rules that the page adds to the style sheet of the report."""


def page(trace: Trace, title: str, subtitle: str, invariant: str) -> str:
    note = (
        f"<p class='soft'>The {trace.left_out} events before are left out.</p>"
        if trace.left_out
        else ""
    )
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{STYLE}{OWN_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<p>{escape(subtitle)}</p><p><b>What catches it:</b> {escape(invariant)}</p>"
        f"{note}<div class=chart tabindex=0 role=region aria-label=events>{_svg(trace)}</div>"
        "</body></html>\n"
    )


class _Places:
    def __init__(self, trace: Trace) -> None:
        lane = min(WIDEST_LANE, max(NARROWEST_LANE, LANES // max(len(trace.lanes), 1)))
        self.x = {name: LEFT + lane // 2 + lane * i for i, name in enumerate(trace.lanes)}
        self.text_x = LEFT + lane * len(trace.lanes) + 12
        longest = max((len(each.text) + 22 for each in trace.events), default=0)
        self.width = self.text_x + int(7.4 * longest) + 20
        self.height = TOP + ROW * (len(trace.events) + 1)

    def y(self, row: int) -> float:
        return TOP + ROW * row + ROW / 2


def _svg(trace: Trace) -> str:
    places = _Places(trace)
    size = f"width='{places.width}' height='{places.height}'"
    # A screen reader reads the texts of a group, but not those of an image.
    name = "role='group' aria-label='the events, from top to bottom'"
    parts = [f"<svg {size} viewBox='0 0 {places.width} {places.height}' {name}>"]
    parts += [
        f"<rect class='band' x='0' y='{TOP + ROW * row}' width='{places.width}' height='{ROW}'/>"
        for row in range(1, len(trace.events), 2)
    ]
    for lane, x in places.x.items():
        parts.append(f"<line class='line' x1='{x}' x2='{x}' y1='{TOP - 10}' y2='{places.height}'/>")
        parts.append(
            f"<text x='{x}' y='{TOP - 20}' text-anchor='middle' font-weight='700'>"
            f"{escape(lane if not lane.isdigit() else f'node {lane}')}</text>"
        )
    parts.append(f"<text class='dim' x='8' y='{TOP - 20}'>ms</text>")
    before = None
    for row, event in enumerate(trace.events):
        if event.time_ms != before:
            y = places.y(row) + 4
            parts.append(f"<text class='dim' x='8' y='{y}'>{event.time_ms:.1f}</text>")
        before = event.time_ms
        parts += _row(places, row, event)
    return "".join([*parts, "</svg>"])


def _row(places: _Places, row: int, event: Event) -> list[str]:
    y, x = places.y(row), places.x.get(event.lane, LEFT)
    full = escape(_words(event))
    kind = "sent" if event.kind is Kind.ARRIVED and event.sent_at < 0 else event.kind.value
    if event.kind is Kind.BROKEN:
        return [
            f"<rect class='broken' x='0' y='{y - ROW / 2}' width='{places.width}' height='{ROW}'/>",
            f"<text class='broken' x='{LEFT}' y='{y + 4}'>{full}</text>",
        ]
    parts = [f"<text class='{kind}' x='{places.text_x}' y='{y + 4}'>{full}</text>"]
    if event.kind is Kind.SENT:
        parts.append(f"<circle class='tip' cx='{x}' cy='{y}' r='2.5'/>")
    elif event.kind in (Kind.ARRIVED, Kind.LOST):
        parts += _arrow(places, row, event)
    else:
        parts.append(
            f"<rect class='fault' x='{x - 5}' y='{y - 5}' width='10' height='10'/>"
            if event.kind is Kind.FAULT
            else f"<circle class='effect' cx='{x}' cy='{y}' r='4.5'/>"
        )
    return parts


def _arrow(places: _Places, row: int, event: Event) -> list[str]:
    """Draw the arrow from the row of the sending to the row of the arrival. A lost message ends
    half-way."""
    lost = event.kind is Kind.LOST
    source, target = (event.lane, event.other) if lost else (event.other, event.lane)
    x1, x2, y2 = places.x[source], places.x[target], places.y(row)
    y1 = places.y(event.sent_at) if event.sent_at >= 0 else y2
    side = 1 if x2 > x1 else -1
    if lost:
        x2 = (x1 + x2) // 2
        return [
            f"<line class='arrow lost' x1='{x1}' y1='{y1}' x2='{x2}' y2='{y2}'/>",
            f"<text class='fault' x='{x2 - 4}' y='{y2 + 4}'>✕</text>",
        ]
    head = f"{x2},{y2} {x2 - side * 8},{y2 - 4} {x2 - side * 8},{y2 + 4}"
    return [
        f"<line class='arrow' x1='{x1}' y1='{y1}' x2='{x2 - side * 6}' y2='{y2}'/>",
        f"<polygon class='tip' points='{head}'/>",
    ]


def _words(event: Event) -> str:
    match event.kind:
        case Kind.SENT:
            return f"{event.lane} → {event.other}  {event.text}"
        case Kind.ARRIVED:
            at_once = event.sent_at < 0
            between = (
                f"{event.other} → {event.lane}" if at_once else f"{event.lane} ← {event.other}"
            )
            return f"{between}  {event.text}"
        case Kind.LOST:
            return f"{event.lane} → {event.other}  lost: {event.text}"
        case Kind.BROKEN:
            return event.text
        case _:
            return f"{event.lane}  {event.text}"

"""The lanes of a result page: boxes placed by percentage on one time axis. Pure text functions.

`css` is the name of a CSS class. Titles and labels are plain text, which the functions escape.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from quorate.cli.chaos.timeline.timeline import Event

STEPS_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000),
    *(60_000, 300_000, 600_000, 1_800_000, 3_600_000),
)
"""The distances between two ticks of an axis, of which the first that fits is used. The script of
the page uses the short ones after a zoom."""
MAX_TICKS = 12
LAST_TICK_PERCENT = 97.0  # the text of a later tick would be cut off
MARKED = ("fault", "fenced", "unfenced", "controller")
"""The kinds of events that are drawn through all lanes."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The time axis from 0 to `end_ms`. Times are in ms since the start of the run."""

    end_ms: int

    def percent(self, ms: int) -> float:
        """Return the position of a time on the axis, from 0 to 100."""
        return min(max(ms * 100.0 / max(self.end_ms, 1), 0.0), 100.0)

    def box(self, start_ms: int, end_ms: int, css: str, title: str, label: object = "") -> str:
        """Return the HTML of a box with a tooltip and a label."""
        left = self.percent(start_ms)
        width = max(self.percent(end_ms) - left, 0.0)
        return (
            f'<i class="{css}" style="left:{left:.3f}%;width:{width:.3f}%" '
            f'title="{escape(title)}">{escape(str(label))}</i>'
        )

    def axis(self) -> str:
        """Return the HTML of the axis with its ticks."""
        step = next((each for each in STEPS_MS if self.end_ms / each <= MAX_TICKS), STEPS_MS[-1])
        ticks = "".join(
            f'<em style="left:{self.percent(at):.3f}%">{seconds(at)}</em>'
            for at in range(0, self.end_ms + 1, step)
            if self.percent(at) <= LAST_TICK_PERCENT
        )
        return (
            f"<div class='lane axis' data-unit=seconds data-steps='{json.dumps(STEPS_MS)}' "
            f"data-ticks={MAX_TICKS}><span>seconds</span><div class=track>{ticks}</div></div>"
        )

    def marks(self, events: Iterable[Event]) -> str:
        """Return the HTML of the lines that mark events in all lanes."""
        lines = "".join(
            f'<b class="{event.kind}" style="left:{self.percent(event.ms):.3f}%" '
            f'title="{escape(event_title(event))}"></b>'
            for event in events
            if event.kind in MARKED
        )
        return f"<div class=marks>{lines}</div>"


def lane(name: str, boxes: Sequence[str], summary: str, css: str = "") -> str:
    """Return the HTML of a lane. `boxes` are HTML.

    `summary` tells in words what the boxes show. It is the tooltip of the name, too."""
    return (
        f'<div class="lane {css}" data-name="{escape(name)}"><span title="{escape(summary)}">'
        f'{escape(name)}</span><div class=track role=img aria-label="{escape(summary)}">'
        f"{''.join(boxes)}</div></div>"
    )


def seconds(ms: int) -> str:
    """Return a time in seconds as text."""
    return f"{ms / 1000:g}"


def event_title(event: Event) -> str:
    """Return the tooltip of an event."""
    node = "" if event.node is None else f"node {event.node} "
    cause = f" ({event.cause})" if event.cause else ""
    return f"{event.ms / 1000:.3f} s: {node}{event.what}{cause}"

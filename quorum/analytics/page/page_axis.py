"""The time axis of the report's timeline. The script of the page draws it again after a zoom."""

from __future__ import annotations

import json

from quorate.quorum.analytics.log.text import clock
from quorate.quorum.analytics.page.page_text import History

DAY_MS = 86_400_000
STEPS_MS = tuple(
    unit * count
    for unit, counts in (
        (1, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1_000, (1, 2, 5, 10, 15, 30)),
        (60_000, (1, 2, 5, 10, 15, 30)),
        (3_600_000, (1, 2, 4, 6, 12)),
        (86_400_000, (1, 2, 7, 14, 30, 60, 90, 180, 365)),
    )
    for count in counts
)
"""The distances of the labels on the axis to choose from, in ms."""
MAX_TICKS = 7
"""About the maximum number of labels on the visible part of the axis."""
LAST_TICK_PERCENT = 95.0
"""The largest position of a label on the axis. A label further right would be cut off at the
edge.
"""


def percent(at_ms: int, history: History) -> float:
    """Return the position of a time in the shown range. Times outside of it are at its ends."""
    whole = max(history.end_ms - history.start_ms, 1)
    return min(max((at_ms - history.start_ms) * 100.0 / whole, 0.0), 100.0)


def axis(history: History) -> str:
    """Return the axis as HTML, with the steps among which the script chooses.

    Its label has the date of the left edge. A tick at a midnight has the date of the new day, also
    if the other ticks are times."""
    whole = max(history.end_ms - history.start_ms, 1)
    step = next((each for each in STEPS_MS if whole / each <= MAX_TICKS), STEPS_MS[-1])
    first = -(-history.start_ms // step) * step
    ticks = "".join(
        f'<em style="left:{percent(at, history):.3f}%">{_tick(at, step)}</em>'
        for at in range(first, history.end_ms + 1, step)
        if percent(at, history) <= LAST_TICK_PERCENT
    )
    return (
        f"<div class='lane axis' data-steps='{json.dumps(STEPS_MS)}' data-ticks={MAX_TICKS}>"
        f"<span>UTC {clock(history.start_ms)[:10]}</span><div class=track>{ticks}</div></div>"
    )


def _tick(at_ms: int, step_ms: int) -> str:
    text = clock(at_ms)
    if step_ms >= DAY_MS or at_ms % DAY_MS == 0:
        return text[:10]
    return text[11:16] if step_ms >= 60_000 else text[11:19] if step_ms >= 1_000 else text[11:]

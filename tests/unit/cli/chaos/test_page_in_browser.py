"""The page of a run as a browser shows it, at three widths. Skipped without a Chromium."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.cli.chaos.results.page import render
from tests.unit.analytics.browser import MEASURES, VARIABLE, find_browser, look_at
from tests.unit.cli.chaos.histories import result

BROWSER = find_browser()
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason=f"no headless Chromium in PATH or {VARIABLE}"),
    pytest.mark.timeout(240),
]
WIDTHS = (360, 800, 1600)
LOOKS = """
const lanes = () => [...document.querySelectorAll('#lanes .lane[data-name]')]
  .filter(each => !each.hidden).length;
const cut = [...document.querySelectorAll('.axis em')].filter(node => {
  const box = node.getBoundingClientRect();
  const track = node.parentElement.getBoundingClientRect();
  return box.right > track.right + 1 || box.bottom > track.bottom + 1;
}).length;
const found = {
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  contrasts: contrasts(), cut, lanes: lanes(),
  ground: getComputedStyle(document.body).backgroundColor,
};
const zoom = document.querySelector('input[data-zooms]');
const before = document.getElementById('lanes').clientWidth;
zoom.value = 10; zoom.dispatchEvent(new Event('input'));
found.wider = document.getElementById('lanes').clientWidth / before;
found.outside = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const filter = document.querySelector('input[data-filters*=lanes]');
filter.value = 'partition 7'; filter.dispatchEvent(new Event('input'));
found.filtered = lanes();
const head = document.querySelector('#availability th button');
head.focus(); found.focused = document.activeElement === head; head.click();
found.sorted = head.closest('th').getAttribute('aria-sort');
const frames = [...document.querySelectorAll('.frame, .chart')];
found.unreachable = frames.filter(each => each.tabIndex < 0).length;
found.problems = problems;
const out = document.createElement('pre');
out.id = 'probe'; out.textContent = JSON.stringify(found);
document.body.append(out);
"""
REPORT = f"<script>{MEASURES}{LOOKS}</script>"


def seen(partitions: int, width: int, *, dark: bool = False, **changed: Any) -> dict[str, Any]:
    """Return what a browser shows of the page of a result."""
    assert BROWSER is not None
    page = render(result(partitions, **changed))
    return look_at(page, BROWSER, width, dark=dark, report=REPORT)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_and_reads(width: int, dark: bool) -> None:
    found = seen(12, width, dark=dark, taken_back=4)
    assert found["problems"] == []
    assert (found["overflow"], found["outside"]) == (0, 0), "only the chart scrolls sideways"
    assert found["ground"] == ("rgb(21, 23, 26)" if dark else "rgb(251, 251, 250)")
    assert found["contrasts"] == []
    assert found["cut"] == 0, "labels of the axis are whole"


@pytest.mark.parametrize("partitions", [12, 5_000])
def test_the_page_zooms_filters_and_sorts_by_keyboard(partitions: int) -> None:
    found = seen(partitions, 800)
    assert found["problems"] == []
    assert found["lanes"] == min(partitions, 1_000)
    assert found["wider"] > 5
    assert 1 <= found["filtered"] < found["lanes"]
    assert (found["focused"], found["sorted"]) == (True, "descending")
    assert found["unreachable"] == 0, "every part that scrolls can be reached by keyboard"

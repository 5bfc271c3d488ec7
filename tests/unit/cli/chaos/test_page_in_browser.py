"""The page of a run as a browser shows it, at three widths. Skipped without a Chromium."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.cli.chaos.results.page import render
from tests.unit.analytics.browser import MEASURES, VARIABLE, find_browser, look_at
from tests.unit.cli.chaos.histories import not_started, result

BROWSER = find_browser()
pytestmark = [
    pytest.mark.tools,
    pytest.mark.skipif(BROWSER is None, reason=f"no headless Chromium in PATH or {VARIABLE}"),
    pytest.mark.timeout(240),
]
WIDTHS = (360, 800, 1600)
LOOKS = """{
const lanes = () => [...document.querySelectorAll('#lanes .rule ~ .lane')]
  .filter(each => !each.hidden).length;
const chart = document.querySelector('.chart');
function inside(node) {
  const box = node.getBoundingClientRect(), view = chart.getBoundingClientRect();
  return box.width > 0 && box.left >= view.left - 1 && box.right <= view.right + 1
    && box.top >= view.top - 1 && box.bottom <= view.bottom + 1;
}
function view() {
  chart.scrollIntoView();
  const drawn = [...document.querySelectorAll('#lanes .axis em')].filter(inside);
  const first = document.querySelector('#lanes .head .lane[data-name^=broker] .track i');
  return {
    ticks: drawn.map(each => Number(each.textContent)),
    places: drawn.map(each => each.getBoundingClientRect().left),
    nodes: [...document.querySelectorAll('#lanes .head .lane > span')].filter(inside).length,
    names: [...document.querySelectorAll('#lanes .rule ~ .lane > span')].filter(inside).length,
    box: first.getBoundingClientRect().width,
    through: [...document.querySelectorAll('#lanes .lane > span')].filter(inside).filter(name => {
      const box = name.getBoundingClientRect(), view = chart.getBoundingClientRect();
      return [1, box.height / 2, box.height - 1].some(y => {
        const top = document.elementFromPoint(view.left + 3, box.top + y);
        return top && top.tagName === 'I';
      }) || box.height < name.parentElement.getBoundingClientRect().height - 1;
    }).length,
  };
}
const cut = [...document.querySelectorAll('.axis em')].filter(node => {
  const box = node.getBoundingClientRect();
  const track = node.parentElement.getBoundingClientRect();
  return box.right > track.right + 1 || box.bottom > track.bottom + 1;
}).length;
const found = {
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  contrasts: contrasts(), cut, lanes: lanes(), plain: view(),
  ground: getComputedStyle(document.body).backgroundColor,
};
const zoom = document.querySelector('input[data-zooms]');
zoom.value = 10; zoom.dispatchEvent(new Event('input'));
chart.scrollLeft = chart.scrollWidth / 3; chart.scrollTop = chart.scrollHeight / 2;
chart.dispatchEvent(new Event('scroll'));
found.zoomed = view();
found.outside = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const filter = document.querySelector('input[data-filters*=lanes]');
filter.value = 'partition 7'; filter.dispatchEvent(new Event('input'));
found.filtered = lanes();
filter.value = 'no such name'; filter.dispatchEvent(new Event('input'));
found.nothing = [lanes(), document.querySelector('.none').offsetHeight > 0];
chart.scrollTop = 0;
found.stay = view().nodes;
const head = document.querySelector('#availability th button');
head.focus(); found.focused = document.activeElement === head; head.click();
found.sorted = head.closest('th').getAttribute('aria-sort');
const frames = [...document.querySelectorAll('.frame, .chart')];
found.unreachable = frames.filter(each => each.tabIndex < 0).length;
found.problems = problems;
const out = document.createElement('pre');
out.id = 'probe'; out.textContent = JSON.stringify(found);
document.body.append(out);
}"""
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


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("partitions", [12, 5_000])
def test_ticks_and_lanes_of_nodes_zoom_with_the_partitions(partitions: int, width: int) -> None:
    found = seen(partitions, width)
    plain, zoomed = found["plain"], found["zoomed"]
    assert found["problems"] == []
    assert len(plain["ticks"]) >= 2 and len(zoomed["ticks"]) >= 2
    step, closer = (each["ticks"][1] - each["ticks"][0] for each in (plain, zoomed))
    assert closer < step / 5, "the axis has closer ticks after the zoom"
    assert 0 < zoomed["ticks"][0] < zoomed["ticks"][-1] < 10, "those of the visible part"
    gaps = [b - a for a, b in zip(zoomed["places"], zoomed["places"][1:], strict=False)]
    assert min(gaps) > 30, "their texts do not touch each other"
    assert zoomed["box"] > 5 * plain["box"], "boxes of nodes are as long as those of partitions"
    assert zoomed["nodes"] == plain["nodes"] == 2, "lanes of nodes stay in view"
    assert zoomed["names"] >= 3, "lanes keep their names"
    assert zoomed["through"] == 0, "no box shows beside, above or below a name"


def test_the_lanes_of_nodes_stay_if_no_partition_matches() -> None:
    found = seen(12, 800)
    assert found["nothing"] == [0, True], "an empty chart says why"
    assert found["stay"] == 2


@pytest.mark.parametrize("partitions", [12, 5_000])
def test_the_page_filters_and_sorts_by_keyboard(partitions: int) -> None:
    found = seen(partitions, 800)
    assert found["problems"] == []
    assert found["lanes"] == min(partitions, 1_000)
    assert 1 <= found["filtered"] < found["lanes"]
    assert (found["focused"], found["sorted"]) == (True, "descending")
    assert found["unreachable"] == 0, "every part that scrolls can be reached by keyboard"


def test_the_page_of_a_run_that_could_not_start_fits_and_reads() -> None:
    assert BROWSER is not None
    looks = f"""<script>{MEASURES}
      const out = document.createElement('pre');
      out.id = 'probe'; out.textContent = JSON.stringify({{problems, contrasts: contrasts(),
        overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth}});
      document.body.append(out);</script>"""
    found = look_at(render(not_started()), BROWSER, 360, report=looks)
    assert found == {"problems": [], "contrasts": [], "overflow": 0}

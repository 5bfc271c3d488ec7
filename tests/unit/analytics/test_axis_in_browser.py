"""The time axis of the report for an hour, three days and a year, before and after a zoom.

Skipped if the machine has no Chromium."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from quorate.quorum.analytics.page.page import render
from tests.unit.analytics.browser import VARIABLE, find_browser
from tests.unit.analytics.test_page import history
from tests.unit.cli.console.browser_session import BrowserSession, browsing

BROWSER = find_browser() or ""
pytestmark = [
    pytest.mark.tools,
    pytest.mark.skipif(not BROWSER, reason=f"no headless Chromium in PATH or {VARIABLE}"),
    pytest.mark.timeout(240),
]
WIDTHS = (360, 800, 1600)
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
RANGES = {"hour": HOUR_MS, "three days": 3 * DAY_MS, "year": 365 * DAY_MS}
START_MS = int(datetime(2026, 11, 26, 19, 53, 7, tzinfo=UTC).timestamp() * 1000)
AXIS = """(() => {
  const chart = document.querySelector('.chart').getBoundingClientRect();
  const [first, track] = document.querySelector('#lanes .axis').children;
  const edge = first.getBoundingClientRect().right;
  const ticks = [...track.children].map(each => ({text: each.textContent,
    share: parseFloat(each.style.left) / 100, box: each.getBoundingClientRect()}))
    .filter(each => each.box.left >= edge - 1 && each.box.left < chart.right)
    .map(each => ({...each, left: each.box.left, right: each.box.right}));
  return {label: first.textContent, wide: first.scrollWidth > first.clientWidth, ticks};
})()"""
ZOOM = """(() => {
  const zoom = document.querySelector('input[data-zooms]');
  zoom.value = %s; zoom.dispatchEvent(new Event('input'));
  const chart = document.querySelector('.chart');
  chart.scrollLeft = chart.scrollWidth * .6; chart.dispatchEvent(new Event('scroll'));
})()"""


def page_of(partitions: int, range_ms: int) -> str:
    """Return the page of a history of this length."""
    return render(history(partitions, start_ms=START_MS, end_ms=START_MS + range_ms))


def dates_are_clear(seen: dict[str, Any], range_ms: int) -> None:
    """Check that a reader knows the date of each tick.

    The date is that of the last date on the left: a tick at midnight, or the label of the axis."""
    date = seen["label"].removeprefix("UTC").strip()
    for tick in seen["ticks"]:
        time = "00:00"
        if "-" in tick["text"]:
            date = tick["text"]
        else:
            time = tick["text"]
        said_ms = datetime.fromisoformat(f"{date} {time}+00:00").timestamp() * 1000
        at_ms = START_MS + tick["share"] * range_ms
        assert abs(said_ms - at_ms) <= max(range_ms / 100_000, 2), (date, time, at_ms)


async def check(page: BrowserSession, range_ms: int, width: int) -> None:
    """Check the axis as it is shown now."""
    seen = await page.value(AXIS)
    assert len(seen["ticks"]) >= (2 if width > 400 else 1), seen
    assert not seen["wide"], f"the label is whole: {seen['label']}"
    for left, right in pairwise(seen["ticks"]):
        assert left["right"] <= right["left"], f"{left['text']} and {right['text']} overlap"
    dates_are_clear(seen, range_ms)


@pytest.mark.parametrize("name", RANGES)
async def test_each_tick_has_a_date_at_every_width_and_zoom(name: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of(12, RANGES[name]))
    async with browsing(BROWSER, file.as_uri()) as page:
        await page.until("document.readyState === 'complete'")
        for width in WIDTHS:
            await page.show(width=width)
            for zoom in (0, 4, 9, 16):
                await page.value(ZOOM % zoom)
                await check(page, RANGES[name], width)
        assert page.problems == []


async def test_five_thousand_partitions_of_a_year_fit_zoom_and_filter(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of(5_000, RANGES["year"]))
    async with browsing(BROWSER, file.as_uri()) as page:
        await page.until("document.readyState === 'complete'")
        for width in WIDTHS:
            await page.show(width=width)
            await page.value(ZOOM % 10)
            await check(page, RANGES["year"], width)
            wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert await page.value(wide) == 0
        shown = await page.value("document.querySelectorAll('#lanes .rule ~ .lane').length")
        assert shown == 5_000
        await page.value(
            "(() => { const one = document.querySelector('input[data-filters*=lanes]');"
            " one.value = 'orders-4999'; one.dispatchEvent(new Event('input')); })()"
        )
        left = "document.querySelectorAll('#lanes .rule ~ .lane:not([hidden])').length"
        assert await page.value(left) == 1
        assert page.problems == []

"""The page of the console as a browser shows it. Skipped if the machine has no Chromium."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.cli.console import past as past_module
from quorate.cli.console import server as server_module
from quorate.cli.console.cluster_tables import ClusterTables
from quorate.cli.console.views.change_events import Event
from quorate.cli.console.views.table import Table
from tests.unit.analytics.browser import MEASURES, VARIABLE, find_browser
from tests.unit.analytics.logs import batches, write_segment
from tests.unit.cli.console.browser_session import browsing
from tests.unit.cli.console.readings import reading
from tests.unit.cli.console.served import TOKEN, served

BROWSER = find_browser() or ""
pytestmark = [
    pytest.mark.tools,
    pytest.mark.skipif(not BROWSER, reason=f"no headless Chromium in PATH or {VARIABLE}"),
    pytest.mark.timeout(120),
]
ROWS = "document.querySelectorAll('.row').length"
FIRST = "document.querySelector('.row').innerText.replace(/\\s+/g, ' ')"
COUNT = "document.getElementById('count').textContent"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1600])
async def test_the_page_fits_and_reads(width: int, dark: bool) -> None:
    async with (
        served(reading(12)) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}", width=width, dark=dark) as page,
    ):
        await page.until(f"{ROWS} === 12 && document.querySelectorAll('.card').length > 4")
        ground = await page.value("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(21, 23, 26)" if dark else "rgb(251, 251, 250)")
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.value(wide) <= 0
        assert await page.value(f"(() => {{ {MEASURES} return contrasts(); }})()") == []
        assert page.problems == [], "the browser refused nothing and reported no error"


async def test_ten_thousand_partitions_scroll_filter_sort_and_change_by_keyboard() -> None:
    async with (
        served(reading(10_000)) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}") as page,
    ):
        await page.until(f"{ROWS} > 0")
        assert await page.value(ROWS) < 100, "only the visible rows exist"
        assert "offline" in await page.value(FIRST)
        await page.value("document.getElementById('rows').scrollTop = 1e9")
        await page.until("document.querySelector('.row:last-child')?.innerText.includes('9997')")
        assert await page.value(ROWS) < 100
        await page.value("document.getElementById('rows').scrollTop = 0")
        await page.press("/")
        assert await page.value("document.activeElement.id") == "filter"
        for letter in "offline":
            await page.press(letter)
        await page.until(f"{COUNT} === '1 of 10000 rows'")
        await page.press("Escape")
        await page.until(f"{COUNT} === '10000 of 10000 rows'")
        await page.value("document.querySelector('#heads [data-column=partition]').click()")
        await page.until(f"{FIRST}.startsWith('orders 0 ')")
        await page.value("document.querySelector('[data-table=partitions]').focus()")
        await page.press("ArrowRight")
        await page.press("ArrowRight")
        await page.until("document.querySelector('.row')?.innerText.includes('b5:9092')")
        console.reading = replace(console.reading, version=2, error="no server answers")
        console.server.changed()
        await page.until("document.getElementById('error').innerText === 'no server answers'")
        assert page.problems == []


async def test_without_the_token_the_page_says_what_to_do() -> None:
    async with served(reading(12)) as console, browsing(BROWSER, console.url) as page:
        await page.until("document.getElementById('error')?.innerText.includes('token')")
        assert await page.value(ROWS) == 0


async def test_a_row_is_explained_by_keyboard_with_its_leaders() -> None:
    events = (
        Event("2026-01-02 03:04:06.000", 9, "orders-11", "none", "Nobody leads.", "why", ()),
        Event("2026-01-02 03:04:05.000", 8, "orders-11", 4, "Broker 4 leads.", "why", (4,)),
    )
    made = reading(12)
    timeline = Table(Event._fields, events, "since offset 3")
    async with (
        served(replace(made, tables=made.tables.with_views({"timeline": timeline}))) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}") as page,
    ):
        await page.until(f"{ROWS} > 0")
        await page.value("document.getElementById('rows').focus()")
        await page.press("ArrowDown")
        await page.press("Enter")
        await page.until("document.getElementById('details').open")
        text = await page.value("document.getElementById('details').innerText")
        assert "orders-11" in text and "offline" in text and "Nobody leads." in text
        bars = "[...document.querySelectorAll('.leaders rect title')].map(each => each.textContent)"
        assert await page.value(bars) == [
            "broker 4 since 2026-01-02T03:04:05.000Z",
            "no leader since 2026-01-02T03:04:06.000Z",
        ]
        await page.value("document.querySelector('.when').focus()")
        await page.value("window.drawn = [document.querySelector('.row'), document.activeElement]")
        shown = console.reading.tables
        noted = replace(shown.tables["partitions"], note="noted")
        newer = shown.with_views({"partitions": noted})
        console.reading = replace(console.reading, version=2, tables=newer)
        console.server.changed()
        note = "document.getElementById('note').textContent"
        await page.until(f"!drawn[1].isConnected && {note} === 'noted'")
        assert await page.value("document.activeElement.className") == "when"
        assert await page.value("drawn[0].isConnected"), "it may be clicked"
        await page.press("Escape")
        await page.until("!document.getElementById('details').open")
        await page.value("document.getElementById('quorum').click()")
        await page.until("document.querySelector('#details h2')?.textContent === 'quorum'")
        assert page.problems == []


async def test_the_slider_shows_earlier_states_and_returns_to_the_present(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    async with (
        served(reading(12), past=tmp_path) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}") as page,
    ):
        await page.until(f"{ROWS} === 12 && document.querySelector('#travel input').max > 30")
        await page.value(
            "(() => { const slider = document.querySelector('#travel input'); slider.value = 25;"
            "slider.dispatchEvent(new Event('input')); })()"
        )
        await page.until(f"{ROWS} === 2 && {FIRST}.startsWith('a 1 offline')")
        text = "document.getElementById('travel').textContent"
        await page.until(f"{text}.includes('the cluster at offset 25, 2027')")
        await page.value("document.querySelector('[data-table=groups]').click()")
        await page.until("document.getElementById('note').textContent.includes('does not tell')")
        await page.value("document.querySelector('[data-table=partitions]').click()")
        console.reading = replace(reading(13), version=2)
        console.server.changed()
        await page.until(f"{ROWS} === 2")
        await page.value("document.querySelector('#travel button').click()")
        await page.until(f"{ROWS} === 13")
        assert page.problems == []


async def test_the_slider_asks_for_one_state_at_a_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    going, real = threading.Event(), past_module.state_at
    replays: list[int] = []

    def slow(directory: Path, offset: int) -> ClusterTables:
        replays.append(offset)
        assert going.wait(30)
        return real(directory, offset)

    monkeypatch.setattr(past_module, "state_at", slow)
    monkeypatch.setattr(past_module, "MAX_WAITING", 2)
    slide = (
        "(() => {{ const slider = document.querySelector('#travel input'); slider.value = {};"
        "slider.dispatchEvent(new Event('input')); }})()"
    )
    async with (
        served(reading(12), past=tmp_path) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}") as page,
    ):
        await page.until(f"{ROWS} === 12 && document.querySelector('#travel input').max > 30")
        await page.value(slide.format(20))
        async with asyncio.timeout(20):
            while console.past._waiting < 2:  # the overview and the table
                await page.value("1")
        for offset in (21, 25):
            await page.value(slide.format(offset))
            await page.value("new Promise(done => setTimeout(done, 300))")  # after that of the page
        going.set()
        await page.until(f"{ROWS} === 2 && {FIRST}.startsWith('a 1 offline')")
        assert replays == [20, 25]


async def test_a_console_that_has_ended_is_named_until_it_answers_again(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    error = "document.getElementById('error')"
    async with (
        served(reading(12), past=tmp_path) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}") as page,
    ):
        await page.until(f"{ROWS} === 12 && document.querySelector('#travel input').max > 30")
        await page.value(
            "(() => { const slider = document.querySelector('#travel input'); slider.value = 25;"
            "slider.dispatchEvent(new Event('input')); })()"
        )
        await page.until(f"{ROWS} === 2")
        await page.value("window.answering = window.fetch")
        await page.value("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))")
        console.reading = replace(reading(12), version=2)
        console.server.changed()
        await page.until(f"{error}.innerText.startsWith('The console does not answer')")
        await page.value("window.fetch = window.answering")
        await page.until(f"{error}.hidden")
        assert await page.value(ROWS) == 2, "the page still shows the earlier state"


async def test_an_open_explanation_is_asked_for_when_nothing_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the console drops the timeline, and cannot read it again without a quorum."""
    monkeypatch.setattr(server_module, "NEWS_S", 0.05)
    async with (
        served(reading(12)) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}") as page,
    ):
        await page.until(f"{ROWS} === 12")
        await page.value("document.getElementById('quorum').click()")
        await page.until("document.getElementById('details').open")
        console.looked_at.clear()
        async with asyncio.timeout(20):
            while "timeline" not in console.looked_at:
                await page.value("1")

"""The chaos run on the console: the file, the route, and the page in a browser."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import ClientSession

from quorate.cli.chaos.results.progress import Progress
from quorate.cli.console import chaos_runs
from quorate.cli.console.access.request_rules import TOKEN_HEADER
from quorate.cli.console.chaos_runs import MAX_FILE_BYTES, ChaosRuns, progress_in
from tests.unit.analytics.browser import MEASURES, VARIABLE, find_browser
from tests.unit.cli.console.browser_session import browsing
from tests.unit.cli.console.readings import reading
from tests.unit.cli.console.served import TOKEN, served

BROWSER = find_browser() or ""
RUN = Progress(
    scenario="leader-kill",
    title="Kill the leaders of partitions",
    ms=12_000,
    step="kill, step 2 of 5: kill",
    acknowledged=123_456,
    events=("   1.234 s  node 4  is killed",),
)


def test_the_file_of_a_run_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    assert progress_in(path, 0) == {}
    path.write_text(RUN.as_text())
    found = progress_in(path, 0)
    assert (found["scenario"], found["state"], found["acknowledged"]) == (
        "leader-kill",
        "running",
        123_456,
    )
    assert progress_in(path, 60_000)["state"] == "silent"


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff", b" " * MAX_FILE_BYTES + b"{}"], ids=lambda found: found[:3]
)
def test_a_file_that_holds_something_else_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "progress.json"
    path.write_bytes(content)
    assert list(progress_in(path, 0)) == ["error"]
    assert str(path) in progress_in(path, 0)["error"]
    assert list(progress_in(tmp_path, 0)) == ["error"], "a directory"


@pytest.mark.timeout(20)
def test_a_pipe_without_a_writer_does_not_hold_the_thread(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    os.mkfifo(path)
    assert list(progress_in(path, 0)) == ["error"]


def test_no_more_than_the_bound_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "progress.json"
    path.write_text(RUN.as_text())
    monkeypatch.setattr(chaos_runs, "MAX_FILE_BYTES", len(RUN.as_text()))
    assert "scenario" in progress_in(path, 0)
    path.write_text(RUN.as_text() + " ")
    assert "it has more than" in progress_in(path, 0)["error"]


async def test_the_route_needs_the_token_and_the_option(tmp_path: Path) -> None:
    headers = {TOKEN_HEADER: TOKEN}
    async with (
        served(reading(12)) as console,
        ClientSession() as client,
        client.get(f"{console.url}/api/chaos", headers=headers) as answer,
    ):
        assert answer.status == 404
    runs = ChaosRuns(tmp_path / "progress.json")
    async with served(reading(12), runs) as console, ClientSession() as client:
        async with client.get(f"{console.url}/api/chaos") as answer:
            assert answer.status == 401
        async with client.get(f"{console.url}/api/chaos", headers=headers) as answer:
            assert await answer.json() == {}


@pytest.mark.tools
@pytest.mark.skipif(not BROWSER, reason=f"no headless Chromium in PATH or {VARIABLE}")
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("width", "dark"), [(360, False), (1600, True)])
async def test_the_page_follows_a_run_to_its_end(tmp_path: Path, width: int, dark: bool) -> None:
    path = tmp_path / "progress.json"
    async with (
        served(reading(12), ChaosRuns(path)) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}", width=width, dark=dark) as page,
    ):
        await page.until("document.querySelectorAll('.row').length === 12")
        assert await page.value("document.getElementById('chaos').hidden")
        now = replace(RUN, written_wall_ms=time.time_ns() // 1_000_000)
        path.write_text(now.as_text())
        await page.until("document.getElementById('run')?.textContent === 'runs'")
        text = await page.value("document.getElementById('chaos').innerText")
        assert "leader-kill" in text
        assert "12 s, 123,456 records acknowledged." in text
        assert "step 2 of 5: kill" in text
        path.write_text(replace(now, state="bad", step="", checks=("BAD: lost",)).as_text())
        await page.until("document.getElementById('run').textContent === 'BAD'")
        assert "BAD: lost" in await page.value("document.getElementById('checks').innerText")
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.value(wide) <= 0
        assert await page.value(f"(() => {{ {MEASURES} return contrasts(); }})()") == []
        path.unlink()
        await page.until("document.getElementById('chaos').hidden")
        assert page.problems == []

"""The console's server, over real sockets: the page, the tables, the headers, the bounds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from aiohttp import ClientSession

from quorate.cli.console import server as server_module
from quorate.cli.console.access.request_rules import HEADERS, TOKEN_HEADER
from quorate.cli.console.server import FILES, REPORT_STYLE, asset
from tests.unit.cli.console.readings import reading
from tests.unit.cli.console.served import TOKEN, served

WITH_TOKEN = {TOKEN_HEADER: TOKEN}


async def until(condition: Callable[[], bool]) -> None:
    """Wait for the condition, which the server makes true on this loop."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition did not become true")


async def test_the_page_and_its_files_are_served_with_the_security_headers() -> None:
    async with served(reading(12)) as console, ClientSession() as client:
        paths = ["/", *(f"/static/{name}" for name in (*FILES, REPORT_STYLE))]
        for path in [*paths, "/static/other", "/api/overview"]:
            async with client.get(console.url + path) as answer:
                assert HEADERS.items() <= dict(answer.headers).items(), path
                assert (answer.status == 200) is (path in paths), path


def test_the_page_names_no_other_site_and_has_no_inline_code() -> None:
    page = asset("index.html").decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]* src=)", page)
    for name in ("index.html", *FILES):
        text = asset(name).decode().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"^\s*//.*$", "", text, flags=re.M), name


async def test_data_needs_the_token() -> None:
    async with served(reading(12)) as console, ClientSession() as client:
        for path in ("/api/overview", "/api/news", "/api/table/partitions"):
            async with client.get(console.url + path) as answer:
                assert answer.status == 401
            async with client.get(console.url + path, headers=WITH_TOKEN) as answer:
                assert answer.status == 200


async def test_another_host_gets_not_even_the_page() -> None:
    async with (
        served(reading(12)) as console,
        ClientSession() as client,
        client.get(console.url, headers={"Host": "evil.example"}) as answer,
    ):
        assert answer.status == 421


async def test_nothing_can_be_changed() -> None:
    async with served(reading(12)) as console, ClientSession(headers=WITH_TOKEN) as client:
        for method in ("POST", "PUT", "DELETE"):
            async with client.request(method, f"{console.url}/api/overview") as answer:
                assert answer.status == 405


async def test_a_table_of_ten_thousand_partitions_is_sent_in_windows() -> None:
    async with served(reading(10_000)) as console, ClientSession(headers=WITH_TOKEN) as client:
        table = f"{console.url}/api/table/partitions"
        async with client.get(table) as answer:
            found = await answer.json()
        assert (found["total"], len(found["rows"])) == (10_000, 200)
        assert found["rows"][0][:3] == ["orders", 9_999, "offline"]
        async with client.get(f"{table}?limit=201") as answer:
            assert answer.status == 400
        async with client.get(f"{console.url}/api/table/other") as answer:
            assert answer.status == 404


async def test_news_arrive_when_the_reading_changes() -> None:
    async with served(reading(12)) as console, ClientSession(headers=WITH_TOKEN) as client:

        async def news() -> int:
            async with client.get(f"{console.url}/api/news?seen=1") as answer:
                return int((await answer.json())["version"])

        waiting = asyncio.create_task(news())
        async with asyncio.timeout(5):
            await until(lambda: console.server.waiting == 1)
            assert not waiting.done()
            console.reading = replace(console.reading, version=2)
            console.server.changed()
            assert await waiting == 2
            assert await news() == 2, "a page that has an old version does not wait"
        assert console.server.waiting == 0


async def test_a_subject_is_explained_and_a_long_one_refused() -> None:
    async with served(reading(12)) as console, ClientSession(headers=WITH_TOKEN) as client:
        async with client.get(f"{console.url}/api/explain?subject=orders-11") as answer:
            found = await answer.json()
        assert found["now"][:3] == [["topic", "orders"], ["partition", 11], ["state", "offline"]]
        assert console.looked_at == ["timeline", "changes"]
        for subject in ("", "x" * 301):
            async with client.get(f"{console.url}/api/explain?subject={subject}") as answer:
                assert answer.status == 400


async def test_the_tables_that_pages_show_are_looked_at() -> None:
    async with served(reading(12)) as console, ClientSession(headers=WITH_TOKEN) as client:
        for path in ("/api/table/topics", "/api/news?seen=0&table=partitions"):
            async with client.get(console.url + path) as answer:
                assert answer.status == 200
        assert console.looked_at == ["topics", "partitions"]


async def test_the_number_of_waiting_pages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_VIEWERS", 0)
    async with (
        served(reading(12)) as console,
        ClientSession(headers=WITH_TOKEN) as client,
        client.get(f"{console.url}/api/news?seen=1") as answer,
    ):
        assert answer.status == 503


async def test_a_defect_is_shown_with_the_security_headers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        raise OverflowError("a time out of range")

    monkeypatch.setattr(server_module, "explanation", failing)
    async with (
        served(reading(12)) as console,
        ClientSession(headers=WITH_TOKEN) as client,
        client.get(f"{console.url}/api/explain?subject=orders-1") as answer,
    ):
        assert answer.status == 500
        assert await answer.text() == "/api/explain failed: OverflowError('a time out of range')"
        assert HEADERS.items() <= dict(answer.headers).items()
    assert "Traceback" in caplog.text

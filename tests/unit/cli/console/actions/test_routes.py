"""The requests about actions, over real sockets: their senders, their bounds, and their log."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest
from aiohttp import ClientSession

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.console.access.request_rules import TOKEN_HEADER
from quorate.cli.console.actions import routes
from quorate.cli.console.actions.fields import Values
from quorate.cli.console.actions.table import ACTIONS, ONE_TOPIC, Action
from tests.unit.cli.console.readings import reading
from tests.unit.cli.console.served import TOKEN, Served, served

BODY = {"topic": "orders"}
SETTINGS = AdminSettings(servers=(("127.0.0.1", 1),))


class Recorded:
    """The action `rename`, which only records its values, and the lines of log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
        self.taken: list[Values] = []
        self.lines: list[str] = []
        self.may_end = threading.Event()
        self.may_end.set()
        self.begun = threading.Event()
        self.error = error
        action = Action(
            name="rename", label="rename", question="{topic}?", fields=(ONE_TOPIC,), run=self.run
        )
        monkeypatch.setattr(routes, "ACTIONS", {"rename": action})
        self.actions = routes.Actions(lambda: SETTINGS, self.lines.append)

    def run(self, admin: Admin, values: Values) -> str:
        self.taken.append(values)
        self.begun.set()
        assert self.may_end.wait(10)
        if self.error is not None:
            raise self.error
        return "It is renamed."


def own(console: Served) -> dict[str, str]:
    """Return the headers that the page's own requests have."""
    return {TOKEN_HEADER: TOKEN, "Origin": console.url}


async def post(console: Served, path: str = "rename", **request: Any) -> tuple[int, str]:
    """Send an action as the page does, but with the differences in `request`."""
    request = {"headers": own(console), "json": BODY, **request}
    async with (
        ClientSession() as client,
        client.post(f"{console.url}/api/actions/{path}", **request) as answer,
    ):
        return answer.status, await answer.text()


async def test_an_action_of_the_page_is_carried_out_and_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded = Recorded(monkeypatch)
    async with served(reading(12), recorded.actions) as console:
        assert await post(console) == (200, '{"done": "It is renamed."}')
    assert recorded.taken == [{"topic": "orders"}]
    (line,) = recorded.lines
    assert re.fullmatch(
        r'\S+Z rename {"topic": "orders"} by User:ANONYMOUS from 127.0.0.1: It is renamed\.', line
    )


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({TOKEN_HEADER: None}, 401),
        ({TOKEN_HEADER: "wrong"}, 401),
        ({"Origin": None}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
    ids=str,
)
async def test_a_request_that_is_not_the_pages_is_refused(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str | None], status: int
) -> None:
    recorded = Recorded(monkeypatch)
    async with served(reading(12), recorded.actions) as console:
        headers = {"Content-Type": "application/json", **own(console), **changed}
        sent = {name: value for name, value in headers.items() if value is not None}
        found, _ = await post(console, headers=sent, json=None, data=b'{"topic": "orders"}')
    assert found == status
    assert (recorded.taken, recorded.lines) == ([], [])


async def test_the_token_in_the_address_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    async with served(reading(12), recorded.actions) as console:
        path = f"rename?token={TOKEN}&{TOKEN_HEADER}={TOKEN}"
        status, _ = await post(console, path, headers={"Origin": console.url})
    assert (status, recorded.taken) == (401, [])


async def test_no_other_method_takes_an_action(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    async with served(reading(12), recorded.actions) as console, ClientSession() as client:
        for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH"):
            url = f"{console.url}/api/actions/rename"
            async with client.request(method, url, headers=own(console), json=BODY) as answer:
                assert answer.status == 405, method
    assert recorded.taken == []


async def test_a_body_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    spaces = b" " * (routes.MAX_BODY_BYTES - len('{"topic": "orders"}'))
    headers = {"Content-Type": "application/json"}
    async with served(reading(12), recorded.actions) as console:
        headers |= own(console)
        body = spaces + b'{"topic": "orders"}'
        assert (await post(console, headers=headers, json=None, data=body))[0] == 200
        assert (await post(console, headers=headers, json=None, data=b" " + body))[0] == 413
    assert len(recorded.taken) == 1


async def test_unknown_actions_and_fields_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    async with served(reading(12), recorded.actions) as console:
        assert (await post(console, "other"))[0] == 404
        assert (await post(console, json={**BODY, "force": "true"}))[0] == 400
        assert (await post(console, json={}))[0] == 400
    assert (recorded.taken, recorded.lines) == ([], [])


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (Refused("TOPIC_AUTHORIZATION_FAILED:\nno"), 409, "TOPIC_AUTHORIZATION_FAILED:\nno"),
        (NotReachable("no server answers"), 504, "no server answers. Look at the cluster first."),
        (RuntimeError("broken"), 500, "the action failed: RuntimeError('broken')"),
    ],
    ids=str,
)
async def test_an_action_that_fails_says_why_and_is_logged_in_one_line(
    monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, text: str
) -> None:
    recorded = Recorded(monkeypatch, error)
    async with served(reading(12), recorded.actions) as console:
        assert await post(console) == (status, text)
    (line,) = recorded.lines
    assert line.endswith(" ".join(text.split()))


async def test_there_is_one_action_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    recorded.may_end.clear()
    async with served(reading(12), recorded.actions) as console:
        first = asyncio.create_task(post(console))
        assert await asyncio.to_thread(recorded.begun.wait, 10)
        status, text = await post(console)
        assert (status, text) == (429, "another action is in progress: wait for its end")
        recorded.may_end.set()
        assert (await first)[0] == 200
        assert (await post(console))[0] == 200
    assert len(recorded.taken) == 2


async def test_without_the_flag_there_are_no_routes_and_no_script() -> None:
    async with served(reading(12)) as console, ClientSession() as client:
        assert (await post(console))[0] == 404
        async with client.get(f"{console.url}/api/actions", headers=own(console)) as answer:
            assert answer.status == 404
        async with client.get(console.url) as answer:
            assert "actions.js" not in await answer.text()


async def test_with_the_flag_the_page_has_the_script_and_the_table() -> None:
    actions = routes.Actions(lambda: SETTINGS, print)
    async with served(reading(12), actions) as console, ClientSession() as client:
        async with client.get(console.url) as answer:
            assert '<script type="module" src="/static/actions.js">' in await answer.text()
        async with client.get(f"{console.url}/api/actions") as answer:
            assert answer.status == 401
        async with client.get(f"{console.url}/api/actions", headers=own(console)) as answer:
            assert [each["name"] for each in await answer.json()] == list(ACTIONS)

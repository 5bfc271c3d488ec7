"""The dialogs of actions as a browser shows them. Skipped if the machine has no Chromium."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.errors import Refused
from quorate.cli.console.actions import routes
from quorate.cli.console.actions.fields import Values
from quorate.cli.console.actions.table import ACTIONS
from tests.unit.analytics.browser import MEASURES, VARIABLE, find_browser
from tests.unit.analytics.logs import batches, write_segment
from tests.unit.cli.console.browser_session import BrowserSession, browsing
from tests.unit.cli.console.readings import reading
from tests.unit.cli.console.served import TOKEN, served

BROWSER = find_browser() or ""
pytestmark = [
    pytest.mark.tools,
    pytest.mark.skipif(not BROWSER, reason=f"no headless Chromium in PATH or {VARIABLE}"),
    pytest.mark.timeout(120),
]
SAID = "document.getElementById('said')?.textContent"
OPEN = "document.getElementById('action').open"
BUTTONS = "document.querySelectorAll('#actions button').length"


class Cluster:
    """The actions of the table, which record their values and change nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: list[Values] = []
        self.error: Refused | None = None
        recorded = {name: replace(each, run=self.run) for name, each in ACTIONS.items()}
        monkeypatch.setattr(routes, "ACTIONS", recorded)
        settings = AdminSettings(servers=(("127.0.0.1", 1),))
        self.actions = routes.Actions(lambda: settings, lambda line: None)

    def run(self, admin: Admin, values: Values) -> str:
        self.taken.append(values)
        if self.error is not None:
            raise self.error
        return "It is done."


async def click(page: BrowserSession, selector: str) -> None:
    await page.value(f"document.querySelector({selector!r}).click()")


async def begin(page: BrowserSession, action: str) -> None:
    """Open the dialog of an action by keyboard."""
    await page.until(f"{BUTTONS} === {len(ACTIONS)}")
    if not await page.value("document.getElementById('actions').open"):
        await page.value("document.querySelector('#actions summary').focus()")
        await page.press("Enter")
    await page.value(f"document.querySelector('[data-action={action}]').focus()")
    await page.press("Enter")
    assert await page.value(OPEN)


async def test_a_topic_is_deleted_by_keyboard_after_its_name_was_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(monkeypatch)
    async with (
        served(reading(12), cluster.actions) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}") as page,
    ):
        await begin(page, "delete-topic")
        await page.press("Enter")
        assert await page.value(SAID) == "delete topic", "an empty field is not accepted"
        await page.type("orders")
        await page.press("Enter")
        assert "topic orders and all of its records" in await page.value(SAID)
        await page.press("Enter")
        assert cluster.taken == [], "the name must be typed again"
        await page.type("order")
        await page.press("Enter")
        await page.until(f"{SAID}.endsWith('must be orders')")
        assert cluster.taken == []
        page.problems.clear()  # the browser reports the status 400
        await page.press("Tab")
        await page.press("Enter")
        assert await page.value("document.querySelector('#action input').value") == "orders"
        await page.press("Enter")
        await page.type("orders")
        await page.press("Enter")
        await page.until(f"{SAID} === 'It is done.'")
        assert cluster.taken == [{"topic": "orders", "again": "orders"}]
        assert page.problems == []


@pytest.mark.parametrize("by_keyboard", [False, True], ids=["click", "keyboard"])
async def test_the_explained_row_fills_in_the_fields_and_escape_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, by_keyboard: bool
) -> None:
    cluster = Cluster(monkeypatch)
    cluster.error = Refused("no broker has the id 99")
    async with (
        served(reading(12), cluster.actions) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}") as page,
    ):
        await page.until("document.querySelector('.row') !== null")
        await begin(page, "elect-all-preferred")
        assert "every partition" in await page.value(SAID), "it has no fields"
        await page.press("Escape")
        assert not await page.value(OPEN)
        if by_keyboard:
            await page.value("document.getElementById('rows').focus()")
            await page.press("ArrowDown")
            await page.press("Enter")
        else:
            await click(page, ".row span")
        await page.until("document.getElementById('details').open")
        await page.press("Escape")
        await begin(page, "reassign")
        fields = "[...document.querySelectorAll('#action input')]"
        assert await page.value(f"{fields}.map(each => each.value)") == ["orders", "11", ""]
        await page.value(f"{fields}[2].focus()")
        await page.type("4,99")
        await page.press("Enter")
        question = await page.value(SAID)
        assert "partition 11 of the topic orders to the brokers 4,99?" in question
        assert await page.value("document.activeElement.textContent") == "back"
        await page.press("Enter")
        assert await page.value(f"{fields}.map(each => each.value)") == ["orders", "11", "4,99"]
        assert cluster.taken == []
        await click(page, "#action [type=submit]")
        await click(page, "#action [type=submit]")
        await page.until(f"{SAID} === 'no broker has the id 99'")
        assert cluster.taken == [{"topic": "orders", "partition": 11, "brokers": (4, 99)}]
        await page.value("window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))")
        for button in ("button", "submit", "submit"):
            await click(page, f"#action [type={button}]")
        await page.until(f"{SAID}.includes('not known whether the action was taken')")


async def test_an_earlier_state_has_no_actions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    shown = "document.getElementById('actions').offsetParent !== null"
    async with (
        served(reading(12), Cluster(monkeypatch).actions, past=tmp_path) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}") as page,
    ):
        await page.until(f"{BUTTONS} > 0 && document.querySelector('#travel input').max > 30")
        assert await page.value(shown)
        await page.value(
            "(() => { const slider = document.querySelector('#travel input'); slider.value = 25;"
            "slider.dispatchEvent(new Event('input')); })()"
        )
        await page.until("document.querySelector('#travel.past') !== null")
        assert not await page.value(shown)
        await page.value("document.querySelector('#travel button').click()")
        await page.until(shown)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1600])
async def test_the_buttons_and_the_dialog_fit_and_read(
    monkeypatch: pytest.MonkeyPatch, width: int, dark: bool
) -> None:
    async with (
        served(reading(12), Cluster(monkeypatch).actions) as console,
        browsing(BROWSER, f"{console.url}/#token={TOKEN}", width=width, dark=dark) as page,
    ):
        await begin(page, "create-topic")
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.value(wide) <= 0
        box = "document.getElementById('action').getBoundingClientRect()"
        assert await page.value(f"{box}.left") >= 0
        assert await page.value(f"{box}.right") <= width
        assert await page.value(f"(() => {{ {MEASURES} return contrasts(); }})()") == []
        await page.type("t" * 249)
        await page.press("Enter")
        assert await page.value(f"{box}.right") <= width
        assert page.problems == []

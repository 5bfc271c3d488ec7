"""The progress of a run: its JSON, its file, and what happens if the file cannot be written."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.chaos.loading.loader import load
from quorate.cli.chaos.results.progress import (
    MAX_EVENTS,
    MAX_LINE_CHARS,
    MAX_LINES,
    RUNNING,
    SILENT,
    SILENT_MS,
    Progress,
    progress_of,
)
from quorate.cli.chaos.results.progress_file import ProgressFile
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run.run import run_scenario
from quorate.cli.chaos.run.setup import Plan
from quorate.cli.chaos.timeline.timeline import Event
from quorate.cli.client.errors import NotReachable
from tests.unit.cli.chaos.histories import result

SOME = Progress(scenario="leader-kill", title="Kill leaders", events=("a",), written_wall_ms=5)


def test_a_progress_is_read_as_it_was_written() -> None:
    assert progress_of(SOME.as_text()) == SOME


@pytest.mark.parametrize(
    "changed",
    [
        {"schema_version": 2},
        {"ms": "1"},
        {"ms": True},
        {"events": "text"},
        {"events": [1]},
        {"more": 1},
    ],
    ids=str,
)
def test_another_file_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        progress_of(json.dumps({**json.loads(SOME.as_text()), **changed}))


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000], ids=lambda text: text[:3])
def test_a_text_that_is_no_progress_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        progress_of(text)


def test_a_run_that_does_not_write_any_more_is_silent() -> None:
    assert SOME.now(5 + SILENT_MS)["state"] == RUNNING
    assert SOME.now(6 + SILENT_MS)["state"] == SILENT
    ended = Progress(scenario="s", title="t", state="good", written_wall_ms=5)
    assert ended.now(6 + SILENT_MS)["state"] == "good"


def written(path: Path) -> Progress:
    return progress_of(path.read_text())


def test_the_file_follows_a_run_and_ends_with_its_verdict(tmp_path: Path) -> None:
    path, said = tmp_path / "progress.json", list[str]()
    file = ProgressFile(path, said.append)
    before = threading.active_count()
    for name in ("first", "second"):  # `run all` has one file for all scenarios
        file.begin(name, "t" * 1000)
        deadline_s = time.monotonic() + 10
        while not path.exists() or written(path).scenario != name:
            assert time.monotonic() < deadline_s
            time.sleep(0.001)
        assert (written(path).state, written(path).events) == (RUNNING, ())
        for number in range(MAX_EVENTS + 1):
            file.event(f"{number} {'e' * 1000}")
        file.step("kill")
        file.counts(1500, 7, ["p" * 1000] * 100)
        file.ended("bad", 2000, ["BAD: lost"])
        found = written(path)
        assert (found.state, found.ms, found.acknowledged) == ("bad", 2000, 7)
        assert (found.checks, found.step) == (("BAD: lost",), "")
        assert len(found.events) == MAX_EVENTS
        assert found.events[0].startswith("1 e")
        assert len(found.problems) == MAX_LINES
        assert max(map(len, (*found.events, *found.problems, found.title))) == MAX_LINE_CHARS
        assert threading.active_count() == before, "nothing writes after the end"
    assert said == []
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_is_reported_once_and_the_run_goes_on(tmp_path: Path) -> None:
    said: list[str] = []
    file = ProgressFile(tmp_path / "missing" / "progress.json", said.append)
    file.begin("leader-kill", "t")
    file.event("e")
    file.ended("good", 1, [])
    (line,) = said
    assert line.startswith("The progress cannot be written, and the run goes on: ")


class Unreachable:
    """A cluster that does not answer."""

    def active_controller(self) -> int:
        """Raise NotReachable."""
        raise NotReachable("no broker answers")


async def test_a_view_writes_the_events_and_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    view = View(None, file=ProgressFile(path, print))
    scenario = load("leader-kill")
    cluster: Any = Unreachable()
    failed = await run_scenario(Plan(scenario, scenario.variants, "t"), cluster, view)
    view.say(Event(1234, "is killed", 4))
    view.end(failed)
    found = written(path)
    assert (found.scenario, found.state) == ("leader-kill", "bad")
    assert found.events == ("   1.234 s  node 4  is killed",)
    assert found.checks[0] == "BAD: the run could not start: no broker answers"
    view.begin("other", "t")
    view.end(result(12))
    assert written(path).state == "good"
    assert all(each.startswith("ok: ") for each in written(path).checks)

"""Every page that Quorate makes, each with something to show."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from quorate.cli.chaos.results import page as chaos_page
from quorate.cli.chaos.results.progress import Progress
from quorate.cli.client.admin import AdminSettings
from quorate.cli.console.actions.routes import Actions
from quorate.cli.console.chaos_runs import ChaosRuns
from quorate.quorum.analytics.page import page as report_page
from tests.sim.ablations.page import page as break_page
from tests.sim.ablations.trace import Event, Kind, Trace
from tests.unit.analytics.test_page import FIGURES, WARNED, history
from tests.unit.cli.chaos.histories import result
from tests.unit.cli.console.readings import reading
from tests.unit.cli.console.served import TOKEN, served

CONSOLE = "console"
RUN = Progress(
    scenario="leader-kill",
    title="A leader is killed",
    step="kill, step 2 of 5",
    events=("   1.234 s  node 4  is killed",),
    problems=("node 5 ended although no step stopped it",),
)


def report() -> str:
    """Return the page of `quorate history report`."""
    figures = replace(FIGURES, partitions=60, errors=1, notes=1)
    return report_page.render(history(60, figures=figures, warnings=WARNED))


def chaos() -> str:
    """Return the page of `quorate chaos run --html`."""
    return chaos_page.render(result(12))


def broken() -> str:
    """Return the page of `make break`."""
    trace = Trace()
    for number in range(40):
        trace.add(Event(number, str(number % 3 + 1), Kind.EFFECT, "becomes " + "candidate " * 12))
    trace.add(Event(40, "1", Kind.BROKEN, "two leaders in epoch 2"))
    return break_page(trace, "one-vote", "A voter votes twice.", "at most one leader")


FILES: dict[str, Callable[[], str]] = {"report": report, "chaos": chaos, "break": broken}
NAMES = (*FILES, CONSOLE)


@asynccontextmanager
async def address_of(name: str, directory: Path) -> AsyncIterator[str]:
    """Yield the address of a page, whose files are in `directory`."""
    if name in FILES:
        file = directory / f"{name}.html"
        file.write_text(FILES[name](), encoding="utf-8")
        yield file.as_uri()
        return
    progress = directory / "progress.json"
    progress.write_text(replace(RUN, written_wall_ms=time.time_ns() // 1_000_000).as_text())
    actions = Actions(lambda: AdminSettings(servers=(("127.0.0.1", 1),)), lambda line: None)
    async with served(reading(60), actions, ChaosRuns(progress)) as console:
        yield f"{console.url}/#token={TOKEN}"

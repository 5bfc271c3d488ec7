"""Settings of all tests.

The shell of a CI may start its jobs with SIGINT ignored, and children inherit that. Ctrl-C would
then do nothing in the tests that send it, so the default handler is restored. Hypothesis has no
deadline and no check for slow draws, because its first draw of a text reads the tables of Unicode.
That takes a second or more on a busy machine. It draws the same examples in each run, so that a
test that passed does not fail later. The profile `search` draws others (`make test-long`).

A text that a test records as TOLD_AT_THE_END (`record_property`) is printed in the summary."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.marks import MARKS, marks_of_file, may_match

settings.register_profile(
    "quorate", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("search", settings.get_profile("quorate"), derandomize=False)
settings.load_profile("quorate")

TOLD_AT_THE_END = "told at the end"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="write the traces of tests/scripts/*.txt anew"
    )


def pytest_configure() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip a file without a test that `-m` may select, unless it is an argument itself."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    if may_match(marks_of_file(collection_path), config.option.markexpr):
        return None
    arguments = (os.path.abspath(each.partition("::")[0]) for each in config.args)
    return None if str(collection_path) in arguments else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Check that the text of each file shows the marks of its tests, because
    `pytest_ignore_collect` relies on it. Then put the tests with Spark first. Their files take
    longest, and `make test` gives each process one file after another: a long file at the end would
    keep only one process busy."""
    for item in items:
        always, named = marks_of_file(item.path)
        marks = MARKS.intersection(each.name for each in item.iter_markers())
        if not always <= marks <= named:
            raise pytest.UsageError(
                f"{item.nodeid} has the marks {sorted(marks)}, but its text shows {sorted(named)}, "
                f"and {sorted(always)} for all tests. See tests/marks.py."
            )
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def pytest_collection_finish() -> None:
    """Hide the objects of all collected tests from the garbage collector. A full collection takes
    0.5 s with them, and each simulation begins with one. No test calls `gc.unfreeze`."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, text in report.user_properties:
                if name == TOLD_AT_THE_END:
                    terminalreporter.write_line(f"{report.nodeid}: {text}")

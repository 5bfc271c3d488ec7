"""Settings of all tests.

The shell of a CI may start its jobs with SIGINT ignored, and children inherit that. Ctrl-C would
then do nothing in the tests that send it, so the default handler is restored. Hypothesis has no
deadline and no check for slow draws, because its first draw of a text reads the tables of Unicode.
That takes a second or more on a busy machine.

A text that a test records as TOLD_AT_THE_END (`record_property`) is printed in the summary."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("quorate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quorate")

TOLD_AT_THE_END = "told at the end"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="write the traces of tests/scripts/*.txt anew"
    )


def pytest_configure() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests with Spark first. Their files take longest, and `make test` gives each process
    one file after another: a long file at the end would keep only one process busy."""
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, text in report.user_properties:
                if name == TOLD_AT_THE_END:
                    terminalreporter.write_line(f"{report.nodeid}: {text}")

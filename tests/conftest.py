"""A CI's shell may start its jobs with SIGINT ignored, and children inherit that: Ctrl-C would do
nothing in the tests that send it."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""A paused process continues when the tool ends the pause or dies, or when the lease expires."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from quorate.cli.chaos.control.pause_guard import Pauses, is_stopped, process_state

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")
# A tool that pauses the process and is then killed.
TOOL = """
import os, sys, time
from quorate.cli.chaos.control.pause_guard import Pauses
print(Pauses(lease_ms=600_000).pause(1, int(sys.argv[1])), flush=True)
time.sleep(600)
"""


@pytest.fixture
def sleeper() -> Iterator[int]:
    """The pid of a process that sleeps."""
    process = subprocess.Popen(SLEEPER)
    yield process.pid
    process.kill()
    process.wait()


def continues(pid: int) -> bool:
    """Return True when the process is not stopped any more, or False after some seconds."""
    deadline_s = time.monotonic() + 20
    while process_state(pid) == "T":
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True


def test_a_pause_and_its_end(sleeper: int) -> None:
    pauses = Pauses(lease_ms=600_000)
    assert pauses.pause(7, sleeper)
    assert is_stopped(sleeper)
    assert pauses.nodes == [7]
    pauses.renew()
    assert pauses.resume(7), "the pause lasted until its end"
    assert continues(sleeper)
    assert (pauses.nodes, pauses.resume(7)) == ([], False)


def test_a_pause_without_renewal_ends_by_itself(sleeper: int) -> None:
    pauses = Pauses(lease_ms=300)
    assert pauses.pause(7, sleeper)
    assert continues(sleeper)
    assert not pauses.resume(7), "the pause did not last"


def test_a_pause_ends_with_the_tool_that_is_killed(sleeper: int) -> None:
    tool = subprocess.Popen(
        (sys.executable, "-c", TOOL, str(sleeper)), stdout=subprocess.PIPE, text=True
    )
    assert tool.stdout is not None
    with tool.stdout:
        assert tool.stdout.readline() == "True\n"
        assert process_state(sleeper) == "T"
        tool.kill()
        tool.wait()
    assert continues(sleeper)


def test_a_process_that_does_not_exist_is_not_paused() -> None:
    process = subprocess.Popen(SLEEPER)
    process.kill()
    process.wait()
    pauses = Pauses(lease_ms=1000)
    assert not pauses.pause(7, process.pid)
    assert not pauses.resume(7)

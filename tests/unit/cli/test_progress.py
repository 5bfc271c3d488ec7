"""The progress line: silent at first, bounded in a pipe, redrawn and erased on a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys

from quorate.cli.terminal.progress import CLEAR, PLAIN_EVERY_S, QUIET_S, Progress, waiting_for


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Time:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_short_work_shows_nothing() -> None:
    time, stream = Time(), io.StringIO()
    progress = Progress("moving", stream=stream, clock_s=time)
    progress.update(0, 4, "partitions")
    time.now_s += QUIET_S - 0.1
    progress.update(3, 4, "partitions")
    progress.close()
    assert stream.getvalue() == ""


def test_a_pipe_gets_few_plain_lines() -> None:
    time, stream = Time(), io.StringIO()
    progress = Progress("moving", stream=stream, clock_s=time)
    for second in range(60):
        time.now_s = 100.0 + second
        progress.update(second, 60, "partitions")
    progress.close()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "moving: 2 of 60 partitions"
    assert len(lines) <= 60 / PLAIN_EVERY_S + 1
    assert CLEAR not in stream.getvalue()


def test_a_terminal_gets_one_line_with_a_bar() -> None:
    time, stream = Time(), Terminal()
    progress = Progress("moving", stream=stream, clock_s=time)
    time.now_s += 3
    progress.update(30, 60, "partitions")
    assert stream.getvalue() == f"{CLEAR}moving [{'#' * 12}{'-' * 12}] 30 of 60 partitions"
    progress.close()
    assert stream.getvalue().endswith(CLEAR)


def test_a_block_that_reports_nothing_has_its_thread_ended() -> None:
    stream = io.StringIO()
    with waiting_for("starting Spark", stream):
        pass
    assert stream.getvalue() == ""


SCRIPT = """
import sys
from quorate.cli.terminal import progress

progress.QUIET_S, progress.REDRAW_S = 0.0, 0.001
with progress.waiting_until_closed("starting Spark") as waiting:
    sys.stdin.readline()
    waiting.close()
    print("the first result")
"""


def test_a_pseudo_terminal_shows_the_progress_and_erases_it_before_the_result() -> None:
    """The script works until the test has seen the progress."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        text = ""
        while "starting Spark ... 0 s" not in text:
            text += os.read(ours, 4096).decode()
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
        with contextlib.suppress(OSError):  # the process closes the terminal
            while more := os.read(ours, 4096).decode():
                text += more
        assert process.wait(30) == 0
    os.close(ours)
    assert text.endswith(f"{CLEAR}the first result\r\n")

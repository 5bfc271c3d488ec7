"""`quorate status --watch` on a pseudo terminal of 80 columns and 24 rows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pytest

from quorate.testing import LocalCluster

COLUMNS, ROWS = 80, 24
TOKENS = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]")
TIMEOUT_S = 60.0


class Screen:
    """The cells of a terminal. As with xterm, a character in the last column leaves the cursor
    there, and the next one wraps."""

    def __init__(self) -> None:
        self.cells = [[" "] * COLUMNS for _ in range(ROWS)]
        self.row = self.column = self.wraps = self.scrolls = self.draws = 0
        self.is_full = False

    def feed(self, text: str) -> None:
        for found in TOKENS.finditer(text):
            if found[2]:
                self.control(found[2])
            elif found[0] == "\r":
                self.column, self.is_full = 0, False
            elif found[0] == "\n":
                self.down()
            else:
                self.put(found[0])

    def control(self, kind: str) -> None:
        if kind == "H":
            self.row = self.column = 0
            self.is_full = False
            self.draws += 1
        elif kind == "K":
            self.cells[self.row][self.column :] = " " * (COLUMNS - self.column)
        elif kind == "J":
            self.cells[self.row][self.column :] = " " * (COLUMNS - self.column)
            self.cells[self.row + 1 :] = [[" "] * COLUMNS for _ in self.cells[self.row + 1 :]]
        else:
            assert kind == "m", kind

    def put(self, character: str) -> None:
        if self.is_full:
            self.wraps += 1
            self.column = 0
            self.down()
        self.cells[self.row][self.column] = character
        self.is_full = self.column == COLUMNS - 1
        self.column = min(self.column + 1, COLUMNS - 1)

    def down(self) -> None:
        self.is_full = False
        if self.row < ROWS - 1:
            self.row += 1
        else:
            self.scrolls += 1
            self.cells = [*self.cells[1:], [" "] * COLUMNS]

    @property
    def lines(self) -> list[str]:
        return ["".join(each).rstrip() for each in self.cells]


@pytest.mark.timeout(180)
def test_the_worst_is_on_a_small_screen() -> None:
    with LocalCluster(brokers=3) as cluster:
        cluster.create_topic("a-topic-with-a-long-name", partitions=30, replication_factor=3)
        command = ("status", "--watch", "--interval", "0.1")
        screen, watching = Screen(), Watching(*command, "--bootstrap-server", cluster.bootstrap)
        with watching:
            watching.until(screen, "fully in sync")
            assert "Brokers up" in "\n".join(screen.lines)
            killed = cluster.broker_ids[0]
            cluster.kill_broker(killed)
            watching.until(screen, "under-replicated")
            draws = screen.draws
            watching.until(screen, "under-replicated", draws + 3)
        lines = screen.lines
        assert (screen.wraps, screen.scrolls) == (0, 0)
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$", lines[0])
        assert lines[1].startswith("Quorum: leader ")
        text = "\n".join(lines)
        assert text.count("Quorum: ") == text.count("Brokers up") == 1
        assert re.search(rf"^ *{killed} +fenced .*connection-lost$", text, re.MULTILINE)
        assert f"broker {killed} is down" in text
        assert re.search(r"^\.\.\. \d+ more lines; make the terminal larger, or filter$", lines[-2])
        assert lines[-1] == "", "the cursor is there"


class Watching:
    """A command on a pseudo terminal."""

    def __init__(self, *command: str) -> None:
        self._terminal, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            environment.pop(name, None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "quorate.cli", *command],
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment,
        )
        os.close(other)
        self._rest = b""

    def __enter__(self) -> None:
        """Return nothing."""

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)

    def until(self, screen: Screen, text: str, draws: int = 0) -> None:
        """Feed the screen until it shows `text` after so many drawings, and a drawing is whole."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            left_s = deadline_s - time.monotonic()
            assert left_s > 0, "\n".join(screen.lines)
            if select.select([self._terminal], [], [], left_s)[0]:
                data = self._rest + os.read(self._terminal, 1 << 16)
                end = data.rfind(b"\x1b[J") + len(b"\x1b[J")
                if end < len(b"\x1b[J"):
                    self._rest = data
                    continue
                self._rest = data[end:]
                screen.feed(data[:end].decode())
                if screen.draws >= draws and text in "\n".join(screen.lines):
                    return

"""A command that runs Spark, on a terminal: it shows its progress and a table, and no line of
Spark's own log."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kafka-4.1.1-metadata"
CONTROLS = re.compile(r"\x1b\[[0-9;]*[a-zA-Z]")


@pytest.mark.long
@pytest.mark.spark
def test_spark_is_silent_and_its_progress_is_shown() -> None:
    query = "SELECT kind, count(*) AS changes FROM warnings GROUP BY kind"
    command = [sys.executable, "-m", "quorate.cli", "history", "sql", query, str(FIXTURES / "c1")]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the process closes the terminal
            while more := os.read(ours, 4096):
                text += more
        assert process.wait(100) == 0
    os.close(ours)
    shown = text.decode()
    assert "running the query with Spark ... 2 s" in shown
    lines = [CONTROLS.sub("", line).rpartition("\r")[2] for line in shown.split("\r\n")]
    said = [line for line in lines if line.strip() and "─" not in line]
    assert said[0].split() == ["kind", "changes"]
    for line in said[1:]:
        assert re.fullmatch(r"\S+ +\d+ *|\d+ notes? in the table `warnings`.*", line), said

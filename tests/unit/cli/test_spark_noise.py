"""Standard error of a command with Spark has nothing of Spark, Java or pyspark."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

from tests.unit.analytics.logs import batches, write_segment

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(240)]
OURS = re.compile(
    r"running the query with Spark: \d+ s|1 note in the table `warnings`: clock-ahead"
)
"""Our own progress, after two seconds, with ten seconds between two lines, and the note about a log
whose times are in the future."""


def test_only_our_progress_is_on_standard_error(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    query = "select count(*) as n from leadership"
    command = [sys.executable, "-m", "quorate.cli", "history", "sql", query, str(tmp_path)]
    done = subprocess.run(
        [*command, "--format", "json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["n"] > 0
    assert [line for line in done.stderr.splitlines() if not OURS.fullmatch(line)] == []

"""The README's blocks about histories, run as they are written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

from click.testing import CliRunner

from quorate.cli.main import main
from quorate.quorum.analytics.spark import session
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import TopicRecord
from tests.unit.analytics import logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.timeout(240),
]
ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
IN_THE_PAST_MS = 1_700_000_000_000


def blocks(heading: str, language: str) -> list[str]:
    section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


def commands(block: str, directory: Path) -> list[list[str]]:
    """Return the arguments of every `quorate` command in the block, as the shell parses them."""
    shim = directory / "quorate"
    said = directory / "said"
    shim.write_text(f"#!/bin/bash\nprintf '%q ' \"$@\" >> {said}; echo >> {said}\n")
    shim.chmod(0o755)
    path = {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euc", block], check=True, env=path, cwd=directory)
    return [shlex.split(line) for line in said.read_text().splitlines()]


@pytest.mark.parametrize(
    ("heading", "exported"),
    [
        ("Query the history of a cluster", ()),
        ("Read your Kafka's metadata log", ("--table", "topics")),
        pytest.param("Read your Kafka's metadata log", (), marks=pytest.mark.long),
    ],
    ids=["cluster", "kafka", "kafka, all tables"],
)
def test_the_blocks_run(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    heading: str,
    exported: tuple[str, ...],
) -> None:
    """The default tests export one table, because the export of all tables takes long."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "local_session", lambda name: nullcontext(spark))
    monkeypatch.setattr(
        "quorate.quorum.analytics.page.report.local_session", lambda name: nullcontext(spark)
    )
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.setattr(logs, "START_MS", IN_THE_PAST_MS)
    topic = TopicRecord(name="first", topic_id=logs.A), logs.created(logs.A, 0, 1)
    lost = (logs.change(logs.A, 0, Cause.SESSION_EXPIRED, isr=(2, 3), leader=2),)
    logs.write_segment(tmp_path / "quorate-data", 0, b"".join(logs.batches((topic, lost))))
    for block in blocks(heading, "sh"):
        if "spark-submit" in block:
            continue  # needs a cluster of Spark's: test_standalone.py
        for arguments in commands(block, tmp_path):
            more = exported if "export" in arguments else ()
            done = CliRunner().invoke(main, [*arguments, *more])
            assert done.exit_code == 0 and done.output, (arguments, done.output)
    for block in blocks(heading, "python"):
        exec(compile(block, "README.md", "exec"), {})


def test_the_blocks_are_there() -> None:
    assert "quorate history explain" in "".join(blocks("Query the history of a cluster", "sh"))
    assert "quorate history export" in "".join(blocks("Read your Kafka's metadata log", "sh"))
    assert "analytics.views" in "".join(blocks("Read your Kafka's metadata log", "python"))

"""Our metadata shell prints the same lines as Kafka's for the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.in_process import quorate
from tests.golden.nodes import KAFKA
from tests.golden.shell_runs import RUNS, files_in, play
from tests.golden.tool_runs import Played, Run, read
from tests.kafka.tools import Ended, missing

GOLDEN = read((Path(__file__).parent / "shell.txt").read_text())
MAX_PLAYS = 10


def test_the_golden_file_is_of_these_runs() -> None:
    assert [each.line for each in RUNS] == [each.line for each in GOLDEN]


def with_secrets(tool: str, *arguments: str, stdin: str = "") -> Ended:
    """Run our shell. Kafka's always shows secrets."""
    return quorate(tool, "--show-secrets", *arguments, stdin=stdin)


def test_secrets_are_hidden(tmp_path: Path) -> None:
    foreign = str(files_in(tmp_path)["@foreign"])
    told = quorate("metadata-shell", "-s", foreign, "tree", "/image").lines
    lines = [line.strip() for line in told]
    assert lines[lines.index("ssl.keystore.password:") + 1] == "[hidden]"
    text = "\n".join(told)
    assert "salt=, storedKey=, serverKey=, iterations=" in text
    assert "salt=01ff" not in text


def test_every_line_is_kafkas(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    for run, golden in zip(RUNS, GOLDEN, strict=True):
        found = play(run, files, with_secrets)
        assert found.lines == golden.lines, run.line
        assert bool(found.code) == bool(golden.code or run.fails), run.line


def play_on_kafka(run: Run, files: dict[str, Path], golden: Played) -> Played:
    """Play `run` on Kafka's shell until its answer is `golden`, and return the last answer.

    Kafka's shell reads the file in another thread and answers from the part that it has read.
    """
    played = play(run, files, KAFKA.run)
    for _ in range(MAX_PLAYS - 1):
        if played == golden:
            break
        played = play(run, files, KAFKA.run)
    return played


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_the_golden_file_is_what_apache_kafka_says(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    files = files_in(tmp_path)
    for run, golden in zip(RUNS, GOLDEN, strict=True):
        assert play_on_kafka(run, files, golden) == golden

"""The tools tell the golden story: ours on ours always, and with a Java ours on Apache Kafka and
Apache Kafka's on ours.

Compared are standard output and whether the tool failed. What ours say when they fail is one line
on standard error, where Kafka's print a stack trace; test_mistakes.py has those."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.in_process import quorate
from tests.golden.nodes import KAFKA, QUORATE, Program, two_nodes
from tests.golden.tool_runs import RUNS, Played, Run, Runner, played, read
from tests.kafka.tools import missing

GOLDEN = read((Path(__file__).parent / "tools.txt").read_text())
pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


def comparable(run: Run, found: Played) -> tuple[bool, list[str]]:
    """What is told of a failure is Kafka's own except where it stands on standard output."""
    failed = found.code != 0 or run.fails
    told = found.lines if not failed or run.line.startswith("topics") else []
    return failed, told


def differences(found: list[Played]) -> list[tuple[Played, Played]]:
    return [
        (theirs, ours)
        for run, theirs, ours in zip(RUNS, GOLDEN, found, strict=True)
        if comparable(run, ours) != comparable(run, theirs)
    ]


def test_the_golden_file_is_of_these_runs() -> None:
    assert [each.line for each in RUNS] == [each.line for each in GOLDEN]


@pytest.mark.parametrize(
    ("cluster", "tools"),
    [
        (QUORATE, quorate),
        pytest.param(KAFKA, quorate, marks=pytest.mark.kafka),
        pytest.param(QUORATE, KAFKA.run, marks=pytest.mark.kafka),
    ],
    ids=["ours on ours", "ours on kafka", "kafkas on ours"],
)
def test_the_story(tmp_path: Path, cluster: Program, tools: Runner) -> None:
    if (KAFKA in (cluster, getattr(tools, "__self__", None))) and (reason := missing()):
        pytest.skip(reason)
    with two_nodes(tmp_path / "nodes", cluster) as nodes:
        found = played(RUNS, nodes, tools)
    assert not differences(found)
    if tools is quorate:
        assert all(each.code for each, run in zip(found, RUNS, strict=True) if run.fails)

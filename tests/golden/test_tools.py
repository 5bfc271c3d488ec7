"""The command line tools print the golden lines.

Our tools on our nodes are always compared. With a Java, our tools on Apache Kafka and Kafka's tools
on our nodes are compared, too. A test compares standard output and whether the tool failed. After a
failure, our tools print one line on standard error, where Kafka's print a stack trace
(test_mistakes.py).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.golden.in_process import quorate
from tests.golden.nodes import CLUSTER_ID, KAFKA, QUORATE, Program, two_nodes
from tests.golden.tool_runs import RUNS, Played, Run, Runner, played, read
from tests.kafka.tools import missing

GOLDEN = read((Path(__file__).parent / "tools.txt").read_text())
pytestmark = [pytest.mark.clients, pytest.mark.timeout(1200)]


def comparable(run: Run, found: Played) -> tuple[bool, list[str]]:
    """Return whether the tool failed and the lines to compare.

    The text of a failure is compared only if the tool prints it on standard output."""
    failed = found.code != 0 or run.fails
    told = found.lines if not failed or run.line.startswith("topics") else []
    return failed, told


def same(run: Run, one: Played, other: Played) -> bool:
    return comparable(run, one) == comparable(run, other)


def differences(found: list[Played]) -> list[tuple[Played, Played]]:
    return [
        (theirs, ours)
        for run, theirs, ours in zip(RUNS, GOLDEN, found, strict=True)
        if not same(run, ours, theirs)
    ]


def test_the_golden_file_is_of_these_runs() -> None:
    assert [each.line for each in RUNS] == [each.line for each in GOLDEN]


@pytest.mark.parametrize(
    ("cluster", "tools"),
    [
        (QUORATE, quorate),
        pytest.param(KAFKA, quorate, marks=pytest.mark.kafka),
        pytest.param(QUORATE, KAFKA.run, marks=[pytest.mark.kafka, pytest.mark.long]),
    ],
    ids=["ours on ours", "ours on kafka", "kafkas on ours"],
)
def test_the_story(tmp_path: Path, cluster: Program, tools: Runner) -> None:
    if (KAFKA in (cluster, getattr(tools, "__self__", None))) and (reason := missing()):
        pytest.skip(reason)
    with two_nodes(tmp_path / "nodes", cluster) as nodes:
        found = played(RUNS, nodes, tools, same, GOLDEN)
    assert not differences(found)
    if tools is quorate:
        assert all(each.code for each, run in zip(found, RUNS, strict=True) if run.fails)


@pytest.mark.kafka
def test_what_has_no_golden_lines_on_apache_kafka(tmp_path: Path) -> None:
    """The usable versions depend on the program that asks, and epochs change."""
    if reason := missing():
        pytest.skip(reason)
    with two_nodes(tmp_path / "nodes", KAFKA) as nodes:
        at = ("--bootstrap-server", nodes.bootstrap)
        for tool, own in (
            (("broker-api-versions", *at), r" \[usable: [^]]*\]"),
            (("features", *at, "describe"), r"Epoch: \d+"),
        ):
            theirs = KAFKA.run(*tool)
            mine = quorate(*tool)
            assert (theirs.code, mine.code) == (0, 0), mine.errors
            assert without(own, mine.lines) == without(own, theirs.lines)
        create = ("--create", "--topic", "compared", "--replica-assignment", "1:2,2:1")
        assert quorate("topics", *at, *create).code == 0
        for stdin in ("a\n", "b\n"):
            assert quorate("console-producer", *at, "--topic", "compared", stdin=stdin).code == 0
        compared = quorate("replica-verification", *at, "--once")
        assert compared.code == 0, compared.lines
        assert compared.lines[-1].endswith(": 2 partitions are equal on all of their replicas")
        status = quorate("status", *at)
        assert status.code == 0, status.errors
        assert [line.partition(":")[0] for line in status.lines] == [
            f"Cluster {CLUSTER_ID}",
            *("Quorum", "Broker 1", "Broker 2", "Partitions"),
        ]


def without(pattern: str, lines: list[str]) -> list[str]:
    return sorted(re.sub(pattern, "", line) for line in lines)

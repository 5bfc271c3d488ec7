"""`quorate history explain` of a broker, a topic and the quorum."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.quorum import analytics
from tests.unit.metadata.kafka_dump import C1


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["history", "explain", *map(str, arguments)])


def test_a_broker() -> None:
    lines = run(C1, "--broker", "5").stdout.splitlines()
    assert lines[:3] == [
        "broker 5",
        "2026-11-21 01:43:53.714  offset 15  It registered with broker epoch 15.",
        "    A process of the broker started.",
    ]
    assert lines[-1].endswith("offset 478: it is fenced, leads 0 partitions, in 0 ISRs.")
    said = json.loads(run(C1, "--broker", "5", "--format", "json").stdout)
    assert said == {"stories": [asdict(analytics.explain_broker(C1, 5))]}


def test_the_quorum() -> None:
    lines = run(C1, "--quorum").stdout.splitlines()
    assert lines[0] == "quorum" and "voters 1, 2 and 3." in lines[-1]
    assert analytics.explain_quorum(C1).happenings[0].offset == 0


def test_a_topic_and_then_its_partitions() -> None:
    lines = run(C1, "--topic", "topic-1").stdout.splitlines()
    headings = [line for line in lines if "(topic id " in line]
    assert [each.split(" (")[0] for each in headings] == ["topic topic-1", "topic-1-0", "topic-1-1"]
    said = json.loads(run(C1, "--topic", "topic-1", "--format", "json").stdout)
    assert said["stories"] == [asdict(each) for each in analytics.explain_topic(C1, "topic-1")]
    assert len(said["partitions"]) == len(analytics.explain(C1, "topic-1").told) == 2
    one = run(C1, "--topic", "topic-1", "--partition", "0").stdout.splitlines()
    assert one[0].startswith("topic-1-0 (topic id "), "only the partition"


def test_the_moment_as_a_function() -> None:
    assert analytics.at(C1, offset=300).image.broker_ids() == [4, 5, 6]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "give one of --topic, --broker and --quorum"),
        (("--broker", "4", "--quorum"), "give one of"),
        (("--broker", "4", "--partition", "0"), "--partition needs --topic"),
    ],
)
def test_bad_questions(arguments: tuple[str, ...], text: str) -> None:
    result = run(C1, *arguments)
    assert result.exit_code == 2 and text in result.output


def test_an_unknown_broker_is_an_error() -> None:
    result = run(C1, "--broker", "77")
    assert result.exit_code == 1 and "this history knows no broker 77" in result.output

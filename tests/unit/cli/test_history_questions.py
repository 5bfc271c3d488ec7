"""`quorate history diff` and `whatif`, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.quorum import analytics
from quorate.quorum.analytics.replay.differences import Point, diff
from quorate.quorum.analytics.replay.moment import moment
from quorate.quorum.analytics.replay.moment_json import as_json
from tests.unit.analytics.logs import batches, write_segment
from tests.unit.analytics.test_what_if import partition, state
from tests.unit.metadata.kafka_dump import C1

WHOLE = b"".join(batches())


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["history", *map(str, arguments)])


def said(*arguments: str | Path) -> Any:
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_difference_in_text(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, WHOLE)
    assert run("diff", tmp_path, "17", "20").stdout.splitlines() == [
        "from offset 17, 2027-01-15 08:00:06.000 UTC, to offset 20, 2027-01-15 08:00:07.000 UTC",
        "broker 2: standing active -> fenced",
        "partition a-0: isr [1, 2, 3] -> [1, 3]",
        "partition a-1: leader 2 -> 1, leader_epoch 0 -> 1, isr [2, 1] -> [1]",
    ]
    lines = run("diff", tmp_path, "20", "2027-01-15T08:00:19").stdout.splitlines()
    assert "topic a: removed, id was QUFBQUFBQUFBQUFBQUFBQQ, partitions was 2" in lines
    assert any(line.startswith("partition b-0: created, leader 1, ") for line in lines)
    assert run("diff", tmp_path, "20", "20").stdout.splitlines()[1:] == ["nothing differs"]


def test_the_differences_lead_from_one_state_to_the_other(tmp_path: Path) -> None:
    """Applied to the fields of the first state, they give those of the second."""
    from quorate.quorum.analytics.replay.differences import subjects

    write_segment(tmp_path, 0, WHOLE)
    for before in range(0, 40, 3):
        for after in range(0, 40, 7):
            state = subjects(as_json(moment(tmp_path, offset=before)))
            for each in diff(tmp_path, Point(offset=before), Point(offset=after)).differences:
                fields = state.setdefault(each.subject, {})
                assert fields.get(each.field) == each.before
                if each.what == "removed" or each.after is None:
                    fields.pop(each.field)
                else:
                    fields[each.field] = each.after
            expected = subjects(as_json(moment(tmp_path, offset=after)))
            assert _without_nothing(state) == _without_nothing(expected)


def _without_nothing(state: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Leave out fields without a value, and subjects without a field."""
    some = {
        subject: {name: value for name, value in fields.items() if value is not None}
        for subject, fields in state.items()
    }
    return {subject: fields for subject, fields in some.items() if fields}


def test_what_if_in_text(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, WHOLE)
    lines = run("whatif", tmp_path, "--kill", "3", "--at", "20").stdout.splitlines()
    assert lines == [
        "at offset 20, 2027-01-15 08:00:07.000 UTC",
        "lost: broker 3",
        "  2 of 2 partitions have a replica there: 2 below min ISR",
        "a-0: below min ISR, leader 1 -> 1, in sync 1 of 3, min.insync.replicas 2",
        "a-1: below min ISR, leader 1 -> 1, in sync 1 of 3, min.insync.replicas 2",
    ]
    ranked = run("whatif", tmp_path, "--at", "2027-01-15T08:00:07").stdout.splitlines()
    assert ranked[1:3] == [
        "without broker 1:",
        "  2 of 2 partitions have a replica there: 1 offline, 1 below min ISR",
    ]
    assert ranked[3].startswith("  1 of the offline partitions could be led by an unclean election")
    assert "  0 of 1 voters are left, no majority: no metadata can change" in ranked


def test_what_if_about_a_real_kafka() -> None:
    result = said("whatif", C1, "--kill", "4", "--kill", "5", "--at", "300")
    assert result["lost"] == [4, 5]
    assert sum(result["counts"].values()) == len(result["fates"])
    assert result["quorum_survives"] and result["voters_left"] == 3
    every = said("whatif", C1, "--at", "300")
    assert sorted(each["lost"] for each in every) == [[4], [5], [6]]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("whatif", "--kill", "9"), "--kill: broker 9 is not registered at this point"),
        (("whatif", "--rack", "r9"), "--rack: no broker is in r9 at this point"),
        (("whatif", "--at", "noon"), "'noon' must be a time such as"),
        (("diff", "1", "noon"), "'noon' must be a time such as"),
        (("diff", "1", "9" * 5_000), "must be a time such as"),
    ],
)
def test_bad_questions(tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    write_segment(tmp_path, 0, WHOLE)
    result = run(arguments[0], tmp_path, *arguments[1:])
    assert result.exit_code == 2 and text in result.output, result.output


def test_each_rack_of_a_loss_must_have_a_broker(tmp_path: Path) -> None:
    """The loss of the rack that exists alone would seem to be the answer."""
    state(tmp_path, partition(0, (1, 3), (1, 3)))
    assert run("whatif", tmp_path, "--rack", "r1").exit_code == 0
    result = run("whatif", tmp_path, "--rack", "r1", "--rack", "r9")
    assert result.exit_code == 2
    assert "--rack: no broker is in r9 at this point" in result.output


def test_a_point_that_is_not_there(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, WHOLE)
    result = run("diff", tmp_path, "1", "999")
    assert result.exit_code == 1 and "the log ends at offset" in result.output


def test_the_questions_as_functions(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, WHOLE)
    (broker, *_) = analytics.diff(tmp_path, Point(offset=17), Point(offset=20)).differences
    assert (broker.subject, broker.before, broker.after) == ("broker 2", "active", "fenced")
    assert analytics.what_if(tmp_path, [3], offset=20).count("below min ISR") == 2
    assert [each.lost for each in analytics.each_broker(tmp_path, offset=20)] == [(1,), (3,)]


def test_racks_and_the_range_of_a_report_as_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(analytics.BadOption, match="no broker is in the rack r9 at this point"):
        analytics.what_if(C1, racks=["r9"], offset=300)
    at = state(tmp_path, partition(0, (1, 3), (1, 3)))
    assert analytics.brokers_in_racks(at, ["r1"]) == [1, 2]
    assert analytics.what_if(tmp_path, racks=["r1"]).lost == (1, 2)
    assert analytics.what_if(tmp_path, [3], racks=["r1"]).lost == (1, 2, 3)
    pytest.importorskip("pyspark", reason="a report needs `pip install 'quorate[spark]'`")
    from quorate.quorum.analytics.page import report
    from quorate.quorum.analytics.page.scope import Scope

    asked: dict[str, Any] = {}
    monkeypatch.setattr(report, "report", lambda *_, **options: asked.update(options))
    out = tmp_path / "page.html"
    analytics.write_report(tmp_path, out, from_ms=1, to_ms=2, topics=["a"], brokers=[3])
    assert asked["scope"] == Scope(from_ms=1, to_ms=2, topics=("a",), brokers=(3,))
    analytics.write_report(tmp_path, out)
    assert asked["scope"] == report.WHOLE
    with pytest.raises(analytics.BadOption, match="to_ms, 1, must be later than from_ms, 1"):
        analytics.write_report(tmp_path, out, from_ms=1, to_ms=1)

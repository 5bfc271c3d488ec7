"""`quorate history whatif --scenario`: its text, its JSON, and the command that repeats a run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.quorum import analytics
from quorate.quorum.analytics.log.text import span
from quorate.quorum.analytics.rehearsal.assumptions import Assumptions
from tests.unit.analytics.test_rehearsal import LEVEL
from tests.unit.analytics.test_what_if import partition, state
from tests.unit.metadata.kafka_dump import C1

AT = ("--at", "300")
FIXED = ("--restart-ms", "20000", "--catch-up-ms", "5000")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["history", "whatif", *map(str, arguments)])


def test_one_run_tells_what_happens(tmp_path: Path) -> None:
    state(tmp_path, LEVEL, partition(0, (2,), (2,)))
    scenario = ("--scenario", "kill-and-return", "--kill", "2", "--seed", "3")
    lines = run("--from", tmp_path, *scenario, *FIXED).stdout.splitlines()
    assert lines[1:3] == [
        "kill-and-return, seed 3, broker 2",
        "      0.000 s  broker 2 is killed",
    ]
    assert "     20.000 s  broker 2 starts" in lines
    assert f"without a leader, the longest: {span(20_000)}" in lines
    assert f"until all can be written again: {span(20_000)}" in lines


def test_many_runs_show_their_spread_and_repeat_the_worst() -> None:
    asked = (C1, *AT, "--scenario", "kill-and-return", "--seeds", "9", "--restart-ms", "1000-9000")
    lines = run(*asked).stdout.splitlines()
    assert lines[1] == "kill-and-return, 9 seeds"
    assert lines[2].split() == ["min", "median", "p95", "max"]
    found = json.loads(run(*asked, "--format", "json").stdout)
    assert lines[-1] == f"play it again: {found['replay']}"
    words = shlex.split(found["replay"])
    assert words[:3] == ["quorate", "history", "whatif"]
    again = json.loads(run(*words[3:], "--format", "json").stdout)
    assert {**again["worst"], "events": []} == found["worst"]
    assert again["worst"]["events"], "one run tells what happens"


def test_the_worst_run_of_a_damaged_log_can_be_repeated() -> None:
    asked = (C1, *AT, "--scenario", "kill", "--seeds", "2", "--format", "json")
    assert not json.loads(run(*asked).stdout)["replay"].endswith("--permissive")
    assert json.loads(run(*asked, "--permissive").stdout)["replay"].endswith(" --permissive")


def test_a_loss_without_return_is_said(tmp_path: Path) -> None:
    state(tmp_path, LEVEL, partition(0, (2,), (2,)))
    lines = run(tmp_path, "--scenario", "kill", "--kill", "2", "--seeds", "2").stdout.splitlines()
    assert "in 2 of 2 runs, some partition could not be written again" in lines
    (recovery,) = (line for line in lines if line.startswith("until all can be written again"))
    assert recovery.split()[-4:] == ["never"] * 4


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((C1, "--seed", "1"), "--seed needs --scenario"),
        ((C1, "--scenario", "kill", "--limit", "5"), "--limit cannot be given with --scenario"),
        ((C1, "--restart-ms", "5-9"), "--restart-ms needs --scenario"),
        ((C1, "--scenario", "flood"), "there is no scenario 'flood'"),
        ((C1, "--scenario", "kill", "--seed", "1", "--seeds", "2"), "only one of --seed"),
        ((C1, *AT, "--scenario", "kill", "--kill", "9"), "broker 9 is not active at this point"),
        ((C1, "--scenario", "kill", "--restart-ms", "9-5"), "'9-5' must be a number of ms"),
        ((C1, "--scenario", "kill", "--session-timeout-ms", "2000"), "must be longer"),
        ((), "give one DIR"),
        ((C1, "--from", C1), "give one DIR"),
    ],
)
def test_bad_questions(arguments: tuple[str | Path, ...], text: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2 and text in result.output, result.output


def test_the_function(tmp_path: Path) -> None:
    state(tmp_path, LEVEL, partition(0, (2,), (2,)))
    fixed = Assumptions(restart_ms=(20_000, 20_000))
    found = analytics.rehearse(tmp_path, "kill-and-return", [1, 2], brokers=[2], assumptions=fixed)
    assert [each.recovery_ms for each in found.outcomes] == [20_000, 20_000]
    assert len(analytics.rehearse(tmp_path, "kill").outcomes) == 20

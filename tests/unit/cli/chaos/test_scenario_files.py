"""Scenario files: the bundled ones load, and an error names file, line and rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.chaos.actions.table import ACTIONS
from quorate.cli.chaos.loading.describe import description
from quorate.cli.chaos.loading.loader import bundled_scenarios, load, parse
from quorate.cli.chaos.loading.reading import ScenarioError
from quorate.cli.chaos.loading.toml_lines import line_of, lines_of
from quorate.cli.chaos.scenario.steps import STEPS

GOOD = """\
title = "T"
[cluster]
brokers = 3
[cluster.config]
"broker.session.timeout.ms" = 3000
[workload]
partitions = 4
[[variants]]
name = "one"
[[variants.steps]]
do = "kill"
node = "leader"
[[variants.steps]]
do = "wait"
ms = 5
"""


def test_the_bundled_scenarios() -> None:
    assert list(bundled_scenarios()) == [
        "client-links",
        "clock-skew",
        "controller-kill",
        "controller-partition",
        "disk-error",
        "disk-full",
        "flapping-isr",
        "group-restart",
        "heartbeat-timeout",
        "leader-kill",
        "lost-messages",
        "paused-broker",
        "paused-controller",
        "power-loss",
        "quorum-loss",
        "rack-loss",
        "reassign-under-fire",
        "rolling-restart",
        "slow-disk",
        "slow-link",
    ]
    for name in bundled_scenarios():
        assert load(name).name == name
    flagship = load("heartbeat-timeout")
    assert [variant.name for variant in flagship.variants] == ["heartbeats", "partition"]
    assert flagship.needs_faults
    assert not load("leader-kill").needs_faults


def test_every_step_has_its_action() -> None:
    assert set(STEPS) == set(ACTIONS)


def test_defaults_and_values() -> None:
    scenario = parse(GOOD, "x.toml", "x")
    assert scenario.workload.partitions == 4
    assert scenario.workload.replication_factor == 3
    assert scenario.cluster.config == {"broker.session.timeout.ms": "3000"}
    (variant,) = scenario.variants
    assert [(step.do, step.line) for step in variant.steps] == [("kill", 10), ("wait", 13)]
    assert scenario.with_partitions(200).workload.partitions == 200


@pytest.mark.parametrize(
    ("before", "after", "line", "said"),
    [
        ('title = "T"', 'title = ""', 1, "title: value '' must be a text that is not empty"),
        ('title = "T"', "", 1, "title is missing: The failure, in one line."),
        ("brokers = 3", "brokers = 0", 3, "brokers: value 0 must be a whole number from 1 to 100"),
        ("brokers = 3", "brokers = true", 3, "value True must be a whole number"),
        (
            "brokers = 3",
            "broker = 3",
            3,
            "'broker' is an unknown key; the known keys are: controllers, b",
        ),
        ("brokers = 3", "brokers = 2", 6, "replication_factor: value 3 must be at most the 2"),
        ("timeout.ms", "timeout", 5, "broker.session.timeout: no such configuration key"),
        ("= 3000", "= 'soon'", 5, "broker.session.timeout.ms: value 'soon' must be a whole number"),
        ("partitions = 4", "partitions = 'x'", 7, "partitions: value 'x' must be a whole number"),
        ('do = "kill"', 'do = "kil"', 11, "do: value 'kil' must be one of kill, start, stop"),
        ('do = "kill"', "", 10, "do: value None must be one of kill"),
        ('node = "leader"', "", 10, "step kill: node is missing: The node."),
        ('"leader"', '"boss"', 12, "node: value 'boss' must be a node's id, one of leader, c"),
        (
            "ms = 5",
            "ms = 5\nnode = 1",
            16,
            "step wait: 'node' is an unknown key; the known keys are: ms",
        ),
        ("ms = 5", "ms = 5 5", 15, "not TOML: Expected newline or end of document"),
        ("[workload]", "[workload", 6, "not TOML: Expected ']'"),
        ('[[variants]]\nname = "one"\n', "", 8, "must be one or more tables, as [[variants]] and"),
    ],
)
def test_a_mistake_is_told_where_it_stands(before: str, after: str, line: int, said: str) -> None:
    assert before in GOOD
    content = GOOD.replace(before, after, 1)
    with pytest.raises(ScenarioError) as refused:
        parse(content, "mine.toml", "mine")
    assert str(refused.value).startswith(f"mine.toml:{line}: ")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("table", "key", "needed"),
    [
        ("workload", "group_session_ms", "`group_members`"),
        ("expect", "max_rebalance_ms", "`member_kill_interval_ms`"),
        ("expect", "max_admin_wait_ms", "`admin_interval_ms`"),
        ("expect", "expiry_tolerance_ms", "the step `wait-fenced`"),
        ("expect", "max_resign_ms", "the step `wait-resigned`"),
    ],
)
def test_a_key_without_effect_is_refused(table: str, key: str, needed: str) -> None:
    lines = GOOD.replace("[workload]", "[expect]\n[workload]").splitlines()
    line = lines.index(f"[{table}]") + 1
    lines.insert(line, f"{key} = 5000")
    with pytest.raises(ScenarioError) as refused:
        parse("\n".join(lines), "mine.toml", "mine")
    assert str(refused.value) == f"mine.toml:{line + 1}: {key} has no effect without {needed}"


SECOND = """\
[[variants]]
name = "two"
[variants.expect]
max_unavailable_ms = 7
min_leader_moves = 0
[variants.ablation]
safeguard = "x"
what = "It is gone."
check = "leaders"
[[variants.steps]]
do = "kill-all"
"""
BOTH = "[expect]\nmin_leader_moves = 1\n[ablation]\nsafeguard = 'y'\nwhat = 'w'\ncheck = 'lost'\n"


def test_a_variant_that_runs_alone_has_its_own_bounds_and_its_own_safeguard() -> None:
    found = parse(GOOD.replace("[workload]", f"{BOTH}[workload]") + SECOND, "m.toml", "m")
    one, two = found.variants
    assert [found.expect_of(each).min_leader_moves for each in ((one,), (two,), (one, two))] == [
        1,
        0,
        1,
    ]
    assert found.expect_of((two,)).max_unavailable_ms == 7
    assert found.expect_of((two,)).max_unread_ms == found.expect.max_unread_ms
    checks = [each.check for each in map(found.ablation_of, found.variants) if each is not None]
    assert checks == ["lost", "leaders"]
    told = "\n".join(description(found))
    assert "expected, if this variant runs alone: max_unavailable_ms = 7, min_leader" in told
    assert (
        "ablation of two: It is gone.\n          The verdict is then bad, by the check: lead"
        in told
    )


@pytest.mark.parametrize(
    ("before", "after", "line", "said"),
    [
        ("max_unavailable_ms", "max_unavailable", 19, "'max_unavailable' is an unknown key"),
        ("min_leader_moves", "max_resign_ms", 20, "max_resign_ms: value 0 must be"),
        ("min_leader_moves = 0", "max_resign_ms = 9", 20, "max_resign_ms has no effect without"),
        ('"leaders"', '"leader"', 24, "check: value 'leader' must be one of steps, end"),
    ],
)
def test_a_mistake_in_the_own_keys_of_a_variant(
    before: str, after: str, line: int, said: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse(GOOD + SECOND.replace(before, after, 1), "m.toml", "m")
    assert str(refused.value).startswith(f"m.toml:{line}: {said}")


def test_bounds_of_the_only_variant_are_those_of_the_scenario() -> None:
    own = GOOD.replace('name = "one"\n', 'name = "one"\n[variants.expect]\nmin_leader_moves = 1\n')
    with pytest.raises(ScenarioError, match=r"m\.toml:10: expect has no effect in the only var"):
        parse(own, "m.toml", "m")


def test_a_variant_stands_once() -> None:
    again = GOOD + '[[variants]]\nname = "one"\n[[variants.steps]]\ndo = "kill-all"\n'
    with pytest.raises(ScenarioError, match=r"m\.toml:17: two variants have the name 'one'"):
        parse(again, "m.toml", "m")


def test_neither_a_name_nor_a_file(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="must be one of client-links, clock-skew,"):
        load("leader-kil")
    with pytest.raises(ScenarioError, match="cannot be read"):
        load(str(tmp_path / "none.toml"))
    (tmp_path / "mine.toml").write_text(GOOD)
    assert load(str(tmp_path / "mine.toml")).name == "mine"


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5_000])
def test_a_value_that_no_reader_takes_is_refused(value: str) -> None:
    with pytest.raises(ScenarioError, match=r"^x\.toml:1: not TOML: "):
        parse(f"a = {value}", "x.toml", "x")


def test_lines_of_keys_in_nested_arrays() -> None:
    text = (
        "a = 1\n[t]\n'x.y' = 2\n[[v]]\nk = 1\n[[v.s]]\nd = 1\n[[v.s]]\nd = 2\n[[v]]\n[[v.s]]\nd=3\n"
    )
    lines = lines_of(text)
    assert lines["a",] == 1
    assert lines["t", "x.y"] == 3
    assert lines["v", 0, "s", 1, "d"] == 9
    assert lines["v", 1, "s", 0, "d"] == 12
    assert line_of(lines, ("v", 0, "s", 1, "missing")) == 8
    assert line_of(lines, ("nowhere",)) == 1

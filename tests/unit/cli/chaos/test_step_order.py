"""A step that cannot do anything is refused before anything starts, with file and line."""

from __future__ import annotations

import pytest

from quorate.cli.chaos.loading.loader import (
    bundled_scenarios,
    load,
    parse,
    require_nodes,
)
from quorate.cli.chaos.loading.reading import ScenarioError

HEAD = 'title = "T"\n[[variants]]\nname = "one"\n'


def text(*steps: str) -> str:
    """Return a scenario file with these steps, as `do` or `do node`. Step n is on line 4 n."""
    found = HEAD
    for step in steps:
        do, _, node = step.partition(" ")
        value = node if node.isdecimal() else f'"{node}"'
        lasts = "ms = 1" if do == "wait-lasted" else ""
        found += f'[[variants.steps]]\ndo = "{do}"\n{f"node = {value}" if node else ""}\n{lasts}\n'
    return found


def refusal(*steps: str) -> str:
    """Return the error for a file with these steps."""
    with pytest.raises(ScenarioError) as refused:
        parse(text(*steps), "mine.toml", "mine")
    return str(refused.value)


@pytest.mark.parametrize(
    ("steps", "line", "why"),
    [
        (("heal",), 4, "step heal: there is no fault to end"),
        (("kill 4", "heal"), 8, "step heal: there is no fault to end: `start` starts nodes"),
        (("kill victim",), 4, "step kill: victim: no step before has named a node"),
        (("kill 4", "kill 4"), 8, "step kill: this node is down already"),
        (("kill leader", "pause victim"), 8, "step pause: this node is down already"),
        (("pause 4", "start 4"), 8, "step start: this node is not down"),
        (("kill 4", "start leader"), 8, "node: value 'leader' must be an id or victim"),
        (("kill 4", "resume victim"), 8, "step resume: this node is not paused"),
        (("kill 4", "start-all", "start-all"), 12, "step start-all: no node is down"),
        (("kill 4", "kill-all"), 8, "step kill-all: some nodes have faults"),
        (("kill-all", "kill 4"), 8, "step kill: every node is down"),
        (("pin-writer 4", "kill 5", "pin-writer 6"), 12, "a pinned writer runs already"),
        (("kill 4", "unpin-writer"), 8, "step unpin-writer: no pinned writer runs"),
        (("slow-link 4",), 4, "step slow-link: delay_ms or bytes_per_s must be more than 0"),
        (("fill-disk 4", "start 4"), 8, "step start: this node is not down"),
        (("kill 4", "wait-stopped 4"), 8, "step wait-stopped: this node is not on a bad disk"),
        (("fill-disk 4", "kill victim"), 8, "step kill: this node is on a bad disk already"),
        (("slow-clients controller",), 4, "the controller is no broker"),
        (("kill 1", "wait-resigned leader of 3"), 8, "the leader of 3 is no controller"),
        (("kill 4", "wait-reassigned"), 8, "no reassignment runs: use reassign first"),
        (("reassign", "reassign"), 8, "a reassignment runs already: use wait-reassigned first"),
        (("kill 1", "start 1", "wait-resigned 1"), 12, "this node has no fault"),
        (("pause 4", "resume victim", "wait-lasted victim"), 12, "this node has no fault, so none"),
        (("kill 1", "wait-resigned leader"), 8, "step wait-resigned: the leader is no controller"),
        (("mute-heartbeats controller",), 4, "the controller is no broker"),
        (("kill standby", "wait-fenced victim"), 8, "step wait-fenced: the standby is no broker"),
        (("wait-written",), 4, "no step causes a fault: use one of kill-all, kill-rack, roll"),
    ],
)
def test_a_step_without_effect(steps: tuple[str, ...], line: int, why: str) -> None:
    said = refusal(*steps)
    assert said.startswith(f"mine.toml:{line}: ")
    assert why in said


def test_a_roll_needs_healthy_nodes() -> None:
    steps = text("kill 4") + '[[variants.steps]]\ndo = "roll"\nnodes = "brokers"\n'
    with pytest.raises(ScenarioError, match=r"mine\.toml:8: step roll: some nodes have faults"):
        parse(steps, "mine.toml", "mine")


@pytest.mark.parametrize(
    "steps",
    [
        ("kill 4", "start 4", "kill 4"),
        ("pause 4", "kill 5", "heal", "start 5"),
        ("pin-writer 4", "unpin-writer", "pin-writer 5", "kill 6"),
        ("kill standby", "kill controller", "start-all"),
        ("fill-disk leader of 3", "wait-stopped victim", "start victim"),
        ("fail-flushes controller", "heal"),
        ("reassign", "kill 4", "wait-reassigned", "reassign"),
        ("cut-one-way follower of 0", "isolate 1", "heal"),
    ],
)
def test_what_may_follow(steps: tuple[str, ...]) -> None:
    assert len(parse(text(*steps), "mine.toml", "mine").variants[0].steps) == len(steps)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (("kill 7",), "mine.toml:4: step kill: node: value 7 must be one of 1, 4, 5"),
        (("kill 4", "wait-fenced 1"), "mine.toml:8: step wait-fenced: node: value 1 must be one"),
        (("isolate 4", "wait-resigned 4"), "mine.toml:8: step wait-resigned: node: value 4 must"),
        (("kill standby",), "mine.toml:4: step kill: there is one controller only"),
        (("kill leader of 12",), "mine.toml:4: step kill: leader of 12: there are 12 partitions"),
        (("kill 4", "reassign"), "mine.toml:8: step reassign: there must be more than 3 brokers"),
    ],
)
def test_a_node_that_the_cluster_lacks(steps: tuple[str, ...], said: str) -> None:
    scenario = parse(text(*steps), "mine.toml", "mine")
    with pytest.raises(ScenarioError) as refused:
        require_nodes(scenario, controllers=[1], brokers=[4, 5])
    assert str(refused.value).startswith(said)


def test_the_bundled_scenarios_fit_their_clusters() -> None:
    for name in bundled_scenarios():
        loaded = load(name)
        count = loaded.cluster.controllers
        brokers = range(count + 1, count + 1 + loaded.cluster.brokers)
        require_nodes(loaded, range(1, count + 1), brokers)
        assert loaded.ablation is not None, f"{name} names the safeguard that it tests"

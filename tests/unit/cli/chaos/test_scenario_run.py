"""The state of a run: brokers that returned, controllers that were elected, steps that fail."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorate.cli.chaos.actions import table as actions
from quorate.cli.chaos.actions.fault_log import OpenFault
from quorate.cli.chaos.actions.link_actions import heal_links
from quorate.cli.chaos.actions.run_clock import RunClock
from quorate.cli.chaos.actions.scenario_run import ScenarioRun, StepFailed, Values
from quorate.cli.chaos.actions.wait_actions import wait_controller, wait_isr_shrunk
from quorate.cli.chaos.checks.faults import (
    ACTIVE_CONTROLLER,
    BROKER,
    FULL_DISK,
    ISOLATE,
    KILL,
    PAUSE,
)
from quorate.cli.chaos.loading.loader import load
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run import run
from quorate.cli.chaos.scenario.scenario import Step, Variant
from quorate.cli.chaos.timeline.cluster_states import ClusterStates
from quorate.cli.chaos.workload.ledger import Ledger
from quorate.quorum.metadata.records import PartitionChangeRecord
from quorate.quorum.raft.control_records import LeaderChangeMessage
from tests.unit.cli.chaos.test_timeline import TOPIC, fenced, logged, moved, story


class Cluster:
    """A cluster of three controllers and three brokers that all run."""

    controllers, brokers = (1, 2, 3), (4, 5, 6)
    command_ms = 0

    def runs(self, node_id: int) -> bool:
        """Return True."""
        return True

    def require(self, node_id: int) -> None:
        """Accept any node."""


def started(states: ClusterStates) -> ScenarioRun:
    """Return a run in these states, whose workload has two partitions with three replicas."""
    unused = cast(Any, None)
    scenario = cast(Any, type("S", (), {"workload": type("W", (), {"replication_factor": 3})}))
    return ScenarioRun(
        scenario=scenario,
        cluster=cast(Any, Cluster()),
        control=cast(Any, Cluster()),
        facts=unused,
        clock=RunClock(),
        brokers=unused,
        make_brokers=unused,
        ledger=Ledger(2, 10),
        writer=unused,
        reader=unused,
        probe=unused,
        states=states,
        session_timeout_ms=9_000,
        serving=frozenset((4, 5, 6)),
        first_active=1,
        say=lambda event: None,
        chance=random.Random(0),
    )


def fault(kind: str, node: int, role: str, start_ms: int) -> OpenFault:
    """Return a fault."""
    return OpenFault(kind=kind, node=node, role=role, start_ms=start_ms, led=())


def unfenced(found: ScenarioRun, ms: int) -> None:
    """Let broker 4 be unfenced."""
    list(found.states.apply([logged(ms, fenced(4, -1))]))


def test_a_broker_that_is_not_missed_yet_has_not_returned() -> None:
    found = started(story())
    assert found.in_sync()
    found.faults.begin(fault(KILL, 4, BROKER, 100))
    found.end_fault(4)
    assert not found.in_sync(), "the log still shows it as unfenced"
    unfenced(found, 200)
    assert found.in_sync()


def test_a_pause_needs_no_new_registration() -> None:
    found = started(story())
    found.faults.begin(fault(PAUSE, 4, BROKER, 100))
    assert found.in_sync()


def test_partitions_without_records_are_not_in_sync() -> None:
    found = started(story())
    found.ledger.partitions = 3
    assert not found.in_sync()


async def test_the_wait_for_a_controller_ignores_the_term_before_the_fault() -> None:
    found = started(story())
    found.faults.begin(fault(KILL, 1, ACTIVE_CONTROLLER, 100))
    found.end_fault(1)
    with pytest.raises(StepFailed, match="a controller without a fault is active"):
        await wait_controller(found, {"within_ms": 1})
    change = LeaderChangeMessage(version=0, leader_id=1, voters=(), granting_voters=())
    list(found.states.apply([logged(300, change, epoch=2)]))
    await wait_controller(found, {"within_ms": 1})


async def test_a_fenced_broker_is_no_proof_that_the_isr_shrank() -> None:
    found = started(story())
    values = {"node": 4, "within_ms": 1}
    await wait_isr_shrunk(found, values)  # it leads both partitions
    list(found.states.apply([logged(200, moved(each, 5)) for each in range(2)]))
    whole = [
        logged(250, PartitionChangeRecord(partition_id=each, topic_id=TOPIC, isr=(4, 5, 6)))
        for each in range(2)
    ]
    list(found.states.apply(whole))
    with pytest.raises(StepFailed, match="not within 1 ms: no other leader has broker 4"):
        await wait_isr_shrunk(found, values)
    shrunk = [
        logged(300, PartitionChangeRecord(partition_id=each, topic_id=TOPIC, isr=(5, 6)))
        for each in range(2)
    ]
    list(found.states.apply(shrunk))
    await wait_isr_shrunk(found, values)
    list(found.states.apply([logged(400, fenced(4, 1))]))
    with pytest.raises(StepFailed, match=r"broker 4 is fenced: replica\.lag\.time\.max\.ms must"):
        await wait_isr_shrunk(found, values)


def test_a_node_has_one_fault_at_a_time() -> None:
    found = started(story())
    found.faults.begin(fault(PAUSE, 4, BROKER, 100))
    with pytest.raises(StepFailed, match="node 4 has a fault already: pause"):
        found.new_fault(KILL, 4)


def test_a_node_on_a_bad_disk_may_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "runs", lambda self, node_id: node_id != 4)
    found = started(story())
    assert found.died() == [4]
    found.faults.begin(fault(FULL_DISK, 4, BROKER, 100))
    assert found.died() == []


@dataclass
class Sockets:
    """The fault socket of one node, whose rules have affected 7 frames."""

    rules: dict[str, Any]

    def in_force(self, node_id: int) -> dict[str, Any]:
        """Return the rules."""
        return self.rules

    def affected(self, node_id: int, rules: dict[str, Any]) -> int:
        """Return the number of frames."""
        return 7

    def heal(self, node_id: int) -> None:
        """End the rules."""
        self.rules = {}


@pytest.mark.parametrize(("in_force", "affected"), [({"hold": [1]}, 7), ({}, 0)])
async def test_rules_that_ended_before_had_no_complete_effect(
    in_force: dict[str, Any], affected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`chaos heal` of another terminal, or an expired lease, has ended the rules."""
    local = SimpleNamespace(sockets=Sockets(in_force))
    monkeypatch.setattr(ScenarioRun, "local", local)
    found = started(story())
    isolated = fault(ISOLATE, 4, BROKER, 100)
    isolated.rules = {"hold": [1]}
    found.faults.begin(isolated)
    await heal_links(found, 4)
    (ended,) = found.faults.ended
    assert ended.affected == affected
    assert ("its rules ended before the step" in ended.effect) == (affected == 0)
    assert local.sockets.rules == {}


async def bug(found: ScenarioRun, values: Values) -> None:
    """Fail as a step with a bug does."""
    raise KeyError("BrokerHeartbeatRequest")


async def hang(found: ScenarioRun, values: Values) -> None:
    """Never end."""
    await asyncio.sleep(3600)


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (bug, "v, step wait (line 7): KeyError: 'BrokerHeartbeatRequest'"),
        (hang, "v, step wait (line 7): the step did not end within 5 ms"),
    ],
)
async def test_a_step_that_fails_or_hangs_is_recorded(
    action: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(actions.ACTIONS, "wait", action)
    monkeypatch.setattr(actions, "SLACK_MS", 0)
    found = started(story())
    steps = (Step("wait", {"ms": 5}, 7), Step("wait", {"ms": 5}, 8))
    assert not await run.carried_out(found, Variant("v", "-", steps), View(None))
    assert found.failed_steps == [said]


async def drawn(found: ScenarioRun, values: Values) -> None:
    """Record the node of a step."""
    if "node" in values:
        found.note("a step", found.node_named(values["node"]))


async def steps_of(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Return the nodes of the steps of a bundled scenario whose run has this seed."""
    for do in actions.ACTIONS:
        monkeypatch.setitem(actions.ACTIONS, do, drawn)
    found = started(story())
    found.chance = random.Random(seed)
    for variant in load(name).variants:
        assert await run.carried_out(found, variant, View(None))
    return [event.node for event in found.timeline]


async def test_the_same_seed_repeats_the_steps_and_another_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    once = await steps_of("flapping-isr", 1, monkeypatch)
    assert once == await steps_of("flapping-isr", 1, monkeypatch)
    assert len(once) == 6
    others = [await steps_of("flapping-isr", seed, monkeypatch) for seed in range(2, 12)]
    assert once not in others[:3]
    assert {node for each in others for node in each} == {4, 5, 6}, "every broker is drawn"


async def test_a_log_that_cannot_be_followed_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    found = started(story())

    def unreadable() -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(ScenarioRun, "poll_facts", lambda self: unreadable())
    following = asyncio.create_task(found.follow_facts())
    await asyncio.sleep(0.1)
    following.cancel()
    assert len(found.problems) == 1, "it is recorded once"
    assert "the metadata cannot be followed" in found.problems[0]

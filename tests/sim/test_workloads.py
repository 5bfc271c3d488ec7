"""The workloads keep their promises on a healthy cluster, and each check can fail."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from quorate.quorum.protocol.schemas.unregister_broker import UnregisterBrokerRequest
from quorate.quorum.state_in_doubt import StateInDoubt
from tests.sim.ablations.table import ABLATIONS
from tests.sim.checks.invariants import Violation
from tests.sim.detect import NEEDS, Results, detect, innermost, relevant
from tests.sim.run import Simulation, play, simulation
from tests.sim.scripts.staging import healed, settled
from tests.sim.workloads.autocreated import AutoCreated
from tests.sim.workloads.fetch_sessions import FetchSessions
from tests.sim.workloads.membership import Membership
from tests.sim.workloads.offsets import NOTHING, Offsets
from tests.sim.workloads.recreated import NAME, Recreated
from tests.sim.workloads.table import PER_SEED, WORKLOADS, workloads_of
from tests.sim.workloads.throttled import Throttled
from tests.sim.workloads.trimmed import Trimmed
from tests.sim.workloads.unregistered import Unregistered
from tests.sim.workloads.workload import Workload
from tests.sim.world.cluster import NodeStopped
from tests.sim.world.shape import Shape

FIRST = (Offsets, Recreated, Trimmed, AutoCreated)
"""Workloads with one client each, whose check reads the final state of the cluster."""
RUN_S = 6


def shape_for(*works: type[Workload]) -> Shape:
    return Shape(overrides={name: value for each in works for name, value in each.keys.items()})


async def fails(stage: Simulation, work: object, match: str) -> None:
    assert isinstance(work, Offsets | Recreated | Trimmed | AutoCreated)
    with pytest.raises(Violation, match=match):
        await work.check()


async def all_of_them(stage: Simulation) -> None:
    await settled(stage)
    works = [await stage.begin(each, pace_s=0.03) for each in FIRST]
    await asyncio.sleep(RUN_S)
    await healed(stage)
    offsets, recreated, trimmed, created = works
    assert all(each.effects > 20 for each in works)
    assert isinstance(offsets, Offsets) and isinstance(recreated, Recreated)
    assert isinstance(trimmed, Trimmed) and isinstance(created, AutoCreated)
    assert trimmed.deleted > 2 and len(recreated._acknowledged) > 1

    for group, last in offsets._acknowledged.items():
        assert last > NOTHING
        offsets._acknowledged[group] = last - 1
    await fails(stage, offsets, "was acknowledged last")

    topic = stage.cluster.newest_image().topic(NAME)
    assert topic is not None
    recreated._acknowledged.setdefault(topic.id, {})[0, 1 << 20] = b"never there"
    await fails(stage, recreated, "acknowledged at")
    assert await recreated.produce(NAME, 0, b"of another topic")
    await fails(stage, recreated, "of a topic that was deleted")

    latest = max(trimmed._acknowledged)
    value = trimmed._acknowledged[latest]
    trimmed._acknowledged[latest] = b"another"
    await fails(stage, trimmed, "acknowledged at")
    trimmed._acknowledged[latest] = value
    trimmed._latest, right = 1 << 20, trimmed._latest
    with pytest.raises(Violation, match="the latest offset is"):
        await trimmed._latest_is_not_older()
    trimmed._latest = 0 if await first_of(trimmed) else right
    if not trimmed._latest:
        await fails(stage, trimmed, "starts at")

    created._acknowledged["auto0"] = {1 << 20: b"never there"}
    await fails(stage, created, "is not at")
    created._acknowledged = {"auto9": {0: b"never there"}}
    await fails(stage, created, "does not exist")


async def first_of(trimmed: Trimmed) -> int:
    found = await trimmed.offset_of("trimmed", -2)
    assert found is not None
    return found


def test_workloads() -> None:
    with simulation("workloads", shape_for(*FIRST)) as stage:
        play(stage, all_of_them(stage))


async def a_group_and_sessions(stage: Simulation) -> None:
    await settled(stage)
    membership = await stage.begin(Membership)
    sessions = await stage.begin(FetchSessions)
    await asyncio.sleep(RUN_S)
    stage.cluster.kill(stage.cluster.brokers[0])
    await asyncio.sleep(1)
    await healed(stage)
    assert isinstance(membership, Membership) and isinstance(sessions, FetchSessions)
    for kind in ("assignments", "commits", "offsets found", "departures", "absences"):
        assert stage.coverage[f"workload membership: {kind}"] > 0, kind
    for kind in ("full fetches", "incremental fetches", "wrong epochs", "reads again"):
        assert stage.coverage[f"workload sessions: {kind}"] > 0, kind
    assert membership.book.generation > 3

    partition = next(each for each in sessions.taken if sessions.taken[each])
    offset, _ = sessions.taken[partition].popitem()
    with pytest.raises(Violation, match=f"None was read at {offset} with a session"):
        await sessions.check()
    sessions.taken[partition][offset] = b"another"
    with pytest.raises(Violation, match="was read at"):
        await sessions.check()
    sessions._positions[partition] = 0
    with pytest.raises(Violation, match="before b'another'"):
        await sessions.check()


def test_a_group_and_sessions() -> None:
    with simulation("a group and sessions", shape_for(Membership, FetchSessions)) as stage:
        play(stage, a_group_and_sessions(stage))


async def a_new_leader_at_the_last_moment(stage: Simulation) -> None:
    """The throttle of a new leader has counted nothing yet, but that of its predecessor was
    exceeded."""
    await settled(stage)
    throttled = await stage.begin(Throttled)
    assert isinstance(throttled, Throttled)
    await healed(stage)
    exceeded = iter([False, True])
    throttled.leader_exceeds = lambda: next(exceeded, False)  # type: ignore[method-assign]
    await throttled.spawn(throttled.check())
    with pytest.raises(Violation, match="the throttle is not exceeded"):
        await throttled.check()


async def a_running_broker_is_removed(stage: Simulation) -> None:
    """The request to unregister a broker arrives after its restart."""
    await settled(stage)
    unregistered = await stage.begin(Unregistered)
    machine = stage.cluster.brokers[0]
    request = UnregisterBrokerRequest(broker_id=machine.id)
    answer = await unregistered.spawn(unregistered.ask_any(request))
    assert answer.error_code == 0 and not stage.cluster.is_registered(machine)
    stage.quorum_admin.stopping = True  # the faults are over
    await healed(stage)
    assert stage.coverage["workload unregistered: brokers that were removed late"] == 1


@pytest.mark.parametrize("script", [a_new_leader_at_the_last_moment, a_running_broker_is_removed])
def test_what_happens_late(script: Callable[[Simulation], Coroutine[Any, Any, None]]) -> None:
    with simulation(script.__name__, Shape()) as stage:
        play(stage, script(stage))


def test_each_seed_has_some() -> None:
    drawn = [workloads_of(seed) for seed in range(50)]
    assert all(len(set(each)) == PER_SEED for each in drawn)
    assert {each for some in drawn for each in some} == set(WORKLOADS)


def test_a_removed_safeguard_is_detected() -> None:
    found = detect(ABLATIONS["flush-before-fetch"], seeds=3)
    assert found.seed is not None
    assert re.search("durable only on|counts as durable", found.said), found.said
    assert f"| flush-before-fetch | {found.seed} |" in found.row()
    assert detect(ABLATIONS["flush-before-fetch"], seeds=0).row().count("not in 0") == 1
    assert ABLATIONS["min-isr"] in relevant() and ABLATIONS["end-of-tokens"] not in relevant()
    assert ABLATIONS["snapshot-verification"] not in relevant()


def test_seeds_that_cannot_exercise_a_safeguard_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(NEEDS, "flush-before-fetch", lambda seed, plan: False)
    found = detect(ABLATIONS["flush-before-fetch"], seeds=9)
    assert (found.seed, found.tried, found.cpu_s) == (None, 9, 0.0)


def test_what_a_check_said_stands_alone() -> None:
    inside = StateInDoubt(f"half changed: {Violation('c1 at 3: so it is')!r}")
    assert innermost(str(NodeStopped("c1", inside))) == "c1 at 3: so it is"
    assert innermost("c1 at 3: so it is") == "c1 at 3: so it is"


@pytest.mark.long
def test_a_search_continues_where_an_earlier_command_ended(tmp_path: Path) -> None:
    path, removed = tmp_path / "found.json", ABLATIONS["leader-flush"]
    kept = inspect.getattr_static(removed.owner, removed.attribute)
    ablation = dataclasses.replace(removed, instead=kept)  # so that no seed finds it
    first = detect(ablation, seeds=1, save=Results(path).save)
    assert (first.seed, first.tried) == (None, 1)
    again = Results(path).of(ablation)
    assert again == first
    assert detect(ablation, seeds=1, before=again) == first
    further = detect(ablation, seeds=2, before=again)
    assert further.tried == 2 and further.cpu_s > first.cpu_s

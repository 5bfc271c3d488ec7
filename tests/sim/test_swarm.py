"""Swarms: each draws a few kinds of stress, and is replayed like every other seed."""

from __future__ import annotations

import asyncio

import pytest

from tests.sim.faults.nemesis import EVERYTHING
from tests.sim.faults.swarm import KINDS, SHARE, is_swarm, swarm_of
from tests.sim.run import Simulation, play, simulation
from tests.sim.scripts.staging import healed, settled
from tests.sim.seeds import Plan, run_seed, shape_of, swarm_in, works_of
from tests.sim.workloads.quotas import Quotas
from tests.sim.world.distances import FAR_SHARE, LONGEST_MS, distances
from tests.sim.world.shape import Shape

MANY = range(400)
HOSTS = [f"b{number}" for number in range(30)]


def test_each_draws_a_few_kinds_and_together_they_have_all() -> None:
    swarms = [swarm_of(seed) for seed in MANY]
    assert {len(each.profile.weights) for each in swarms} == set(range(KINDS[0], KINDS[1] + 1))
    assert {kind for each in swarms for kind in each.profile.weights} == set(EVERYTHING)
    assert {each.distances for each in swarms} == {True, False}


def test_half_of_the_seeds_are_swarms_but_none_of_the_smaller_ones_and_adversaries() -> None:
    share = sum(is_swarm(seed) for seed in MANY) / len(MANY)
    assert abs(share - SHARE) < 0.1
    swarm = next(seed for seed in MANY if is_swarm(seed))
    assert swarm_in(swarm, Plan()) == swarm_of(swarm)
    assert len(works_of(swarm, Plan())) < len(works_of(swarm, Plan(swarm_share=0.0)))
    assert shape_of(swarm, Plan()).overrides.items() >= swarm_of(swarm).keys.items()
    for plan in (Plan(workloads=False), Plan(adversary=True), Plan(swarm_share=0.0)):
        assert swarm_in(swarm, plan) is None


def test_some_directions_are_far() -> None:
    between = distances("some seed")
    far = [each for a in HOSTS for b in HOSTS if (each := between(a, b)).max_latency_ms >= 1]
    assert abs(len(far) / len(HOSTS) ** 2 - FAR_SHARE) < 0.1
    assert all(each.max_latency_ms <= LONGEST_MS for each in far)
    assert between("b0", "b1") == between("b0", "b1")
    assert any(between("b0", each) != distances("another")("b0", each) for each in HOSTS)


async def a_client_with_quotas_is_far_away(stage: Simulation) -> None:
    await settled(stage)
    await stage.begin(Quotas)
    await asyncio.sleep(1)
    await healed(stage)


def test_a_cluster_with_distances_is_well() -> None:
    with simulation("far", Shape(distances=True, overrides=Quotas.keys)) as stage:
        play(stage, a_client_with_quotas_is_far_away(stage))


@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(each, marks=pytest.mark.long) for each in (1, 2))]
)
def test_a_swarm_of_controllers_is_the_same_twice(seed: int) -> None:
    plan = Plan(controllers_only=True, swarm_share=1.0)
    assert run_seed(seed, plan).trace_hash == run_seed(seed, plan).trace_hash

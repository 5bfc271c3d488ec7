"""Schedules of faults are replayed as they were drawn, and shrunk to the faults that matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.sim.checks.invariants import Violation
from tests.sim.faults.faults import Fault
from tests.sim.run import play, simulation
from tests.sim.seeds import PLAN, Plan, SeedFailed, _script, run_seed, shape_of
from tests.sim.shrink import shrunk
from tests.sim.world.loop import SimLoop


def numbered(count: int) -> list[Fault]:
    return [Fault(kind="kill", at_s=number) for number in range(count)]


@pytest.mark.parametrize("guilty", [{0}, {39}, {3, 30}, {1, 2, 3}, {0, 13, 27, 39}])
def test_what_matters_is_left(guilty: set[int]) -> None:
    def fails(some: Sequence[Fault]) -> bool:
        return guilty <= {int(each.at_s) for each in some}

    assert {int(each.at_s) for each in shrunk(numbered(40), fails, 500)} == guilty


def test_what_fails_without_faults_needs_none() -> None:
    assert shrunk(numbered(8), lambda some: True) == []


def test_it_gives_up_after_so_many_runs() -> None:
    runs: list[int] = []

    def fails(some: Sequence[Fault]) -> bool:
        runs.append(len(some))
        return False

    assert len(shrunk(numbered(100), fails, 10)) == 100
    assert len(runs) == 10


@pytest.mark.parametrize(
    ("seed", "plan"),
    [
        (12, Plan(controllers_only=True)),
        (2, Plan(faults_s=1.5)),
        *(
            pytest.param(seed, plan, marks=pytest.mark.long)
            for seed, plan in (
                *((seed, Plan(controllers_only=True)) for seed in (10, 14, 16, 17)),
                *((seed, Plan(faults_s=3.0)) for seed in (2, 12)),
                *((seed, Plan(faults_s=3.0, swarm_share=1.0)) for seed in (2, 12)),
            )
        ),
    ],
)
def test_a_schedule_replays_what_was_drawn(seed: int, plan: Plan) -> None:
    """This also holds with disks that go bad (seeds 12 to 17), whose faults wait until they are
    allowed."""
    with simulation(seed, shape_of(seed, plan)) as stage:
        play(stage, _script(stage, seed, plan))
        drawn, trace = list(stage.faults.done), list(stage.cluster.trace)
    assert drawn
    again: list[str] = []
    run_seed(seed, replace(plan, schedule=drawn), again)
    assert again == trace


def test_timers_of_one_time_run_in_the_order_in_which_they_were_set() -> None:
    """This also holds if other timers are between them in the heap. Those of a replay are
    different."""
    loop = SimLoop()
    ran: list[int] = []
    for number in range(20):
        loop.call_at(1.0, ran.append, number)
        loop.call_at(0.01 * (number % 7), lambda: None)
    loop.run_for(2)
    loop.close()
    assert ran == list(range(20))


def test_a_failing_seed_says_how_to_replay_it() -> None:
    failed = SeedFailed(7, Violation("so"), replace(PLAN, controllers_only=True))
    assert str(failed).endswith("replay: python -m tests.sim 7 --controllers-only")

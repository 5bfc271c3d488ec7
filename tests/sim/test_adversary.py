"""Untrusted peers in the simulation: no other node stops, no invariant breaks, and the good
workload continues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from quorate.quorum.protocol.apis import APIS
from quorate.quorum.rpc.messages import RPCS
from tests.conftest import TOLD_AT_THE_END
from tests.sim.adversary.peer import SENT
from tests.sim.campaign import campaign
from tests.sim.run import Simulation, play, simulation
from tests.sim.scripts.staging import healed, settled
from tests.sim.seeds import Plan, SeedFailed, run_seed, start_adversaries

OF_BROKERS = Plan(adversary=True, faults_s=5.0)
OF_CONTROLLERS = replace(OF_BROKERS, controllers_only=True)
LONG_SEEDS = [range(first, first + 50) for first in range(3_000, 3_400, 50)]

Told = Callable[[str, object], None]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("seeds", "plan"),
    [
        pytest.param(range(1, 4), OF_BROKERS, id="brokers"),
        pytest.param(range(1, 9), OF_CONTROLLERS, id="controllers only"),
        pytest.param(range(4, 9), OF_BROKERS, id="more brokers", marks=pytest.mark.long),
        pytest.param(range(9, 25), OF_CONTROLLERS, id="more controllers", marks=pytest.mark.long),
    ],
)
def test_fixed_seeds(seeds: range, plan: Plan, record_property: Told) -> None:
    check(seeds, plan, record_property)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seeds", LONG_SEEDS, ids=str)
def test_long_seeds(seeds: range, record_property: Told) -> None:
    check(seeds, Plan(adversary=True), record_property)


def check(seeds: range, plan: Plan, told: Told) -> None:
    tally = campaign(seeds, plan)
    told(TOLD_AT_THE_END, tally.line())
    assert not tally.failures, "\n\n".join(each.text for each in tally.failures)


def test_a_seed_decides_what_the_adversaries_do() -> None:
    plan = replace(OF_CONTROLLERS, faults_s=1.0)
    first, again = (run_seed(7, plan).trace_hash for _ in range(2))
    assert first == again
    assert run_seed(7, replace(plan, moves=["c"])).trace_hash != first


def test_moves_left_out_do_not_change_the_others() -> None:
    whole, some = (moves_of(None), moves_of(["c3", "n"]))
    assert {name for name in some if name[0] == "c"} == {"c3"}
    assert whole["c3"] == some["c3"]
    assert len([name for name in set(whole) - set(some) if name[0] == "c"]) > 2


def moves_of(only: list[str] | None) -> dict[str, str]:
    """Return the first line of the trace for each move of the first virtual second."""
    trace: list[str] = []
    plan = Plan(adversary=True, controllers_only=True, faults_s=1.0, moves=only, schedule=())
    run_seed(11, plan, trace)
    found: dict[str, str] = {}
    for line in trace:
        _, name, move, *what = [*line.split(maxsplit=3), "", "", ""]
        if name in ("evil", "faulty"):
            found.setdefault(move.rstrip(":"), what[0])
    return found


def test_they_say_something_of_every_kind() -> None:
    """They send requests of every API, and every node message that a node may get."""
    said: Counter[str] = Counter()
    with simulation("every kind") as stage:
        play(stage, beside_them(stage, 20.0))
        for line in stage.cluster.trace:
            said.update(line.replace(":", " ").split())
    assert {api.name for api in APIS.values()} - set(said) == set()
    assert {cls.__name__ for cls in SENT if cls is not None} - set(said) == set()
    assert len(SENT) == sum(rpc.request is not None for rpc in RPCS) - 1


async def beside_them(stage: Simulation, seconds: float) -> None:
    await settled(stage)
    await start_adversaries(stage, Plan(adversary=True))
    stage.producer("p1", [("data", 0)], pace_s=0.02)
    start_s = stage.loop.time()
    while stage.loop.time() < start_s + seconds:
        before = stage.history.acknowledged
        await stage.until(lambda: stage.history.acknowledged > before, "progress", 6.0)  # noqa: B023
    for each in stage.adversaries:
        each.stop()
    await healed(stage)


def test_a_share_of_new_seeds_has_adversaries() -> None:
    plan = Plan(adversary_share=0.3)
    drawn = [plan.of(seed).adversary for seed in range(1000)]
    assert 250 < sum(drawn) < 350
    assert drawn == [plan.of(seed).adversary for seed in range(1000)]
    assert not any(Plan().of(seed).adversary for seed in range(100))


def test_a_failure_names_the_moves_that_replay_it() -> None:
    plan = Plan(adversary=True, moves=["c1", "n2"])
    failed = SeedFailed(Random(1).randrange(9), ValueError("x"), plan, (), ("c1",))
    assert failed.command.endswith("--adversary --moves c1,n2")

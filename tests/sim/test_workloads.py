"""The workloads keep their promises on a cluster that is well, and each check can fail."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.sim.ablations.table import ABLATIONS
from tests.sim.detect import Results, detect, relevant
from tests.sim.invariants import Violation
from tests.sim.run import Simulation, play, simulation
from tests.sim.shape import Shape
from tests.sim.staging import healed, settled
from tests.sim.workloads.autocreated import AutoCreated
from tests.sim.workloads.offsets import NOTHING, Offsets
from tests.sim.workloads.recreated import NAME, Recreated
from tests.sim.workloads.table import PER_SEED, WORKLOADS, workloads_of
from tests.sim.workloads.trimmed import Trimmed

KEYS = {name: value for each in WORKLOADS for name, value in each.keys.items()}
RUN_S = 6


async def fails(stage: Simulation, work: object, match: str) -> None:
    assert isinstance(work, Offsets | Recreated | Trimmed | AutoCreated)
    with pytest.raises(Violation, match=match):
        await work.check()


async def all_of_them(stage: Simulation) -> None:
    await settled(stage)
    works = [await stage.begin(each, pace_s=0.03) for each in WORKLOADS]
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
    with simulation("workloads", Shape(overrides=KEYS)) as stage:
        play(stage, all_of_them(stage))


def test_each_seed_has_some() -> None:
    drawn = [workloads_of(seed) for seed in range(50)]
    assert all(len(set(each)) == PER_SEED for each in drawn)
    assert {each for some in drawn for each in some} == set(WORKLOADS)


def test_a_removed_safeguard_is_detected() -> None:
    found = detect(ABLATIONS["flush-before-fetch"], seeds=3)
    assert found.seed is not None and "called committed but durable only on" in found.said
    assert f"| flush-before-fetch | {found.seed} |" in found.row()
    assert detect(ABLATIONS["flush-before-fetch"], seeds=0).row().count("not in 0") == 1
    assert ABLATIONS["min-isr"] in relevant() and ABLATIONS["torn-tail"] not in relevant()


def test_a_search_continues_where_an_earlier_command_ended(tmp_path: Path) -> None:
    path, ablation = tmp_path / "found.json", ABLATIONS["leader-flush"]
    first = detect(ablation, seeds=1, save=Results(path).save)
    assert (first.seed, first.tried) == (None, 1)
    again = Results(path).of(ablation)
    assert again == first
    assert detect(ablation, seeds=1, before=again) == first
    further = detect(ablation, seeds=2, before=again)
    assert further.tried == 2 and further.cpu_s > first.cpu_s

"""Random histories of pure cores. The id of a failing test names the seed that repeats it."""

from __future__ import annotations

import pytest

from tests.unit.raft.disk_log import DiskLog
from tests.unit.raft.walk import Walk

SEEDS = 200
STEPS = 400
REAL_LOG_SEEDS = 10
REAL_LOG_STEPS = 300


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_a_random_history_keeps_every_invariant_and_heals(first: int) -> None:
    for seed in range(first, first + 20):
        try:
            Walk(seed, steps=STEPS).run()
        except Exception as error:
            error.add_note(f"Walk({seed}, steps={STEPS}).run()")
            raise


@pytest.mark.parametrize("seed", range(1000, 1000 + REAL_LOG_SEEDS))
def test_a_random_history_on_the_real_log(seed: int) -> None:
    Walk(seed, steps=REAL_LOG_STEPS, log=lambda node_id: DiskLog(seed * 10_000 + node_id)).run()

"""Random histories of pure cores. A failing seed is replayed by its test id."""

from __future__ import annotations

import pytest

from tests.unit.raft.walk import Walk

SEEDS = 200
STEPS = 400


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_a_random_history_keeps_every_invariant_and_heals(first: int) -> None:
    for seed in range(first, first + 20):
        try:
            Walk(seed, steps=STEPS).run()
        except Exception as error:
            error.add_note(f"Walk({seed}, steps={STEPS}).run()")
            raise

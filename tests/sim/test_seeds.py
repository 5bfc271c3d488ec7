"""Many seeds, each a cluster of three controllers and three brokers with faults of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.sim.seeds import Report, SeedFailed, run_seed

FIXED_SEEDS = range(1, 201)
LONG_SEEDS = range(1_000, 2_000)
DETERMINISM_SEED = 4


def outcome(seed: int) -> Report | str:
    try:
        return run_seed(seed)
    except SeedFailed as failed:
        return str(failed)


def run_all(seeds: Iterable[int]) -> None:
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        outcomes = list(pool.map(outcome, seeds, chunksize=5))
    failed = [each for each in outcomes if isinstance(each, str)]
    assert not failed, "\n\n".join(failed)
    reports = [each for each in outcomes if isinstance(each, Report)]
    assert {each.profile for each in reports} == {"calm", "mild", "rough", "hell"}
    assert all(each.acknowledged and each.consumed for each in reports)


@pytest.mark.timeout(600)
def test_fixed_seeds() -> None:
    run_all(FIXED_SEEDS)


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_long_seeds() -> None:
    run_all(LONG_SEEDS)


def trace_hash(hash_seed: str) -> str:
    """In a process of its own, where sets of strings have another order."""
    code = f"from tests.sim.seeds import run_seed; print(run_seed({DETERMINISM_SEED}).trace_hash)"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_seed_decides_everything() -> None:
    here = run_seed(DETERMINISM_SEED).trace_hash
    assert here == run_seed(DETERMINISM_SEED).trace_hash
    assert {trace_hash("0"), trace_hash("12345")} == {here}
    assert run_seed(DETERMINISM_SEED + 1).trace_hash != here

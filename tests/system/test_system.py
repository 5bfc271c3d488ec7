"""Two minutes of faults on real processes, by a new seed each time; 15 seconds of a fixed one in
`make test`. QUORATE_SYSTEM_SEED replays a seed: its faults come again, the timing does not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.system.nodes import HurtCluster
from tests.system.run import run, say_on_stdout

FIXED_SEED = 1


def run_seed(root: Path, seed: int, seconds: float) -> None:
    say_on_stdout(f"QUORATE_SYSTEM_SEED={seed}")
    cluster = HurtCluster(root / "cluster")
    try:
        report = run(seed, seconds, say_on_stdout, cluster)
    finally:
        cluster.stop()
    say_on_stdout(report)


@pytest.mark.clients
@pytest.mark.timeout(300)
def test_fifteen_seconds_of_faults(tmp_path: Path) -> None:
    run_seed(tmp_path, FIXED_SEED, 15)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_two_minutes_of_faults(tmp_path: Path) -> None:
    seed = int(os.environ.get("QUORATE_SYSTEM_SEED", time.time_ns() // 1_000_000))
    run_seed(tmp_path, seed, 120)

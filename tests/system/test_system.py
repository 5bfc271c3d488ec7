"""Two minutes of faults on real processes, by a new seed each time; 15 seconds of a fixed one in
`make test`. QUORATE_SYSTEM_SEED replays a seed: its faults come again, the timing does not.

Disks and links are hurt, too, in the runs whose names say so. Of these, the run with five requests
in flight accepts duplicates, which librdkafka then writes (its issue 4953), but no lost record."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.system.faulty_nodes import FaultyCluster
from tests.system.nodes import HurtCluster
from tests.system.run import run, say_on_stdout

FIXED_SEED = 5
LONG_S = 120.0


def run_seed(cluster: HurtCluster, seed: int, seconds: float, in_flight: int = 1) -> None:
    say_on_stdout(f"QUORATE_SYSTEM_SEED={seed}")
    try:
        report = run(seed, seconds, say_on_stdout, cluster, in_flight)
    finally:
        cluster.stop()
    say_on_stdout(report)


@pytest.mark.clients
@pytest.mark.timeout(300)
def test_fifteen_seconds_of_faults(tmp_path: Path) -> None:
    run_seed(HurtCluster(tmp_path / "cluster"), FIXED_SEED, 15)


def new_seed() -> int:
    return int(os.environ.get("QUORATE_SYSTEM_SEED", time.time_ns() // 1_000_000))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_two_minutes_of_faults(tmp_path: Path) -> None:
    run_seed(HurtCluster(tmp_path / "cluster"), new_seed(), LONG_S)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("in_flight", [1, 5])
def test_two_minutes_of_faults_also_of_disks_and_links(tmp_path: Path, in_flight: int) -> None:
    run_seed(FaultyCluster(tmp_path / "cluster"), new_seed(), LONG_S, in_flight)

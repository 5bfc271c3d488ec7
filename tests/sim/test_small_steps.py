"""The simulation with very small steps.

The images and logs of simulated clusters are small. A large cluster spends a long time in the load
of a snapshot, or in the recovery of a broker's logs. Elections, commits, newer snapshots and
crashes happen meanwhile. Small steps make the simulation spend as long there.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from quorate.broker.replication.partitions.partition_opener import PartitionOpener
from quorate.quorum.log.opening import recovery
from quorate.quorum.metadata import pace as steps
from quorate.quorum.node.replica import committed_image
from tests.sim.seeds import run_seed

SEEDS = range(400, 403)


@pytest.mark.timeout(300)
def test_seeds_in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEP_ENTRIES", 2)
    monkeypatch.setattr(committed_image, "SLICE_BYTES", 200)
    monkeypatch.setattr(recovery, "STEP_BYTES", 500)
    count: Counter[str] = Counter()
    schedule = committed_image.CommittedImage._schedule
    go_on = PartitionOpener._run

    def preparing(self: committed_image.CommittedImage) -> None:
        count["preparation"] += self._preparing is not None
        schedule(self)

    def opening(self: PartitionOpener, *steps: Any) -> None:
        count["recovery"] += 1
        go_on(self, *steps)

    monkeypatch.setattr(committed_image.CommittedImage, "_schedule", preparing)
    monkeypatch.setattr(PartitionOpener, "_run", opening)
    for seed in SEEDS:
        run_seed(seed)
    assert count["preparation"] > 100
    assert count["recovery"] > 100

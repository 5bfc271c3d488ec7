"""The images and logs of simulated clusters are small, so here every step is: what a survey of a
snapshot, or the recovery of a broker's logs, leaves open for long in a large cluster, elections,
commits, newer snapshots and crashes meet."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from quorate.broker.replication.opening import Opening
from quorate.quorum.log import recovery
from quorate.quorum.metadata import steps
from quorate.quorum.node import committed_image
from tests.sim.seeds import run_seed

SEEDS = range(400, 403)


@pytest.mark.timeout(300)
def test_seeds_in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEP_ENTRIES", 2)
    monkeypatch.setattr(committed_image, "SLICE_BYTES", 200)
    monkeypatch.setattr(recovery, "STEP_BYTES", 500)
    count: Counter[str] = Counter()
    schedule = committed_image.CommittedImage._schedule
    go_on = Opening._go_on

    def surveying(self: committed_image.CommittedImage) -> None:
        count["survey"] += self._surveying is not None
        schedule(self)

    def opening(self: Opening, *steps: Any) -> None:
        count["recovery"] += 1
        go_on(self, *steps)

    monkeypatch.setattr(committed_image.CommittedImage, "_schedule", surveying)
    monkeypatch.setattr(Opening, "_go_on", opening)
    for seed in SEEDS:
        run_seed(seed)
    assert count["survey"] > 100
    assert count["recovery"] > 100

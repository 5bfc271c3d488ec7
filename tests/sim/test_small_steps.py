"""The images of simulated clusters are small, so here every step is: what a survey of a snapshot
leaves open for long in a large cluster, elections, commits, newer snapshots and crashes meet."""

from __future__ import annotations

import pytest

from quorate.quorum import committed_image
from quorate.quorum.metadata import steps
from tests.sim.seeds import run_seed

SEEDS = range(400, 403)


@pytest.mark.timeout(300)
def test_seeds_in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEP_ENTRIES", 2)
    monkeypatch.setattr(committed_image, "SLICE_BYTES", 200)
    paused = 0
    schedule = committed_image.CommittedImage._schedule

    def counting(self: committed_image.CommittedImage) -> None:
        nonlocal paused
        paused += self._surveying is not None
        schedule(self)

    monkeypatch.setattr(committed_image.CommittedImage, "_schedule", counting)
    for seed in SEEDS:
        run_seed(seed)
    assert paused > 100

"""Inferred causes never contradict the true ones. The same histories are written with their causes
and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorate.quorum.analytics.replay import inference
from quorate.quorum.analytics.replay.story import Event, explain
from quorate.quorum.metadata.records import MetadataRecord
from tests.unit.analytics.logs import write_segment
from tests.unit.analytics.ruled import Ruled, Varied

SEEDS = range(12)
FENCED, BEHIND = ("was fenced",), ("had fallen behind",)
REASSIGNED = ("reassignment", "were reassigned")
CERTAIN: dict[str, tuple[str, ...]] = {
    "topic-created": ("created with its topic",),
    "partition-growth": ("number of partitions",),
    "session-expired": FENCED,
    "connection-lost": FENCED,
    "fence-requested": FENCED,
    "shutdown-complete": FENCED,
    "controlled-shutdown": ("began to shut down", "was fenced"),
    "unregistered": ("was unregistered",),
    "session-replaced": ("registered again",),
    "unclean-restart": ("registered again",),
    "broker-unfenced": ("was unfenced", "preferred leader"),
    "isr-expand": ("had caught up", "finished its recovery", *BEHIND),  # all ISRs are proposed so
    "isr-shrink-lag": BEHIND,
    "preferred-election": ("preferred leader",),
    "leader-imbalance": ("preferred leader",),
    "unclean-election": ("uncleanly",),
    "last-known-leader": ("the last leader",),
    "reassignment-start": REASSIGNED,
    "reassignment-step": ("had caught up", "finished its recovery", *REASSIGNED),
    "reassignment-complete": REASSIGNED,
    "reassignment-cancel": REASSIGNED,
}
"""Cause -> what may be inferred in its place."""


class Silent(Ruled):
    """A history that is written without causes."""

    def write(self, records: Sequence[MetadataRecord]) -> None:
        super().write([without_cause(each) for each in records])


class SilentVaried(Silent, Varied):
    """A history with more states, written without causes."""


def without_cause(record: MetadataRecord) -> MetadataRecord:
    silent: Any = record
    return replace(silent, cause="") if hasattr(record, "cause") else record


def events(directory: Path, data: bytes) -> dict[tuple[int, str, int], Event]:
    write_segment(directory, 0, data)
    return {
        (event.offset, story.topic_id, story.partition): event
        for name in (f"t{number}" for number in range(6))
        if f"{name}".encode() in data
        for story in explain(directory, name).told
        for event in story.events
    }


@pytest.mark.parametrize(("spoken", "unspoken"), [(Ruled, Silent), (Varied, SilentVaried)])
def test_what_is_inferred_never_contradicts_the_cause(
    spoken: type[Ruled], unspoken: type[Silent], tmp_path: Path
) -> None:
    inferred = set()
    for seed in SEEDS:
        told = events(tmp_path / f"{seed}", spoken(seed).run(300))
        silent = events(tmp_path / f"{seed}-silent", unspoken(seed).run(300))
        assert told.keys() == silent.keys()
        for at, event in told.items():
            guess = silent[at]
            assert guess.cause is None and guess.what == event.what
            if event.cause is not None and guess.inferred:
                allowed = CERTAIN[event.cause]
                assert any(each in guess.why for each in allowed), (seed, at, event, guess)
                inferred.add(event.cause)
    assert len(inferred) > 12, inferred


def test_a_batch_that_may_be_a_part_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(inference, "MAX_CERTAIN_RECORDS", 1)
    told = events(tmp_path, Silent(1).run(100))
    assert {event.why for event in told.values() if event.inferred} <= {
        "The partition was created with its topic.",
        "The number of partitions of the topic was raised.",
        "The eligible leader replicas were cleared: their feature or a config changed.",
    }

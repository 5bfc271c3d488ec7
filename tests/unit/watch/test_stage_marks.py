"""StageMarks and RecentChanges: times by offset, and their bounds."""

from __future__ import annotations

import sys

import pytest

from quorate.quorum.metadata.records import (
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
)
from quorate.quorum.watch import recent_changes, stage_marks
from quorate.quorum.watch.recent_changes import DecidedChanges, RecentChanges, is_reported
from quorate.quorum.watch.stage_marks import StageMarks


def test_a_mark_gives_the_time_of_every_record_that_it_covers() -> None:
    marks = StageMarks()
    marks.reach(3, 100)
    marks.reach(10, 140)
    assert [marks.time_of(offset) for offset in (0, 2, 3, 9, 10)] == [100, 100, 140, 140, None]
    assert marks.since(3) == [(10, 140)]
    assert marks.end_offset == 10


def test_a_stage_does_not_move_back() -> None:
    marks = StageMarks()
    marks.reach(10, 100)
    marks.reach(10, 200)
    marks.reach(4, 300)
    assert marks.since(0) == [(10, 100)]


def test_movements_within_one_millisecond_share_a_mark() -> None:
    marks = StageMarks()
    for end_offset in range(1, 50):
        marks.reach(end_offset, 7)
    assert marks.since(0) == [(49, 7)]


def test_the_oldest_marks_are_removed_and_their_times_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stage_marks, "MAX_MARKS", 3)
    marks = StageMarks()
    for end_offset in range(1, 6):
        marks.reach(end_offset, 100 + end_offset)
    assert marks.since(0) == [(3, 103), (4, 104), (5, 105)]
    assert marks.time_of(1) is None, "the mark is gone, and no later one may stand for it"
    assert marks.time_of(2) == 103


def test_marks_are_no_objects() -> None:
    """Small objects that stay would keep the memory of a flood in which they were made."""
    marks = StageMarks()
    before = sys.getallocatedblocks()
    for number in range(1, 1_000):
        marks.reach(number + 10**6, number + 10**6)
    assert sys.getallocatedblocks() - before < 50


def decided(first_offset: int, count: int) -> DecidedChanges:
    return DecidedChanges(first_offset, [PartitionChangeRecord(leader=4)] * count, requested_ms=5)


def test_a_new_topic_makes_no_change_give_way() -> None:
    recent = RecentChanges()
    recent.appended([DecidedChanges(0, [NoOpRecord(), PartitionRecord()], requested_ms=5)], 20)
    assert (recent.kept, recent.since(0)) == (0, [])
    mixed = [NoOpRecord(), PartitionChangeRecord(isr=(4,))]
    recent.appended([DecidedChanges(2, mixed, requested_ms=5)], 30)
    assert recent.kept == 2


def test_the_oldest_changes_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_changes, "MAX_CHANGES", 10)
    recent = RecentChanges()
    recent.appended([decided(0, 4), decided(4, 4)], 20)
    recent.appended([decided(8, 4)], 30)
    assert [(each.first_offset, each.appended_ms) for each in recent.since(0)] == [(4, 20), (8, 30)]
    assert recent.kept == 8
    recent.appended([decided(12, 25)], 40)
    (only,) = recent.since(0)
    assert (only.first_offset, len(only.records), recent.kept) == (27, 10, 10)


def test_changes_that_may_be_replaced_are_discarded() -> None:
    recent = RecentChanges()
    recent.appended([decided(0, 4), decided(4, 4), decided(8, 4)], 20)
    recent.discard_from(6)
    assert [each.first_offset for each in recent.since(0)] == [0]
    assert recent.kept == 4
    assert recent.since(4) == []


@pytest.mark.parametrize(
    ("record", "reported"),
    [
        (PartitionChangeRecord(leader=4), True),
        (PartitionChangeRecord(isr=(4,)), True),
        (PartitionChangeRecord(adding_replicas=()), True),
        (PartitionChangeRecord(removing_replicas=(4,)), True),
        (PartitionChangeRecord(replicas=(4,)), True),
        (PartitionChangeRecord(leader_recovery_state=0), False),
        (PartitionChangeRecord(directories=()), False),
        (PartitionRecord(), False),
    ],
)
def test_changes_of_leaders_isrs_and_replicas_are_reported(
    record: MetadataRecord, reported: bool
) -> None:
    assert is_reported(record) is reported

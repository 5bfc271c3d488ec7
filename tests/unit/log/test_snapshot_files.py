"""Snapshot files: a snapshot in the list is durable, and a dropped part does not come back."""

from __future__ import annotations

import random

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.log.snapshots.snapshots import SnapshotFiles
from tests.sim.world.disk import SimDisk

PATH = "/data/__cluster_metadata-0"
SNAPSHOT = EpochOffset(2, 40)


@pytest.fixture
def disk() -> SimDisk:
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    return disk


def test_a_frozen_snapshot_is_durable_under_its_name(disk: SimDisk) -> None:
    """The leader is notified and the log below the snapshot is removed as soon as `freeze`
    returns."""
    files = SnapshotFiles.open(disk, PATH)
    files.write_part(SNAPSHOT, 0, b"whole")
    files.freeze(SNAPSHOT)
    files = SnapshotFiles.open(disk.crash(forgetful=True), PATH)
    assert list(files) == [SNAPSHOT]
    assert b"".join(files.chunks(SNAPSHOT)) == b"whole"


def test_a_dropped_part_is_received_from_its_start(disk: SimDisk) -> None:
    """The part was damaged. More bytes at its end would not repair it."""
    files = SnapshotFiles.open(disk, PATH)
    files.write_part(SNAPSHOT, 0, b"damaged")
    files.drop_part(SNAPSHOT)
    assert disk.list(PATH) == []
    assert files.part_bytes(SNAPSHOT) == 0


def test_a_damaged_head_is_long_ago(disk: SimDisk) -> None:
    """Seed 300380 of the simulation with controllers only: the node stopped at each check of
    retention."""
    files = SnapshotFiles.open(disk, PATH)
    files.write_part(SNAPSHOT, 0, b"misdirected" * 20)
    files.added(SNAPSHOT, files.freeze(SNAPSHOT))
    assert files.timestamp_of(SNAPSHOT) == 0


def test_an_empty_snapshot_is_long_ago(disk: SimDisk) -> None:
    files = SnapshotFiles.open(disk, PATH)
    files.write_part(SNAPSHOT, 0, b"")
    files.added(SNAPSHOT, files.freeze(SNAPSHOT))
    assert files.timestamp_of(SNAPSHOT) == 0


BATCHES = [
    bytes(
        build_value_batch([value], base_offset=offset, leader_epoch=SNAPSHOT.epoch, timestamp_ms=7)
    )
    for offset, value in enumerate((b"first", b"x" * 130, b"last"))
]
WHOLE = b"".join(BATCHES)


def stored(disk: SimDisk) -> SnapshotFiles:
    files = SnapshotFiles.open(disk, PATH)
    files.write_part(SNAPSHOT, 0, WHOLE)
    files.added(SNAPSHOT, files.freeze(SNAPSHOT))
    return files


def test_a_piece_begins_anywhere_and_has_any_size(disk: SimDisk) -> None:
    files = stored(disk)
    for position in reversed(range(len(WHOLE))):  # as after a restart, and for two at once
        for size in (1, 60, 200, 1000):
            assert files.read(SNAPSHOT, position, size) == WHOLE[position : position + size]


def test_no_piece_of_a_damaged_batch_is_given_away(disk: SimDisk) -> None:
    """A damaged snapshot was served, refused by the follower, and fetched again until the next
    snapshot."""
    files = stored(disk)
    first = len(BATCHES[0])
    assert files.read(SNAPSHOT, 0, len(WHOLE)) == WHOLE
    for byte in range(first, first + len(BATCHES[1])):
        disk.flip(files.path(SNAPSHOT), byte, 0x10)
        for before in (files, SnapshotFiles.open(disk, PATH)):
            before.damaged.clear()
            assert before.read(SNAPSHOT, 0, first) == BATCHES[0]
            assert not before.damaged
            assert before.read(SNAPSHOT, first + 70, 10) is None, byte
            assert before.damaged == {SNAPSHOT}
            assert before.read(SNAPSHOT, 0, first) is None, "nor what else it holds"
        disk.flip(files.path(SNAPSHOT), byte, 0x10)


def test_a_snapshot_that_lost_its_end_is_damaged(disk: SimDisk) -> None:
    files = stored(disk)
    disk.open(files.path(SNAPSHOT)).truncate(len(WHOLE) - 1)
    assert files.read(SNAPSHOT, 0, len(BATCHES[0])) == BATCHES[0]
    assert files.read(SNAPSHOT, 0, len(WHOLE)) is None

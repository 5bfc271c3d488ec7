"""Snapshot files: a name that counts is durable, and what is dropped does not come back."""

from __future__ import annotations

import random

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.snapshots import SnapshotFiles
from tests.sim.disk import SimDisk

PATH = "/data/__cluster_metadata-0"
SNAPSHOT = EpochOffset(2, 40)


@pytest.fixture
def disk() -> SimDisk:
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    return disk


def test_a_frozen_snapshot_is_durable_under_its_name(disk: SimDisk) -> None:
    """The leader is told, and the log below it goes, as soon as `freeze` returns."""
    files = SnapshotFiles.open(disk, PATH)
    files.write_part(SNAPSHOT, 0, b"whole")
    files.freeze(SNAPSHOT)
    files = SnapshotFiles.open(disk.crash(forgetful=True), PATH)
    assert list(files) == [SNAPSHOT]
    assert b"".join(files.chunks(SNAPSHOT)) == b"whole"


def test_a_dropped_part_is_received_from_its_start(disk: SimDisk) -> None:
    """It was not whole: going on behind its bytes would never make it so."""
    files = SnapshotFiles.open(disk, PATH)
    files.write_part(SNAPSHOT, 0, b"damaged")
    files.drop_part(SNAPSHOT)
    assert disk.list(PATH) == []
    assert files.part_bytes(SNAPSHOT) == 0


def test_a_damaged_head_is_long_ago(disk: SimDisk) -> None:
    """Controllers-only seed 300380: at each look of retention the node stopped."""
    files = SnapshotFiles.open(disk, PATH)
    files.write_part(SNAPSHOT, 0, b"misdirected" * 20)
    files.added(SNAPSHOT, files.freeze(SNAPSHOT))
    assert files.timestamp_of(SNAPSHOT) == 0

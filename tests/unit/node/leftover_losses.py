"""Losses of files that an interrupted operation left, or that were set aside.

Each function removes such a file and compares the effect with docs/protocol/data-directory.md."""

from __future__ import annotations

import random

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.files.checkpoints import EPOCHS_NAME
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME
from quorate.quorum.log.files.names import (
    CLEANED_SUFFIX,
    DAMAGED_SUFFIX,
    DELETED_SUFFIX,
    PART_SUFFIX,
    SNAPSHOT_DELETED_SUFFIX,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
)
from quorate.quorum.log.log import Log
from quorate.quorum.log.snapshots.snapshots import SnapshotFiles, snapshot_name
from quorate.quorum.node.opening.meta_properties import META_COPY, META_FILE
from quorate.quorum.node.replica.metadata_mark import MARK_NAME
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME
from quorate.quorum.raft.generation import FILE_NAME
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import batch, entries
from tests.unit.log.test_leftovers import PATH, name, opened
from tests.unit.node.metadata_disk import DIRECTORY
from tests.unit.node.test_metadata_mark import ME, METADATA, ROOT, lived, start

PART = EpochOffset(3, 40)
SMALL_FILES = (
    *(f"{ROOT}/{each}" for each in (META_FILE, META_COPY, MARK_NAME)),
    *(f"{METADATA}/{each}" for each in (KAFKA_NAME, COPY_NAME, FILE_NAME)),
    *(f"{METADATA}/{each}" for each in (FLUSHED_MARKER_NAME, EPOCHS_NAME)),
)


def a_temporary_file() -> None:
    """The file itself keeps its earlier content, and its next write replaces the rest."""
    disk = lived()
    for path in SMALL_FILES:
        disk.open(path + TEMPORARY_SUFFIX, create=True).pwrite(b"half of it", 0)
    found = start(disk)
    assert not found.lost and found.storage.log.end_offset == 4
    found.election_file.save(Election(4, ME))
    found.storage.close()
    assert not disk.exists(f"{METADATA}/{KAFKA_NAME}{TEMPORARY_SUFFIX}"), "it was replaced"
    for path in SMALL_FILES:
        if disk.exists(path + TEMPORARY_SUFFIX):
            disk.remove(path + TEMPORARY_SUFFIX)
    again = start(disk)
    assert not again.lost and again.election.epoch == 4


def a_cleaned_file() -> None:
    """A start removes it itself, and the segments that it was made of are complete."""
    files = {name(0): batch(0, 0, [b"old 0", b"old 1"])}
    for more in ({}, {name(0, f".log{CLEANED_SUFFIX}"): b"half"}):
        disk, log = opened({**files, **more})
        assert entries(log) == [(0, b"old 0"), (0, b"old 1")]
        assert not [each for each in disk.list(PATH) if each.endswith(CLEANED_SUFFIX)]


def a_swap_file() -> None:
    """Before its sources are renamed, they have the records. Afterwards nothing has them."""
    sources = {name(0): batch(0, 0, [b"old 0"]), name(1): batch(1, 0, [b"old 1"])}
    rest = {name(2): batch(2, 0, [b"next"])}
    swap = {name(0, f".log{SWAP_SUFFIX}"): batch(0, 0, [b"new 0", b"new 1"])}
    _, log = opened({**sources, **rest})
    assert entries(log) == [(0, b"old 0"), (0, b"old 1"), (0, b"next")]
    renamed = {each + DELETED_SUFFIX: content for each, content in sources.items()}
    _, log = opened({**renamed, **swap, **rest})
    assert entries(log) == [(0, b"new 0"), (0, b"new 1"), (0, b"next")]
    _, log = opened({**renamed, **rest})
    assert log.start_offset == 2, "the replica lost its beginning"


def a_deleted_file() -> None:
    """A start removes it itself."""
    for more in ({}, {name(0, f".log{DELETED_SUFFIX}"): b"x"}):
        disk, log = opened({name(1): batch(1, 0, [b"a"]), **more})
        assert entries(log) == [(0, b"a")]
        assert not [each for each in disk.list(PATH) if each.endswith(DELETED_SUFFIX)]


def with_part() -> tuple[SimDisk, str]:
    disk = SimDisk(random.Random(0))
    disk.make_dirs(DIRECTORY)
    files = SnapshotFiles.open(disk, DIRECTORY)
    files.write_part(PART, 0, b"x" * 70)
    files.close()
    return disk, f"{DIRECTORY}/{snapshot_name(PART)}{PART_SUFFIX}"


def a_part_of_a_snapshot() -> None:
    """The node receives the snapshot from its start, not from the end of the part."""
    disk, path = with_part()
    assert SnapshotFiles.open(disk, DIRECTORY).part_bytes(PART) == 70
    disk.remove(path)
    files = SnapshotFiles.open(disk, DIRECTORY)
    assert files.part_bytes(PART) == 0 and files.latest is None


def a_deleted_snapshot() -> None:
    """A start removes it itself."""
    disk, _ = with_part()
    path = f"{DIRECTORY}/{snapshot_name(PART).partition('.')[0]}{SNAPSHOT_DELETED_SUFFIX}"
    disk.open(path, create=True)
    assert SnapshotFiles.open(disk, DIRECTORY).latest is None
    assert not disk.exists(path)
    assert SnapshotFiles.open(disk, DIRECTORY).latest is None


def a_damaged_file() -> None:
    """No node reads it: the log and the snapshots are the same with it and without it."""
    aside = (name(0, f".log{DAMAGED_SUFFIX}"), snapshot_name(PART) + DAMAGED_SUFFIX)
    disk, log = opened({name(1): batch(1, 0, [b"a"]), **dict.fromkeys(aside, b"damaged")})
    assert entries(log) == [(0, b"a")]
    assert SnapshotFiles.open(disk, PATH).latest is None
    assert all(disk.exists(f"{PATH}/{each}") for each in aside), "it is kept for an operator"
    log.close()
    for each in aside:
        disk.remove(f"{PATH}/{each}")
    assert entries(Log.open(disk, PATH, log.settings, wall_ms=0, clean=False)) == [(0, b"a")]

"""Leftover files of interrupted deletions and compactions, and the choice of expired segments."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.names import offset_of
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.retention import expired_segments, expired_snapshots
from quorate.quorum.log.segments.segment_swap import discard_cleaned
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import batch, entries

PATH = "/d/t-0"


def opened(files: dict[str, bytes]) -> tuple[SimDisk, Log]:
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    for name, content in files.items():
        disk.open(f"{PATH}/{name}", create=True).pwrite(content, 0)
    return disk, Log.open(disk, PATH, LogSettings(), wall_ms=0, clean=False)


def name(offset: int, suffix: str = ".log") -> str:
    return f"{offset:020}{suffix}"


def test_deleted_files_and_orphaned_indexes_go() -> None:
    disk, log = opened(
        {
            name(0): batch(0, 0, [b"a"]),
            name(0, ".log.deleted"): b"x",
            name(7, ".index"): b"x" * 8,
            name(7, ".timeindex"): b"x" * 12,
            name(9, "-0000000001.checkpoint.deleted"): b"snapshot",
            name(1, ".snapshot"): b"producers",
            "quorum-state": b"{}",
        }
    )
    assert disk.list(PATH) == [
        name(0),
        name(1, ".snapshot"),
        name(9, "-0000000001.checkpoint.deleted"),
        "quorum-state",
    ]
    assert entries(log) == [(0, b"a")]


def test_a_finished_swap_replaces_the_segments_it_covers() -> None:
    disk, log = opened(
        {
            name(0): batch(0, 0, [b"old 0"]),
            name(1): batch(1, 0, [b"old 1"]),
            name(2): batch(2, 0, [b"next"]),
            name(0, ".log.swap"): batch(0, 0, [b"new 0", b"new 1"]),
        }
    )
    assert entries(log) == [(0, b"new 0"), (0, b"new 1"), (0, b"next")]
    assert [each for each in disk.list(PATH) if each.endswith(".log")] == [name(0), name(2)]


def test_two_finished_swaps_replace_all_that_either_covers() -> None:
    _, log = opened(
        {
            name(0): batch(0, 0, [b"old 0"]),
            name(1): batch(1, 0, [b"old 1", b"old 2"]),
            name(3): batch(3, 0, [b"old 3"]),
            name(4): batch(4, 0, [b"next"]),
            name(0, ".log.swap"): batch(0, 0, [b"new 0", b"new 1"]),
            name(2, ".log.swap"): batch(2, 0, [b"new 2", b"new 3"]),
        }
    )
    assert [value for _, value in entries(log)] == [b"new %d" % each for each in range(4)] + [
        b"next"
    ]


def test_a_swap_that_was_not_decided_goes_with_its_cleaned_files() -> None:
    """KAFKA-6264."""
    _, log = opened(
        {
            name(0): batch(0, 0, [b"old 0", b"old 1"]),
            name(0, ".log.cleaned"): b"half",
            name(1, ".log.swap"): batch(1, 0, [b"new 1"]),
        }
    )
    assert entries(log) == [(0, b"old 0"), (0, b"old 1")]


class Stub(NamedTuple):
    next_offset: int
    size: int
    max_timestamp_ms: int


SEGMENTS = [Stub(10, 100, 1_000), Stub(20, 100, 2_000), Stub(30, 100, 3_000), Stub(30, 0, -1)]


@pytest.mark.parametrize(
    ("settings", "start", "high_watermark", "wall_ms", "count"),
    [
        (LogSettings(retention_ms=500), 0, 30, 1_500, 0),
        (LogSettings(retention_ms=500), 0, 30, 1_501, 1),
        (LogSettings(retention_ms=500), 0, 30, 9_000, 3),
        (LogSettings(retention_ms=500), 0, 29, 9_000, 2),
        (LogSettings(retention_ms=-1), 0, 30, 9_000, 0),
        (LogSettings(retention_ms=-1), 20, 30, 9_000, 2),
        (LogSettings(retention_ms=-1, retention_bytes=300), 0, 30, 0, 0),
        (LogSettings(retention_ms=-1, retention_bytes=201), 0, 30, 0, 0),
        (LogSettings(retention_ms=-1, retention_bytes=200), 0, 30, 0, 1),
        (LogSettings(retention_ms=-1, retention_bytes=0), 0, 30, 0, 3),
        (LogSettings(retention_ms=-1, retention_bytes=0), 0, 15, 0, 1),
    ],
)
def test_retention_takes_the_oldest_below_the_high_watermark(
    settings: LogSettings, start: int, high_watermark: int, wall_ms: int, count: int
) -> None:
    assert (
        expired_segments(
            SEGMENTS,
            settings,
            start_offset=start,
            high_watermark=high_watermark,
            wall_ms=wall_ms,
        )
        == count
    )


SNAPSHOTS = [(EpochOffset(1, offset), 100, offset) for offset in (1_000, 2_000, 3_000)]


@pytest.mark.parametrize(
    ("retention_bytes", "retention_ms", "wall_ms", "count"),
    [
        (-1, -1, 9_000, 0),
        (-5, -5, 9_000, 0),  # every negative number means no limit, as in Kafka
        (800, -1, 0, 0),  # 500 of the log, 300 of snapshots
        (799, -1, 0, 1),
        (700, -1, 0, 1),
        (699, -1, 0, 2),
        (0, -1, 0, 2),
        (-1, 500, 1_500, 0),
        (-1, 500, 1_501, 1),
        (-1, 500, 9_000, 2),
    ],
)
def test_one_snapshot_always_stays(
    retention_bytes: int, retention_ms: int, wall_ms: int, count: int
) -> None:
    assert (
        expired_snapshots(
            SNAPSHOTS,
            500,
            retention_bytes=retention_bytes,
            retention_ms=retention_ms,
            wall_ms=wall_ms,
        )
        == count
    )


@pytest.mark.parametrize("digit", ["\N{ARABIC-INDIC DIGIT ZERO}", "\N{SUPERSCRIPT TWO}"])
def test_a_name_of_other_digits_is_no_segment(digit: str) -> None:
    """`int` reads the first digit as 0, and raises ValueError for the other one."""
    assert offset_of(digit * 20 + ".log") is None
    _, log = opened({name(0): batch(0, 0, [b"a"]), digit * 20 + ".log": b""})
    assert entries(log) == [(0, b"a")]


def test_a_swap_without_valid_headers_is_named() -> None:
    """The error named neither the file nor the operator's choices."""
    with pytest.raises(CorruptLog, match=rf"{name(0)}\.swap: damaged at byte 0, offset 0"):
        opened({name(0): batch(0, 0, [b"a"]), name(0, ".log.swap"): bytes(100)})


def test_the_deletion_of_a_log_may_overtake_the_removal_of_cleaned_files() -> None:
    """They run in different threads. An error would stop the node."""
    disk, _ = opened({name(0): batch(0, 0, [b"a"])})
    for suffix in (".index.cleaned", ".log.cleaned"):
        disk.open(f"{PATH}/{name(0, suffix)}", create=True)

    def before(operation: str, path: str) -> None:
        if operation == "remove":
            disk.before = lambda operation, path: None
            disk.rename(PATH, f"{PATH}.0-delete")

    disk.before = before
    discard_cleaned(disk, PATH)
    assert disk.list("/d") == ["t-0.0-delete"]

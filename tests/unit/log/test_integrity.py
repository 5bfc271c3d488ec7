"""Reads return the bytes that were appended: a read finds damage that no start looks for."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.log.checking import integrity
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import append

DIRECTORY = "/data/t-0"
SETTINGS = LogSettings(segment_bytes=600, index_interval_bytes=100)
COUNT = 24


def written() -> Log:
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    log = Log.open(disk, DIRECTORY, SETTINGS, wall_ms=0, clean=True)
    for number in range(COUNT):
        append(log, number // 8, b"%02d" % number)
    log.close()
    return log


def reopened(disk: SimDisk) -> Log:
    return Log.open(
        disk.restart(), DIRECTORY, SETTINGS, wall_ms=0, clean=False, recovery_point=COUNT
    )


def place_of(disk: SimDisk, offset: int) -> tuple[str, int, int]:
    """Return path, position and size of the batch that begins at `offset`."""
    for path in disk.files(DIRECTORY):
        if path.endswith(".log"):
            for position, header in batches(disk.content(path)):
                if header.base_offset == offset:
                    return path, position, header.size_bytes
    raise AssertionError(offset)


def flipped(at: int) -> Callable[[SimDisk, int], None]:
    def damage(disk: SimDisk, offset: int) -> None:
        path, position, _ = place_of(disk, offset)
        disk.flip(path, position + at)

    return damage


def another_batch(disk: SimDisk, offset: int) -> None:
    """Overwrite a batch by a valid one of another offset, as a misdirected write does."""
    path, position, size = place_of(disk, offset)
    source, start, _ = place_of(disk, COUNT - 1)
    disk.open(path).pwrite(disk.content(source)[start : start + size], position)


def zeros(disk: SimDisk, offset: int) -> None:
    path, position, size = place_of(disk, offset)
    disk.open(path).pwrite(bytes(size), position)


DAMAGES = {
    "payload": flipped(62),
    "offset": flipped(7),
    "length": flipped(10),
    "epoch": flipped(15),
    "magic": flipped(16),
    "another batch": another_batch,
    "lost": zeros,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("offset", [0, 3, 9])
def test_damage_is_handed_out_to_nobody(
    damage: Callable[[SimDisk, int], None], offset: int
) -> None:
    """A read from the damaged offset, or across it, fails. Other segments are readable."""
    disk = written().disk
    assert isinstance(disk, SimDisk)
    damage(disk, offset)
    log = reopened(disk)
    path, position, _ = place_of(written().disk, offset)  # type: ignore[arg-type]
    with pytest.raises(CorruptLog):
        log.read(offset, 10_000)
    found = log.first_damage()
    assert found is not None and (found.path, found.position, found.offset) == (
        path,
        position,
        offset,
    )
    assert log.first_damage(log._segments.active.path) is None
    assert log.read(COUNT - 2, 10_000)


def test_what_was_appended_a_moment_ago_is_not_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Recent batches come from the page cache. After more appends they may come from the disk."""
    monkeypatch.setattr(integrity, "RECENT_BYTES", 1_000)
    log = reopened(written().disk)  # type: ignore[arg-type]
    assert log._recent.offset == COUNT
    for number in range(100):
        append(log, 3, b"%02d" % number)
        behind = (log.end_offset - log._recent.offset) * (log.size_bytes / log.end_offset)
        assert behind < 2_200 or log._recent.offset == COUNT
    assert log._recent.offset > COUNT + 50
    looked: list[int] = []
    monkeypatch.setattr(
        "quorate.quorum.log.log_reader.check_read",
        lambda *arguments, gaps: looked.append(arguments[2]),
    )
    log.read(log.end_offset - 1, 1)
    assert not looked
    log.read(COUNT + 1, 1)
    assert looked == [COUNT + 1]


def test_the_segment_of_the_last_trusted_record_is_read_at_a_start() -> None:
    """This holds even if the segment ends at the recovery point: after a read that found damage,
    the recovery point is set right behind the damage."""
    disk = written().disk
    assert isinstance(disk, SimDisk)
    bases = sorted(p for p in disk.files(DIRECTORY) if p.endswith(".log"))
    last_of_first = int(bases[1].rpartition("/")[2].removesuffix(".log")) - 1
    path, position, size = place_of(disk, last_of_first)
    assert path == bases[0]
    disk.flip(path, position + size - 1)
    with pytest.raises(CorruptLog, match=f"offset {last_of_first}"):
        Log.open(
            disk.restart(),
            DIRECTORY,
            SETTINGS,
            wall_ms=0,
            clean=False,
            recovery_point=last_of_first + 1,
        )


def test_deleted_records_that_a_killed_process_left_can_be_read() -> None:
    """The epochs were cut at the new log start, which was not written to its checkpoint."""
    log = reopened(disk_of(written()))
    log.advance_start(3)
    append(log, COUNT // 8, b"of a new leader")
    log.flush()  # which saves the epochs
    assert log.epochs.first == EpochOffset(0, 3)
    disk = disk_of(log).restart()
    log = reopened(disk)
    assert log.start_offset == 0 and log.epochs.first == EpochOffset(0, 3)
    for offset in (0, 2, 3, COUNT - 1):
        found = next(header for _, header in batches(log.read(offset, 1)))
        assert (found.base_offset, found.leader_epoch) == (offset, offset // 8)
    disk = disk_of(log).restart()
    flipped(15)(disk, 0)
    with pytest.raises(CorruptLog, match="leader epoch"):
        reopened(disk).read(0, 1)


def disk_of(log: Log) -> SimDisk:
    disk = log._segments._disk
    assert isinstance(disk, SimDisk)
    return disk

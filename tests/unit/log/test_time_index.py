"""Damage to a time index costs time, never records (R51)."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from quorate.quorum.log.batches.batch import BatchHeader, batches
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments import segment as segment_module
from quorate.quorum.log.segments import timestamp_lookup as lookup_module
from quorate.quorum.log.segments.file_removal import remove_segments
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.log.segments.timestamp_lookup import TimestampOffset, look_up_timestamp
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import batch

SETTINGS = LogSettings(segment_bytes=2_000, index_interval_bytes=200)
COUNT = 40
PATH = "/data/t-0"


def opened(disk: SimDisk) -> Log:
    return Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=True)


def closed_log() -> SimDisk:
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    log = opened(disk)
    for number in range(COUNT):
        log.append(batch(number, 0, [b"x" * 50], timestamp_ms=9 * number), wall_ms=0)
    log.close()
    return disk.restart()


def test_no_flipped_bit_hides_a_record_from_its_timestamp() -> None:
    disk = closed_log()
    path = next(f"{PATH}/{name}" for name in disk.list(PATH) if name.endswith(".timeindex"))
    content = disk.content(path)
    assert len(content) > 4 * 12
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        disk.open(path).pwrite(bytes(damaged), 0)
        log = opened(disk)
        for number in range(0, 20, 4):
            found = log.offset_for_timestamp(10 * number - 4)
            assert found is not None and found.offset == number, (bit, number, found)


def test_a_flipped_bit_of_an_offset_is_damage() -> None:
    """The CRC does not cover the base offset, and an index has 32 bits for an offset."""
    disk = closed_log()
    path = min(f"{PATH}/{name}" for name in disk.list(PATH) if name.endswith(".log"))
    content = disk.content(path)
    _, (second, _), *_ = batches(content)
    found = 0
    for bit in range(64):
        damaged = bytearray(content)
        damaged[second + bit // 8] ^= 1 << bit % 8
        disk.open(path).pwrite(bytes(damaged), 0)
        disk.open(path.replace(".log", ".timeindex")).truncate(0)
        try:
            assert Segment(disk, PATH, 0, 200).max_timestamp_ms
        except CorruptLog as damage:
            found += "the batch has base offset" in str(damage)
    assert found == 33, "32 bits are above what an index holds, and one is the sign"


def test_recovery_of_a_compacted_log_finds_a_flipped_bit_of_an_offset() -> None:
    """A compacted log has gaps between its batches, but no segment holds so large an offset."""
    disk = closed_log()
    name = max(name for name in disk.list(PATH) if name.endswith(".log"))
    content = bytearray(disk.content(f"{PATH}/{name}"))
    content[1] ^= 1
    disk.open(f"{PATH}/{name}").pwrite(bytes(content), 0)
    log = Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=False, gaps=True)
    assert log.end_offset < COUNT


def timeless_log(disk: SimDisk) -> Log:
    log = opened(disk)
    for number in range(COUNT):
        log.append(batch(number, 0, [b"x" * 50], timestamp_ms=-1 - number), wall_ms=0)
    return log


def test_records_without_timestamps_cost_one_walk_not_one_for_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each ListOffsets by time once rebuilt the indexes of every segment."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    log = timeless_log(disk)
    assert len(disk.list(PATH)) > 6, "several segments"
    log.close()
    reads = rebuilt = 0
    walk, rebuild = Segment.walk, Segment.rebuild_indexes

    def counted_walk(segment: Segment, position: int) -> Iterator[tuple[int, BatchHeader]]:
        nonlocal reads
        for found in walk(segment, position):
            reads += 1
            yield found

    def counted_rebuild(segment: Segment) -> None:
        nonlocal rebuilt
        rebuilt += 1
        rebuild(segment)

    monkeypatch.setattr(Segment, "walk", counted_walk)
    monkeypatch.setattr(Segment, "rebuild_indexes", counted_rebuild)
    log = opened(disk.restart())
    reads = 0
    for timestamp_ms in (0, 1_000, 0, 2**63 - 1):
        assert log.offset_for_timestamp(timestamp_ms) is None
        assert log.max_timestamp_ms == -1
    assert rebuilt == 0
    assert reads <= COUNT
    reads = 0
    log.take_expired(high_watermark=0, wall_ms=0)
    assert log.max_timestamp_ms == -1 and log.offset_for_timestamp(5) is None
    assert reads == 0


def test_a_record_with_a_timestamp_is_found_behind_those_without() -> None:
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    log = timeless_log(disk)
    assert log.offset_for_timestamp(0) is None
    log.append(batch(COUNT, 0, [b"x" * 50], timestamp_ms=500 - COUNT), wall_ms=0)
    found = log.offset_for_timestamp(0)
    assert found is not None and (found.timestamp_ms, found.offset) == (500, COUNT)
    log.close()
    reopened = opened(disk.restart())
    assert reopened.offset_for_timestamp(0) == found
    reopened.truncate_to(COUNT)
    assert reopened.offset_for_timestamp(0) is None
    assert reopened.max_timestamp_ms == -1


@pytest.mark.parametrize("at_pause", range(1, 6))
@pytest.mark.parametrize("change", ["truncated", "shortened", "appended to", "reset"])
def test_a_lookup_survives_what_happens_to_its_log_while_it_pauses(
    change: str, at_pause: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_module, "HEADERS_PER_STEP", 4)
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    timeless_log(disk).close()
    disk = disk.restart()
    log = opened(disk)
    pauses = 0
    for _ in look_up_timestamp(log, 0):
        pauses += 1
        if pauses != at_pause:
            continue
        if change == "truncated":
            log.truncate_to(COUNT // 4)
        elif change == "shortened":
            log.advance_start(3 * COUNT // 4)
            gone = log.take_expired(high_watermark=log.end_offset, wall_ms=0)
            assert gone
            remove_segments(disk, gone)
        elif change == "reset":
            log.reset_to(COUNT)
        else:
            log.append(batch(COUNT, 0, [b"x"], timestamp_ms=7 - COUNT), wall_ms=0)
    assert pauses >= at_pause
    assert (log.offset_for_timestamp(0) is not None) == (change == "appended to")


def test_records_without_timestamps_are_not_deleted_for_their_age() -> None:
    """The timestamp -1 once counted as very old: retention deleted such records immediately."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    log = timeless_log(disk)
    week_ms = LogSettings().retention_ms
    assert log.take_expired(high_watermark=COUNT, wall_ms=10**15) == []
    log.append(batch(COUNT, 0, [b"x" * 50], timestamp_ms=500 - COUNT), wall_ms=0)
    assert log.take_expired(high_watermark=COUNT + 1, wall_ms=500 + week_ms) == []
    gone = log.take_expired(high_watermark=COUNT + 1, wall_ms=501 + week_ms)
    assert log.start_offset == COUNT + 1 and gone, "they are not younger than what follows them"


def test_a_lookup_begins_again_after_a_truncation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of another leader may have replaced those that the lookup has passed."""
    monkeypatch.setattr(lookup_module, "HEADERS_PER_STEP", 2)
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    log = timeless_log(disk)
    log.append(batch(COUNT, 0, [b"x"], timestamp_ms=7 - COUNT), wall_ms=0)
    assert log.max_timestamp_ms == 7, "so that the lookup goes straight to the last segment"
    lookup = look_up_timestamp(log, 5)
    next(lookup)
    log.truncate_to(0)
    log.append(batch(0, 0, [b"y"], timestamp_ms=6), wall_ms=0)
    with pytest.raises(StopIteration) as end:
        while True:
            next(lookup)
    assert end.value.value == TimestampOffset(6, 0, 0)


@pytest.mark.parametrize("which", [0, 1, -1], ids=["first segment", "second", "active one"])
def test_no_cut_of_a_time_index_hides_a_record_or_ages_a_segment(which: int) -> None:
    """An index is not synced, so a power cut may leave any beginning of its file, whose last entry
    then agrees with its batch. Lookups skipped such a segment, and retention by time removed it
    while it had records that were not expired."""
    disk = closed_log()
    path = sorted(f"{PATH}/{name}" for name in disk.list(PATH) if name.endswith(".timeindex"))[
        which
    ]
    content = disk.content(path)
    assert len(content) > 2 * 12
    segment = int(path.rpartition("/")[2].partition(".")[0])
    newest_ms = Segment(disk, PATH, segment, 200).max_timestamp_ms
    for size in range(len(content)):
        disk.open(path).truncate(0)
        disk.open(path).pwrite(content[:size], 0)
        log = opened(disk)
        for number in range(COUNT):
            found = log.offset_for_timestamp(10 * number - 4)
            assert found is not None and found.offset == number, (size, number, found)
        assert Segment(disk, PATH, segment, 200).max_timestamp_ms == newest_ms, size


def test_a_lost_time_index_is_built_again_whatever_the_order_of_the_timestamps() -> None:
    """The first record is the latest one, so the end of the active segment does not show that its
    time index is lost. Lookups did not find the record, and retention by time took the segment for
    an older one."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    log = opened(disk)
    for number in range(12):
        log.append(batch(number, 0, [b"x" * 50], timestamp_ms=1_000 - 3 * number), wall_ms=0)
    log.close()
    disk = disk.restart()
    (path,) = (f"{PATH}/{name}" for name in disk.list(PATH) if name.endswith(".timeindex"))
    disk.open(path).truncate(0)
    log = opened(disk)
    assert log.offset_for_timestamp(1_000) == TimestampOffset(1_000, 0, 0)
    assert log.max_timestamp_ms == 1_000

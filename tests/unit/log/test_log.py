"""The log: append, read, truncate, epochs, roll, retention, reopen."""

from __future__ import annotations

import errno
import random
import struct
from dataclasses import replace

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.log.files.errors import BrokenChain, CorruptBatch, OffsetOutOfRange
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.epochs import NO_EPOCH
from quorate.quorum.log.segments.file_removal import rename_for_deletion
from quorate.quorum.log.segments.timestamp_lookup import TimestampOffset
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import Entry, append, batch, delete_expired, entries

SMALL = LogSettings(segment_bytes=1_000, index_interval_bytes=200)
PATH = "/data/topic-0"


def new_disk() -> SimDisk:
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    return disk


def open_log(disk: SimDisk, log_settings: LogSettings = SMALL, *, clean: bool = False) -> Log:
    return Log.open(disk, PATH, log_settings, wall_ms=0, clean=clean)


@pytest.fixture
def disk() -> SimDisk:
    return new_disk()


@pytest.fixture
def log(disk: SimDisk) -> Log:
    return open_log(disk)


def used_bytes(disk: SimDisk) -> int:
    return sum(len(disk.content(f"{PATH}/{name}")) for name in disk.list(PATH))


def filled(log: Log, count: int, epoch: int = 0) -> list[Entry]:
    for number in range(count):
        append(log, epoch, b"value %d" % number)
    return [(epoch, b"value %d" % number) for number in range(count)]


def test_an_empty_log(log: Log) -> None:
    assert (log.start_offset, log.end_offset, log.last_epoch) == (0, 0, -1)
    assert log.read(0, 100) == b""
    with pytest.raises(OffsetOutOfRange):
        log.read(1, 100)


def test_a_new_log_costs_one_directory_and_no_file(disk: SimDisk) -> None:
    open_log(disk)
    assert disk.list(PATH) == []


def test_what_is_appended_is_read_back_from_every_offset(log: Log) -> None:
    expected = filled(log, 100)
    assert entries(log) == expected
    for offset in range(100):
        ((_, header),) = batches(log.read(offset, 1))
        assert header.base_offset == offset


def test_a_read_starts_with_the_batch_that_holds_the_offset(log: Log) -> None:
    append(log, 0, b"a", b"b", b"c")
    append(log, 0, b"d")
    assert log.read(1, 1_000) == log.read(0, 1_000)
    assert log.read(2, 1) == log.read(0, 1)


def test_a_read_is_bounded_by_bytes_but_has_at_least_one_batch(log: Log) -> None:
    filled(log, 10)
    one = len(log.read(0, 0))
    assert len(log.read(0, 1)) == one
    assert len(log.read(0, 2 * one - 1)) == one
    assert len(log.read(0, 2 * one)) == 2 * one


def test_a_read_ends_before_the_end_it_is_given(log: Log) -> None:
    append(log, 0, b"a", b"b")
    append(log, 0, b"c")
    assert log.read(0, 1_000, end=0) == b""
    assert log.read(0, 1_000, end=1) == b"", "half a batch is none"
    assert len(list(batches(log.read(0, 1_000, end=2)))) == 1
    assert len(list(batches(log.read(0, 1_000, end=9)))) == 2


def test_reading_at_the_tail_walks_over_nothing(disk: SimDisk) -> None:
    log = open_log(disk, LogSettings())
    filled(log, 50)
    filled(log, 1)
    reads: list[str] = []
    disk.before = lambda operation, path: reads.append(operation)
    assert log.read(50, 1_000_000)
    assert reads == ["pread"]


def test_segments_roll_by_size_and_their_names_are_base_offsets(disk: SimDisk, log: Log) -> None:
    filled(log, 40)
    names = [name for name in disk.list(PATH) if name.endswith(".log")]
    assert len(names) > 2
    assert all(len(disk.content(f"{PATH}/{name}")) <= 1_000 for name in names)
    for name in names:
        ((_, first), *_) = batches(disk.content(f"{PATH}/{name}"))
        assert int(name.removesuffix(".log")) == first.base_offset


def test_a_batch_larger_than_a_segment_has_one_to_itself(log: Log) -> None:
    append(log, 0, b"small")
    append(log, 0, b"x" * 5_000)
    append(log, 0, b"small")
    assert [value[:5] for _, value in entries(log)] == [b"small", b"xxxxx", b"small"]


def test_segments_roll_by_age_in_the_records_time() -> None:
    disk = new_disk()
    log = open_log(disk, LogSettings(segment_ms=1_000))
    for timestamp_ms in (0, 1_000, 1_001):
        offset = log.end_offset
        data = batch(offset, 0, [b"x"], timestamp_ms=timestamp_ms - offset)
        log.append(data, wall_ms=9_999_999)
    assert [name for name in disk.list(PATH) if name.endswith(".log")] == [
        f"{0:020}.log",
        f"{2:020}.log",
    ]


def test_an_append_that_leaves_a_gap_or_goes_back_is_refused(log: Log) -> None:
    append(log, 5, b"a")
    for wrong in (batch(0, 5, [b"x"]), batch(2, 5, [b"x"]), batch(1, 4, [b"x"])):
        with pytest.raises(BrokenChain):
            log.append(wrong, wall_ms=0)
    assert entries(log) == [(5, b"a")]


def test_an_append_of_damaged_bytes_is_refused_whole(log: Log) -> None:
    good = batch(0, 0, [b"a"]) + batch(1, 0, [b"b"])
    for position in range(len(good)):
        if 12 <= position % len(batch(0, 0, [b"a"])) < 16:
            continue  # the leader epoch, which lies outside of the CRC
        damaged = bytearray(good)
        damaged[position] ^= 0x80
        with pytest.raises((CorruptBatch, BrokenChain)):
            log.append(damaged, wall_ms=0)
    assert log.end_offset == 0
    with pytest.raises(CorruptBatch):
        log.append(good[:-1], wall_ms=0)


def test_a_full_disk_leaves_the_log_as_it_was(disk: SimDisk, log: Log) -> None:
    """R52: ENOSPC in the middle of an append."""
    filled(log, 3)
    disk.capacity_bytes = 400
    with pytest.raises(OSError) as raised:
        append(log, 0, b"x" * 500)
    assert raised.value.errno == errno.ENOSPC
    assert len(disk.content(f"{PATH}/{0:020}.log")) == log.size_bytes
    disk.capacity_bytes = None
    append(log, 0, b"short")
    assert len(entries(log)) == 4
    assert len(entries(open_log(disk.restart()))) == 4


def test_a_full_disk_while_rolling_leaves_the_log_as_it_was(disk: SimDisk, log: Log) -> None:
    for room in (0, 5, 20, 40, 60, 200):
        expected = entries(log)
        while log.size_bytes % 1_000 < 880:
            append(log, 0, b"fill up")
            expected.append((0, b"fill up"))
        disk.capacity_bytes = used_bytes(disk) + room
        with pytest.raises(OSError):
            append(log, 0, b"x" * 600)
        disk.capacity_bytes = None
        assert entries(log) == expected
        append(log, 0, b"y" * 600)
        assert entries(log) == [*expected, (0, b"y" * 600)]
        log.check()


def test_truncation_takes_the_batch_that_holds_the_offset(log: Log) -> None:
    append(log, 0, b"a")
    append(log, 0, b"b", b"c", b"d")
    log.truncate_to(3)
    assert log.end_offset == 1
    assert entries(log) == [(0, b"a")]


@pytest.mark.parametrize("offset", [2, 3])
def test_truncation_of_the_batch_that_holds_the_log_start(log: Log, offset: int) -> None:
    append(log, 0, b"a")
    append(log, 0, b"b", b"c", b"d")
    log.advance_start(2)
    log.truncate_to(offset)
    assert (log.start_offset, log.end_offset) == (2, 2)


def test_truncation_over_segments_and_on_to_an_empty_log(disk: SimDisk, log: Log) -> None:
    expected = filled(log, 60)
    for offset in (59, 31, 17, 2, 0):
        log.truncate_to(offset)
        assert (log.end_offset, entries(log)) == (offset, expected[:offset])
        append(log, offset + 100, b"new")
        log.truncate_to(offset)
    assert [name for name in disk.list(PATH) if name.endswith(".log")] == [f"{0:020}.log"]


def test_truncation_beyond_the_end_only_drops_epochs_without_records(log: Log) -> None:
    filled(log, 3)
    log.assign_epoch(7)
    assert log.last_epoch == 7
    log.truncate_to(3)
    assert (log.last_epoch, log.end_offset) == (0, 3)


def test_truncation_takes_epochs_along(log: Log) -> None:
    for epoch in (1, 1, 2, 4):
        append(log, epoch, b"x")
    log.truncate_to(2)
    assert log.epochs.entries == [EpochOffset(1, 0)]
    append(log, 3, b"y")
    assert log.epochs.entries == [EpochOffset(1, 0), EpochOffset(3, 2)]
    assert log.epochs.end_offset_for(2, log.end_offset) == EpochOffset(1, 2)
    assert log.epochs.end_offset_for(3, log.end_offset) == EpochOffset(3, 3)


def test_reset_goes_on_empty_from_the_offset_also_after_reopening(disk: SimDisk, log: Log) -> None:
    filled(log, 30)
    log.reset_to(100)
    assert (log.start_offset, log.end_offset, log.last_epoch) == (100, 100, -1)
    assert (open_log(disk.restart()).start_offset, log.end_offset) == (100, 100)


@pytest.mark.parametrize("clean", [True, False])
def test_a_closed_log_is_found_as_it_was(disk: SimDisk, log: Log, clean: bool) -> None:
    expected = filled(log, 50)
    append(log, 9, b"last")
    log.close()
    reopened = open_log(disk.crash(), clean=clean)
    assert entries(reopened) == [*expected, (9, b"last")]
    assert reopened.epochs.entries == log.epochs.entries
    assert reopened.flushed_offset == (51 if clean else 0)
    append(reopened, 9, b"more")
    assert entries(reopened)[-1] == (9, b"more")


def test_timestamps_are_found_by_their_first_record(log: Log) -> None:
    for number in range(100):  # two records share each time, and some times repeat
        data = batch(2 * number, 3, [b"a", b"b"], timestamp_ms=100 * (number // 2) - 2 * number)
        log.append(data, wall_ms=0)
    assert log.offset_for_timestamp(-5) == TimestampOffset(0, 0, 3)
    assert log.offset_for_timestamp(100) == TimestampOffset(100, 4, 3)
    assert log.offset_for_timestamp(101) == TimestampOffset(200, 8, 3)
    assert log.offset_for_timestamp(4_900) == TimestampOffset(4_900, 196, 3)
    assert log.offset_for_timestamp(4_901) is None
    log.advance_start(150)
    assert log.offset_for_timestamp(0) == TimestampOffset(3_700, 150, 3)


def test_timestamps_of_what_was_truncated_are_forgotten(log: Log) -> None:
    for number in range(20):
        log.append(batch(number, 0, [b"x" * 50], timestamp_ms=10_000), wall_ms=0)
    log.truncate_to(4)
    for number in range(4, 20):
        log.append(batch(number, 1, [b"x" * 50], timestamp_ms=10_000 - number), wall_ms=0)
    log.append(batch(20, 1, [b"late"], timestamp_ms=19_980), wall_ms=0)
    assert log.offset_for_timestamp(10_004) == TimestampOffset(20_000, 20, 1)
    assert log.offset_for_timestamp(10_003) == TimestampOffset(10_003, 3, 0)


def test_records_before_the_start_are_gone(log: Log) -> None:
    filled(log, 5, epoch=2)
    append(log, 3, b"x")
    log.advance_start(4)
    with pytest.raises(OffsetOutOfRange):
        log.read(3, 100)
    assert log.epochs.entries == [EpochOffset(2, 4), EpochOffset(3, 5)]


def test_retention_deletes_only_below_the_high_watermark(disk: SimDisk) -> None:
    """KAFKA-5634."""
    log = open_log(disk, LogSettings(segment_bytes=200, retention_ms=1_000))
    filled(log, 20)
    first = [int(name[:20]) for name in disk.list(PATH) if name.endswith(".log")]
    assert delete_expired(log, high_watermark=first[2], wall_ms=10**9) == 2
    assert log.start_offset == first[2]
    assert delete_expired(log, high_watermark=20, wall_ms=1_000) == 0, "not old enough"
    delete_expired(log, high_watermark=20, wall_ms=10**9)
    assert (log.start_offset, log.end_offset) == (20, 20)
    log.flush()
    assert open_log(disk.crash()).end_offset == 20
    append(open_log(disk.restart()), 0, b"on")


def test_a_flush_behind_retention_proves_what_is_left(disk: SimDisk) -> None:
    """The expired bytes were never synced, and without epochs no other file contains the log start.
    If the expired segments came back, the log would end below its recovery point."""
    log = open_log(disk)
    append(log, NO_EPOCH, b"synced")
    log.flush()
    append(log, NO_EPOCH, b"not synced")
    assert delete_expired(log, high_watermark=2, wall_ms=10**9) == 1
    log.flush()
    disk = disk.crash(forgetful=True)
    log = Log.open(disk, PATH, SMALL, wall_ms=0, clean=False, recovery_point=log.flushed_offset)
    assert (log.start_offset, log.end_offset) == (2, 2)


def test_retention_by_size_keeps_at_least_what_is_allowed(disk: SimDisk) -> None:
    log = open_log(disk, LogSettings(segment_bytes=200, retention_bytes=500, retention_ms=-1))
    filled(log, 20)
    before = log.size_bytes
    assert delete_expired(log, high_watermark=20, wall_ms=0) > 0
    assert 500 <= log.size_bytes < 700 < before


@pytest.mark.parametrize(("retention_ms", "retention_bytes"), [(0, -1), (-1, 0)])
def test_both_limits_may_remove_the_active_segment(
    disk: SimDisk, retention_ms: int, retention_bytes: int
) -> None:
    """KAFKA-16414."""
    limits = replace(SMALL, retention_ms=retention_ms, retention_bytes=retention_bytes)
    log = open_log(disk, limits)
    filled(log, 3)
    assert delete_expired(log, high_watermark=3, wall_ms=10**9) == 1
    assert (log.start_offset, log.end_offset) == (3, 3)


def test_retention_is_complete_after_one_pass(disk: SimDisk) -> None:
    """KAFKA-12177: the log start, the time and the size each allow some of the segments."""
    small = LogSettings(segment_bytes=200, retention_ms=1_000, retention_bytes=400)
    log = open_log(disk, small)
    for number in range(30):
        data = batch(number, 0, [b"value"], timestamp_ms=5_000 if number > 12 else 1)
        log.append(data, wall_ms=0)
    log.advance_start(6)
    assert delete_expired(log, high_watermark=30, wall_ms=5_500) > 3
    before = log.start_offset
    assert delete_expired(log, high_watermark=30, wall_ms=5_500) == 0
    assert log.start_offset == before > 12


def test_a_log_without_records_is_as_it_was_after_a_clean_stop(disk: SimDisk) -> None:
    """KAFKA-13603: the empty segment without an index made the next start recover the log."""
    log = open_log(disk, LogSettings(segment_bytes=200, retention_ms=1_000))
    filled(log, 20)
    delete_expired(log, high_watermark=20, wall_ms=10**9)
    log.flush()
    log.close()
    again = open_log(disk.restart(), clean=True)
    assert (again.start_offset, again.end_offset) == (20, 20)
    assert again.recovery.scanned_bytes == 0


def test_deletion_renames_as_kafka_does(disk: SimDisk, log: Log) -> None:
    """KAFKA-15391, KAFKA-19571: a flush that overlaps the deletion is no error of the disk."""
    filled(log, 3)
    flush = log.prepare_flush()
    log.deleted = True
    target = rename_for_deletion(disk, log.directory, "0123456789abcdef0123456789abcdef")
    assert target == "/data/topic-0.0123456789abcdef0123456789abcdef-delete"
    flush.run()
    after = disk.crash(forgetful=True)
    assert after.list("/data") == [target.rpartition("/")[2]]
    after.remove_tree(target)
    assert after.list("/data") == []


def test_closing_an_empty_log_leaves_no_file(disk: SimDisk, log: Log) -> None:
    log.close()
    assert disk.list(PATH) == []


def test_closing_gives_everything_back(disk: SimDisk) -> None:
    log = open_log(disk)
    filled(log, 30)
    log.close()
    names = disk.list(PATH)
    for name in names:
        if name.endswith(".log"):
            stem = name.removesuffix(".log")
            assert {f"{stem}.index", f"{stem}.timeindex"} <= set(names)


def test_a_damaged_index_costs_time_and_no_record(disk: SimDisk, log: Log) -> None:
    """R51: every byte of every index is damaged in turn."""
    expected = filled(log, 40)
    log.close()
    after = disk.restart()
    for name in after.list(PATH):
        if not name.endswith("index"):
            continue
        for position in range(len(after.content(f"{PATH}/{name}"))):
            after.flip(f"{PATH}/{name}", position, 0x41)
            reopened = open_log(after, clean=True)
            assert entries(reopened, max_bytes=150) == expected
            for offset in range(0, 40, 3):
                ((_, header),) = batches(reopened.read(offset, 1))
                assert header.base_offset == offset
                assert reopened.offset_for_timestamp(1_000 + offset) == TimestampOffset(
                    1_000 + offset, offset, 0
                )
            reopened.close()
            reopened = open_log(after, clean=True)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_built_anew(disk: SimDisk, log: Log, suffix: str) -> None:
    expected = filled(log, 40)
    log.close()
    for truncate_to in (40, 11):
        after = disk.restart()
        for name in after.list(PATH):
            if name.endswith(suffix):
                after.remove(f"{PATH}/{name}")
        reopened = open_log(after, clean=True)
        reopened.truncate_to(truncate_to)
        assert reopened.offset_for_timestamp(1_009) == TimestampOffset(1_009, 9, 0)
        assert entries(reopened) == expected[:truncate_to]
        append(reopened, 1, b"on")
        reopened.close()


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5), st.integers(0, 300)),
        st.tuples(st.just("truncate"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("reopen"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("advance"), st.integers(0, 20), st.just(0)),
        st.tuples(st.just("reset"), st.integers(0, 100), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=150)
@given(OPERATIONS)
def test_the_log_is_a_list(operations: list[tuple[str, int, int]]) -> None:
    disk, epoch, start = new_disk(), 0, 0
    log = open_log(disk)
    model: list[list[Entry]] = []  # batches; `start` counts records
    base = 0
    for name, number, size in operations:
        length = base + sum(len(each) for each in model)
        if name == "append":
            values = [b"%d %d" % (length, index) + b"x" * size for index in range(number)]
            append(log, epoch, *values)
            model.append([(epoch, value) for value in values])
        elif name == "truncate" and start <= number:
            log.truncate_to(number)
            while model and base + sum(len(each) for each in model) > number:
                model.pop()
            epoch += 1
            if base + sum(len(each) for each in model) < start:
                start = log.start_offset
        elif name == "reopen":
            log.close()
            disk = disk.restart()
            log = Log.open(disk, PATH, SMALL, wall_ms=0, clean=bool(number), start_offset=start)
        elif name == "advance":
            start = min(length, start + number)
            log.advance_start(start)
        elif name == "reset":
            log.reset_to(number)
            model, base, start = [], number, number
            epoch += 1
        flat = [entry for each in model for entry in each]
        assert log.end_offset == base + len(flat)
        for end in (None, log.end_offset - 1):
            seen: list[Entry] = []
            offset = base if start == base else None
            if offset is not None:
                seen = entries(log, max_bytes=400, end=end)
                assert seen == flat[: len(seen)]
                assert end is not None or seen == flat
    log.check()


def test_batches_that_an_index_cannot_say_are_refused_before_anything_changes(log: Log) -> None:
    """A follower may append several batches at once. The index of one segment ends at 2^31 - 1."""
    wide = bytearray(batch(0, 0, [b"x"]))
    struct.pack_into(">i", wide, 23, 2**31 - 1)
    struct.pack_into(">I", wide, 17, crc32c(bytes(wide[21:])))
    second = bytearray(wide)
    struct.pack_into(">q", second, 0, 2**31)
    with pytest.raises(BrokenChain, match="a segment holds at most 2147483648 offsets"):
        log.append(bytes(wide + second), wall_ms=0)
    assert log.end_offset == 0
    log.append(bytes(wide), wall_ms=0)
    log.append(bytes(second), wall_ms=0)
    assert log.end_offset == 2**32

"""The check of a log's directory reports the faults that a start would find, and changes
nothing.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from quorate.quorum.log.checking.check_result import CheckResult, Kind
from quorate.quorum.log.checking.verify import LogCheck, LogExpectations
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import append, batch, delete_expired

PATH = "/data/topic-0"
METADATA = LogSettings(segment_bytes=1_500, index_interval_bytes=100, flushed_is_acknowledged=True)
PARTITION = LogSettings(segment_bytes=1_500, index_interval_bytes=100)
KAFKA = Path(__file__).parents[2] / "fixtures/kafka-4.1.1-metadata/c1"


def checked(disk: SimDisk, expected: LogExpectations) -> LogCheck:
    check = LogCheck(disk, PATH, expected)
    before = stored(disk)
    check.run()
    assert stored(disk) == before, "checking changes nothing"
    return check


def results(disk: SimDisk, *, metadata: bool = True, trusted: int = 0) -> list[CheckResult]:
    return checked(disk, LogExpectations(metadata=metadata, trusted_offset=trusted)).results


def stored(disk: SimDisk) -> dict[str, bytes]:
    return {name: disk.content(f"{PATH}/{name}") for name in disk.list(PATH)}


def opened(disk: SimDisk, settings: LogSettings, recovery_point: int = 0) -> Log:
    return Log.open(disk, PATH, settings, wall_ms=0, clean=False, recovery_point=recovery_point)


def written(settings: LogSettings, *, flushed: int = 24, unflushed: int = 0) -> SimDisk:
    """Return the disk of a log: three segments of 8 batches in two epochs.

    The log is closed cleanly if all of it is flushed."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    log = opened(disk, settings)
    for offset in range(flushed + unflushed):
        if offset == flushed:
            log.flush()
        append(log, offset // 10, b"%d " % offset + b"x" * 100)
    if not unflushed:
        log.close()
    return disk


@pytest.mark.parametrize("settings", [METADATA, PARTITION], ids=["metadata", "partition"])
@pytest.mark.parametrize("unflushed", [0, 5])
def test_a_log_in_which_nothing_is_wrong(settings: LogSettings, unflushed: int) -> None:
    disk = written(settings, unflushed=unflushed)
    check = checked(disk, LogExpectations(metadata=settings is METADATA))
    assert check.results == []
    assert check.batches == check.end_offset == 24 + unflushed
    assert check.epochs.entries == opened(disk, settings).epochs.entries


def test_every_flipped_byte_is_found_as_a_start_would_find_it() -> None:
    """If a start refuses the log, the result is damage, with its file and a repair."""
    disk = written(METADATA, flushed=12, unflushed=4)
    names = [name for name in disk.list(PATH) if name.endswith(".log")]
    assert len(names) == 2
    for name in names:
        for position in range(0, len(disk.content(f"{PATH}/{name}")), 7):
            disk.flip(f"{PATH}/{name}", position)
            found = results(disk)
            assert found, (name, position)
            first = found[0]
            assert first.path == f"{PATH}/{name}"
            assert first.way_out
            after = disk.restart()
            disk.dead = False
            try:
                log = opened(after, METADATA)
            except CorruptLog as refused:
                assert first.kind is Kind.DAMAGED
                assert (refused.path, refused.position) == (first.path, first.position)
                disk.flip(f"{PATH}/{name}", position)
                continue
            if log.recovery.cut_at_offset is not None:
                assert first.kind is Kind.TORN
                disk = written(METADATA, flushed=12, unflushed=4)
                continue
            # A start does not read the segments below that of the flushed marker.
            assert first.kind is Kind.DAMAGED and name == names[0]
            disk.flip(f"{PATH}/{name}", position)


def test_a_cut_tail_is_torn_only_above_what_was_flushed() -> None:
    for settings in (METADATA, PARTITION):
        whole = written(settings, flushed=12, unflushed=4)
        name = max(name for name in whole.list(PATH) if name.endswith(".log"))
        size = len(whole.content(f"{PATH}/{name}"))
        for left in range(1, size, 13):
            disk = written(settings, flushed=12, unflushed=4)
            disk.open(f"{PATH}/{name}").truncate(left)
            metadata = settings is METADATA
            found = results(disk, metadata=metadata, trusted=0 if metadata else 12)
            try:
                log = opened(disk, settings, 0 if metadata else 12)
            except CorruptLog as refused:
                assert [each.kind for each in found] == [Kind.DAMAGED]
                assert refused.position == found[0].position
                continue
            kinds = [each.kind for each in found]
            if log.recovery.cut_at_offset is None:
                shortened = log.end_offset < 12
                assert kinds == ([Kind.DAMAGED] if shortened else [])
            else:
                assert kinds == [Kind.TORN]
                assert found[0].offset == log.recovery.cut_at_offset


def test_each_damaged_segment_is_named() -> None:
    disk = written(METADATA)
    names = [name for name in disk.list(PATH) if name.endswith(".log")]
    for name in names[:2]:
        disk.flip(f"{PATH}/{name}", 400)
    found = results(disk)
    assert [(each.path.rpartition("/")[2], each.kind) for each in found] == [
        (name, Kind.DAMAGED) for name in names[:2]
    ]
    assert all(each.position >= 0 and each.offset >= 0 for each in found)


def test_a_missing_segment_and_a_shortened_log() -> None:
    disk = written(METADATA)
    names = [name for name in disk.list(PATH) if name.endswith(".log")]
    content = disk.content(f"{PATH}/{names[1]}")
    disk.remove(f"{PATH}/{names[1]}")
    (hole,) = results(disk)
    assert hole.path.endswith(names[2])
    assert "a segment is missing" in hole.what
    disk.open(f"{PATH}/{names[1]}", create=True).pwrite(content, 0)
    disk.remove(f"{PATH}/{names[2]}")
    (short,) = results(disk)
    assert "was flushed up to offset 24" in short.what
    assert short.offset == int(names[2][:20])
    for name in names[:2]:
        disk.remove(f"{PATH}/{name}")
    assert [each.kind for each in results(disk)] == [Kind.DAMAGED], "nothing is left of it"


def test_a_log_closed_in_order_misses_its_first_segment() -> None:
    """Retention removes the first segment too, but records the new start before the log is
    closed."""
    disk = written(PARTITION)
    disk.remove(f"{PATH}/{0:020}.log")
    expected = LogExpectations(metadata=False, clean=True, trusted_offset=24)
    (found,) = checked(disk, expected).results
    assert (found.kind, found.path) == (Kind.DAMAGED, f"{PATH}/{8:020}.log")
    with pytest.raises(CorruptLog, match="the log began at offset 0"):
        Log.open(disk, PATH, PARTITION, wall_ms=0, clean=True)
    for clean, start_offset in ((True, 8), (False, 0)):
        expected = LogExpectations(metadata=False, clean=clean, start_offset=start_offset)
        assert not checked(disk, expected).results
        disk = disk.restart()
        log = Log.open(disk, PATH, PARTITION, wall_ms=0, clean=clean, start_offset=start_offset)
        assert (log.start_offset, log.end_offset) == (8, 24)


def test_a_log_closed_in_order_does_not_miss_what_retention_took() -> None:
    """The checkpoint of log start offsets, written once a minute, may be older."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    log = opened(disk, PARTITION)
    for offset in range(24):
        append(log, 0, b"%d " % offset + b"x" * 100)
    log.advance_start(9)
    assert delete_expired(log, high_watermark=24, wall_ms=0) == 1
    log.close()
    assert not checked(disk, LogExpectations(metadata=False, clean=True, trusted_offset=24)).results
    again = Log.open(disk.restart(), PATH, PARTITION, wall_ms=0, clean=True)
    assert (again.start_offset, again.end_offset) == (8, 24)


def test_a_misdirected_write_is_damage() -> None:
    """The batch is valid, but of another offset."""
    disk = written(METADATA)
    name = next(name for name in disk.list(PATH) if name.endswith(".log"))
    disk.open(f"{PATH}/{name}").pwrite(batch(7, 0, [b"0 " + b"x" * 100]), 0)
    (found, *_) = results(disk)
    assert (found.kind, found.position) == (Kind.DAMAGED, 0)
    assert found.what == "the batch has base offset 7"


def test_a_lost_write_leaves_a_hole_of_zeros_and_below_the_marker_it_is_damage() -> None:
    disk = written(METADATA)
    name = next(name for name in disk.list(PATH) if name.endswith(".log"))
    disk.open(f"{PATH}/{name}").pwrite(bytes(512), 512)
    (found, *_) = results(disk)
    assert found.kind is Kind.DAMAGED


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_every_flipped_byte_of_an_index_is_found_and_never_costs_a_record(suffix: str) -> None:
    disk = written(PARTITION)
    names = [name for name in disk.list(PATH) if name.endswith(suffix)]
    sealed = f"{PATH}/{names[0]}"
    size = len(disk.content(sealed))
    assert size > 24
    for position in range(size):
        disk.flip(sealed, position)
        check = checked(disk, LogExpectations(metadata=False))
        assert [(each.kind, each.path) for each in check.results] == [(Kind.DERIVED, sealed)]
        assert check.wrong_indexes == [0]
        disk.flip(sealed, position)
    disk.remove(sealed)
    assert [each.what for each in results(disk, metadata=False)] == ["is missing"]


def test_the_index_that_a_killed_process_did_not_write_is_not_missed() -> None:
    disk = written(PARTITION, unflushed=5)
    names = [name for name in disk.list(PATH) if name.endswith(".log")]
    assert not disk.exists(f"{PATH}/{names[-1].replace('.log', '.index')}")
    assert results(disk, metadata=False) == []


def test_zeros_behind_the_entries_are_kafkas() -> None:
    disk = written(PARTITION)
    index = f"{PATH}/{max(name for name in disk.list(PATH) if name.endswith('.index'))}"
    file = disk.open(index)
    file.pwrite(bytes(800), file.size())
    assert results(disk, metadata=False) == []


def test_damaged_small_files_beside_the_segments() -> None:
    disk = written(METADATA)
    for name in ("leader-epoch-checkpoint", "quorate-flushed-offset"):
        disk.flip(f"{PATH}/{name}", 0)
    assert sorted(each.path.rpartition("/")[2] for each in results(disk)) == [
        "leader-epoch-checkpoint",
        "quorate-flushed-offset",
    ]
    assert {each.kind for each in results(disk)} == {Kind.DERIVED}


def test_offsets_may_be_missing_where_kafka_compacts() -> None:
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    file = disk.open(f"{PATH}/{0:020}.log", create=True)
    file.pwrite(batch(0, 0, [b"a"]) + batch(5, 0, [b"b"]), 0)
    assert [each.kind for each in results(disk, metadata=False)] == [Kind.DAMAGED]
    compacted = LogExpectations(metadata=False, compacted=True)
    assert checked(disk, compacted).results == []


def test_kafkas_own_log_is_sound() -> None:
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    for name in (f"{0:020}.log", "leader-epoch-checkpoint"):
        disk.open(f"{PATH}/{name}", create=True).pwrite((KAFKA / name).read_bytes(), 0)
    check = checked(disk, LogExpectations(metadata=True))
    assert (check.results, check.batches) == ([], 218)

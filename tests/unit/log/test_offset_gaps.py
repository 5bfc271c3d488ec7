"""Logs in which offsets are missing between batches: appends, reads, truncations and starts."""

from __future__ import annotations

import errno
import random

import pytest

from quorate.broker.logs.producer_loading import log_parts, read_parts
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.log.batches.batch import read_header
from quorate.quorum.log.checking.check_result import CheckResult, Kind
from quorate.quorum.log.checking.verify import LogCheck, LogExpectations
from quorate.quorum.log.files.errors import (
    BrokenChain,
    CorruptLog,
    OffsetOutOfRange,
    OutOfFiles,
)
from quorate.quorum.log.files.offset_gaps import GAPS_NAME
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.segment_swap import SegmentSwap, new_cleaned_segment, seal
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import batch

PATH = "/d/t-0"
SETTINGS = LogSettings(segment_bytes=10_000)


def gapped() -> tuple[SimDisk, Log]:
    """Return a log with the batches 0-1, 5-6 and 20."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    log = Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=False)
    log.append(batch(0, 1, [b"a", b"b"]), wall_ms=0)
    log.append(batch(5, 1, [b"c", b"d"]), wall_ms=0, gaps=True)
    log.append(batch(20, 2, [b"e"]), wall_ms=0, gaps=True)
    return disk, log


def bases(log: Log, offset: int) -> list[int]:
    """Return the base offsets that a reader gets from `offset` on, one batch at a time."""
    found = []
    while data := log.read(offset, 1):
        found.append(int.from_bytes(data[:8], "big"))
        offset = found[-1] + int.from_bytes(data[23:27], "big") + 1
    return found


def test_a_follower_appends_and_reads_gaps() -> None:
    _, log = gapped()
    assert log.end_offset == 21
    assert [bases(log, each)[0] for each in (0, 1, 2, 4, 5, 6, 7, 19, 20)] == [
        *(0, 0, 5, 5, 5, 5),
        *(20, 20, 20),
    ]
    log.check()


def test_the_marker_is_synced_also_if_a_descriptor_was_missing_before() -> None:
    """The second try found the marker, and did not sync its name."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    log = Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=False)
    log.append(batch(0, 1, [b"a"]), wall_ms=0)
    synced: list[str] = []

    def before(operation: str, path: str) -> None:
        if operation == "sync_dir" and path == PATH:
            synced.append(path)
            if len(synced) == 1:
                raise OutOfFiles(errno.EMFILE, "Too many open files", path)

    disk.before = before
    with pytest.raises(OutOfFiles):
        log.append(batch(5, 1, [b"b"]), wall_ms=0, gaps=True)
    assert log.end_offset == 1
    log.append(batch(5, 1, [b"b"]), wall_ms=0, gaps=True)
    assert len(synced) == 2 and disk.exists(f"{PATH}/{GAPS_NAME}")


def test_other_appends_refuse_gaps() -> None:
    _, log = gapped()
    with pytest.raises(BrokenChain):
        log.append(batch(25, 2, [b"x"]), wall_ms=0)
    with pytest.raises(BrokenChain):
        log.append(batch(20, 2, [b"x"]), wall_ms=0, gaps=True)


def test_a_gap_that_no_segment_can_hold_is_refused() -> None:
    """The segment that the append begins would be damaged for its next reader."""
    _, log = gapped()
    log.append(batch(21 + 2**31 - 1, 2, [b"f"]), wall_ms=0, gaps=True)
    end_offset = log.end_offset
    with pytest.raises(BrokenChain, match="holds at most"):
        log.append(batch(end_offset + 2**31, 2, [b"g"]), wall_ms=0, gaps=True)
    log.truncate_to(end_offset - 1)
    assert log.end_offset == 21
    log.check()


def test_the_marker_survives_a_power_cut_that_keeps_a_gap() -> None:
    disk, log = gapped()
    log.flush()
    after = disk.crash(forgetful=True)
    log = Log.open(after, PATH, SETTINGS, wall_ms=0, clean=False, recovery_point=21)
    assert bases(log, 0) == [0, 5, 20]


def test_without_the_marker_a_gap_is_damage() -> None:
    disk, log = gapped()
    log.flush()
    disk.remove(f"{PATH}/{GAPS_NAME}")
    with pytest.raises(CorruptLog):
        Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=False, recovery_point=21)


def test_the_checkpoint_of_the_cleaner_takes_the_place_of_a_lost_marker() -> None:
    disk, log = gapped()
    log.flush()
    disk.remove(f"{PATH}/{GAPS_NAME}")
    log = Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=False, recovery_point=21, gaps=True)
    assert bases(log, 0) == [0, 5, 20]


@pytest.mark.parametrize(
    ("offset", "end"), [(20, 7), (15, 7), (7, 7), (6, 2), (5, 2), (4, 2), (2, 2), (1, 0), (0, 0)]
)
def test_a_truncation_into_a_gap_ends_the_log_behind_the_last_batch(offset: int, end: int) -> None:
    disk, log = gapped()
    log.flush()
    lowered: list[int] = []
    log.before_truncation = lowered.append
    log.truncate_to(offset)
    assert log.end_offset == end
    # A recovery point above the end would make the next start refuse the log.
    assert lowered == [end]
    after = disk.restart()
    log = Log.open(after, PATH, SETTINGS, wall_ms=0, clean=False, recovery_point=end)
    assert log.end_offset == end


def test_a_truncation_above_a_log_start_in_a_gap_keeps_the_log_start() -> None:
    _, log = gapped()
    log.advance_start(10)
    log.truncate_to(15)
    assert (log.start_offset, log.end_offset) == (10, 10)
    with pytest.raises(OffsetOutOfRange):
        log.read(7, 1)


def test_a_cancelled_replacement_leaves_nothing() -> None:
    disk, log = gapped()
    cleaned = new_cleaned_segment(disk, PATH, 0, 4096)
    data = batch(0, 1, [b"a", b"b"])
    cleaned.append(data, [(0, read_header(data))])
    seal(disk, PATH, cleaned)
    swap = SegmentSwap(disk, PATH, [], cleaned)
    swap.begin()
    assert [each for each in disk.list(PATH) if each.endswith(".swap")]
    swap.cancel()
    after = disk.crash()
    assert not [each for each in after.list(PATH) if each.endswith((".swap", ".cleaned"))]
    assert log.end_offset == 21


def compacted() -> tuple[SimDisk, list[int]]:
    """Return the disk of a log with the batches 0, 3, 4, 5, 20 and 21, and their positions."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    log = Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=False)
    positions = []
    for base in (0, 3, 4, 5, 20, 21):
        positions.append(log.size_bytes)
        log.append(batch(base, 1 + base // 4, [b"a"]), wall_ms=0, gaps=True)
    log.flush()
    return disk, positions


LOW_BYTE = 7


@pytest.mark.parametrize(
    ("number", "mask", "left"),
    [
        pytest.param(1, 0x40, [0], id="3 becomes 67, and 4 follows"),
        pytest.param(2, 0x20, [0, 3], id="4 becomes 36, the first batch of its epoch"),
        pytest.param(0, 0x10, [], id="0 becomes 16"),
        pytest.param(4, 0x10, [0, 3, 4, 5], id="20 becomes 4, which 4 and 5 contradict"),
        pytest.param(5, 0x01, [0, 3, 4, 5], id="21 becomes 20, and either may be wrong"),
    ],
)
def test_a_base_offset_that_is_too_high_is_cut_with_its_batch(
    number: int, mask: int, left: list[int]
) -> None:
    """The batch was kept once, and readers got its records at a wrong offset."""
    disk, positions = compacted()
    disk.flip(f"{PATH}/{0:020}.log", positions[number] + LOW_BYTE, mask)
    log = Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=False)
    assert bases(log, 0) == left
    assert log.end_offset == (left[-1] + 1 if left else 0)
    assert log.last_epoch == (1 + left[-1] // 4 if left else -1)
    log.append(batch(30, 7, [b"b"]), wall_ms=0, gaps=True)
    log.check()
    assert bases(log, 0) == [*left, 30]


def test_a_flushed_batch_that_is_in_doubt_is_not_cut() -> None:
    disk, positions = compacted()
    disk.flip(f"{PATH}/{0:020}.log", positions[1] + LOW_BYTE, 0x40)
    with pytest.raises(CorruptLog, match="base offset 67, and the next one a lower one"):
        Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=False, recovery_point=4)


def two_segments() -> tuple[SimDisk, LogSettings, str]:
    """Return the disk of a log with the batches 0, 3, 4 and 5 in one segment, 20 and 21 in the
    next, its settings, and the path of the first segment. Batch 5 was changed to 69 on the disk."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    settings = LogSettings(segment_bytes=4 * len(batch(0, 1, [b"a"])))
    log = Log.open(disk, PATH, settings, wall_ms=0, clean=False)
    for base in (0, 3, 4, 5, 20, 21):
        log.append(batch(base, 1 + base // 4, [b"a"]), wall_ms=0, gaps=True)
    log.flush()
    first, second = log._segments
    assert (first.base_offset, second.base_offset) == (0, 6)
    disk.flip(first.path, 3 * first.size // 4 + LOW_BYTE, 0x40)
    return disk, settings, first.path


def test_a_batch_beyond_the_next_segment_is_damage_that_was_durable() -> None:
    """Recovery once kept the batch and removed the next segment."""
    disk, settings, _ = two_segments()
    with pytest.raises(CorruptLog, match="offset 5: the batch has base offset 69") as refused:
        Log.open(disk, PATH, settings, wall_ms=0, clean=False, recovery_point=6)
    assert refused.value.offset == 5


def test_a_batch_beyond_the_next_segment_is_cut_if_it_was_not_flushed() -> None:
    disk, settings, _ = two_segments()
    log = Log.open(disk, PATH, settings, wall_ms=0, clean=False)
    assert (bases(log, 0), log.end_offset) == ([0, 3, 4], 5)


def test_damage_of_a_base_offset_is_at_the_end_of_the_batch_before() -> None:
    """The owner lowers the recovery point to behind that offset. It was once the damaged offset,
    so nothing was lowered, and a broker stopped again after each start (simulation seed 4248)."""
    disk, settings, path = two_segments()
    log = Log.open(disk, PATH, settings, wall_ms=0, clean=True)
    found = log.first_damage(path)
    assert found is not None and found.offset == 5
    disk.flip(path, len(disk.content(path)) - 1)  # now it fails its CRC, too
    found = log.first_damage(path)
    assert found is not None and found.offset == 5


def compacted_segment() -> tuple[SimDisk, LogSettings, str, int]:
    """Return the disk of a log with the batches 0, 8, 9 and 11 in one segment, 12 and 13 in the
    next, its settings, the path of the first segment, and the size of a batch."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    size = len(batch(0, 1, [b"a"]))
    settings = LogSettings(segment_bytes=4 * size)
    log = Log.open(disk, PATH, settings, wall_ms=0, clean=False)
    for base in (0, 8, 9, 11, 12, 13):
        log.append(batch(base, 1, [b"a"]), wall_ms=0, gaps=True)
    log.flush()
    first, second = log._segments
    assert (first.base_offset, second.base_offset) == (0, 12)
    return disk, settings, first.path, size


def test_damage_of_a_base_offset_lies_in_its_segment() -> None:
    """9 becomes 11, and another 11 follows. The damage was once at offset 12, where the next
    segment begins. The next start began its check there, so a broker stopped again each time."""
    disk, settings, path, size = compacted_segment()
    disk.flip(path, 2 * size + LOW_BYTE, 0x02)
    log = Log.open(disk, PATH, settings, wall_ms=0, clean=True)
    found = log.first_damage(path)
    assert found is not None and found.offset == 9
    point = found.offset + 1
    with pytest.raises(CorruptLog, match="base offset 11, and the next one a lower one"):
        Log.open(disk, PATH, settings, wall_ms=0, clean=False, recovery_point=point)


def test_the_last_batch_of_a_segment_that_ends_too_early_is_set_aside() -> None:
    """11 becomes 10, and the next segment begins at 12. The batch was once kept at a wrong offset,
    and the replica fetched it a second time."""
    disk, settings, path, size = compacted_segment()
    disk.flip(path, 3 * size + LOW_BYTE, 0x01)
    with pytest.raises(CorruptLog, match="the next segment begins at offset 12"):
        Log.open(disk, PATH, settings, wall_ms=0, clean=False, recovery_point=12)
    log = Log.open(disk, PATH, settings, wall_ms=0, clean=False, set_aside=True)
    assert (bases(log, 0), log.end_offset) == ([0, 8, 9], 10)
    assert "the next segment begins at 12" in log.recovery.reason


def test_no_reader_gets_a_batch_beyond_the_next_segment() -> None:
    disk, settings, _ = two_segments()
    log = Log.open(disk, PATH, settings, wall_ms=0, clean=True)
    assert bases(log, 20) == [20, 21]
    with pytest.raises(CorruptLog, match="the batch has base offset 69"):
        log.read(4, 1_000)
    with pytest.raises(CorruptLog, match="the batch says offset 69, not 5"):
        for _ in read_parts(disk, log_parts(log, 0), ProducerStates()):
            pass


def test_verify_names_a_batch_beyond_the_next_segment() -> None:
    disk, _, path = two_segments()
    (found,) = verified(disk)
    assert (found.path, found.offset) == (path, 5)
    assert found.what == "the batch has base offset 69, the next segment 6"


def test_a_missing_segment_of_a_compacted_log_is_found_by_verify_and_by_the_start() -> None:
    """The segments of a compacted log join without a gap (docs/protocol/compaction.md)."""
    disk, settings, path = two_segments()
    disk.flip(path, 3 * len(disk.content(path)) // 4 + LOW_BYTE, 0x40)  # as it was written
    assert verified(disk) == []
    file = disk.open(path)
    file.truncate(3 * file.size() // 4)
    (found,) = verified(disk)
    assert "the segment before it ends at offset 5" in found.what
    with pytest.raises(CorruptLog, match="the next segment begins at offset 6"):
        Log.open(disk, PATH, settings, wall_ms=0, clean=False, recovery_point=6)


def verified(disk: SimDisk) -> list[CheckResult]:
    expected = LogExpectations(metadata=False, trusted_offset=22, compacted=True)
    check = LogCheck(disk, PATH, expected)
    check.run()
    return [each for each in check.results if each.kind is Kind.DAMAGED]

"""The range that may be cleaned, the grouping of segments, the throttle, and damaged sources."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from quorate.broker.compaction.cleanable import Cleanable, CompactionSettings, cleanable
from quorate.broker.compaction.grouping import MAX_GROUP_SEGMENTS, grouped
from quorate.broker.compaction.record_spans import RECORDS_PER_STEP, joined, moved, spans_of
from quorate.broker.compaction.segment_source import SourceSegment, read_batches
from quorate.broker.compaction.throttle import CHECK_INTERVAL_MS, IoThrottle
from quorate.quorum.log.batches.record import Record, decode_records, encode_records
from quorate.quorum.log.files.errors import CorruptLog
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import batch


@dataclass
class Sealed:
    base_offset: int
    next_offset: int
    size: int = 100
    first_timestamp_ms: int = 1_000
    max_timestamp_ms: int = 1_000


DEFAULTS = CompactionSettings()
SEGMENTS = [Sealed(0, 10), Sealed(10, 20), Sealed(20, 30), Sealed(30, 40)]


def found(
    settings: CompactionSettings = DEFAULTS,
    *,
    segments: list[Sealed] = SEGMENTS,
    checkpoint: int | None = 10,
    start: int = 0,
    high_watermark: int = 45,
    flushed: int = 45,
    wall_ms: int = 2_000,
) -> Cleanable:
    return cleanable(
        segments,
        settings,
        checkpoint=checkpoint,
        start_offset=start,
        end_offset=45,
        high_watermark=high_watermark,
        flushed_offset=flushed,
        active_base_offset=40,
        wall_ms=wall_ms,
    )


def test_the_dirty_range_ends_at_the_active_segment() -> None:
    range_ = found()
    assert (range_.first_dirty, range_.first_uncleanable) == (10, 40)
    assert (range_.clean_bytes, range_.dirty_bytes) == (100, 300)
    assert range_.ratio == 0.75


@pytest.mark.parametrize("bound", ["high_watermark", "flushed"])
def test_nothing_above_the_high_watermark_or_the_flushed_offset_is_cleaned(bound: str) -> None:
    """KAFKA-13194. A segment that reaches above either is not touched."""
    range_ = found(**{bound: 25})  # type: ignore[arg-type]
    assert range_.first_uncleanable == 25
    assert range_.dirty_bytes == 100


def test_the_first_young_segment_ends_the_range() -> None:
    segments = [*SEGMENTS[:2], Sealed(20, 30, max_timestamp_ms=1_900), SEGMENTS[3]]
    range_ = found(CompactionSettings(min_lag_ms=500), segments=segments)
    assert range_.first_uncleanable == 20
    assert found(CompactionSettings(min_lag_ms=100), segments=segments).first_uncleanable == 40


@pytest.mark.parametrize(("checkpoint", "start"), [(5, 10), (46, 10)])
def test_a_checkpoint_outside_of_the_log_gives_way_to_the_log_start(
    checkpoint: int, start: int
) -> None:
    """KAFKA-6266, KAFKA-9133."""
    range_ = found(checkpoint=checkpoint, start=start)
    assert (range_.first_dirty, range_.checkpoint_is_valid) == (10, False)


def test_the_ratio_must_exceed_its_minimum() -> None:
    half = found(checkpoint=20)
    assert half.ratio == 0.5
    assert not half.is_eligible(CompactionSettings(min_dirty_ratio=0.5))
    assert half.is_eligible(CompactionSettings(min_dirty_ratio=0.49))
    assert not found(segments=[]).is_eligible(CompactionSettings(min_dirty_ratio=0.0))


@pytest.mark.parametrize("checkpoint", [40, 43, 45])
def test_a_first_dirty_offset_in_the_active_segment_leaves_nothing_to_clean(
    checkpoint: int,
) -> None:
    """KAFKA-9826: the cleaner took the log again and again."""
    settings = CompactionSettings(min_dirty_ratio=0.0, max_lag_ms=1)
    for start in (0, checkpoint):
        range_ = found(settings, checkpoint=checkpoint, start=start)
        assert (range_.first_dirty, range_.first_uncleanable) == (checkpoint, checkpoint)
        assert range_.dirty_bytes == 0
        assert not range_.is_eligible(settings)


def test_the_ratio_of_a_large_log() -> None:
    """KAFKA-6030: a sum beyond 2^31 bytes became negative."""
    large = [Sealed(each.base_offset, each.next_offset, 2**31) for each in SEGMENTS]
    assert found(segments=large).ratio == 0.75


def test_an_old_dirty_segment_makes_a_clean_log_eligible() -> None:
    """KIP-354: the age counts from the first batch of the oldest dirty segment."""
    settings = CompactionSettings(min_dirty_ratio=1.0, max_lag_ms=1_000)
    assert not found(settings, wall_ms=2_000).is_eligible(settings)
    assert found(settings, wall_ms=2_001).is_eligible(settings)
    without = [Sealed(each.base_offset, each.next_offset, 100, -1, -1) for each in SEGMENTS]
    assert not found(settings, segments=without, wall_ms=10**9).is_eligible(settings)


def test_groups_fit_a_segment_and_an_index() -> None:
    """KAFKA-5413."""
    assert grouped(SEGMENTS, 250) == [SEGMENTS[:2], SEGMENTS[2:]]
    assert grouped(SEGMENTS, 50) == [[each] for each in SEGMENTS]
    far = [Sealed(0, 10), Sealed(10, 2**31), Sealed(2**31, 2**31 + 1)]
    assert grouped(far, 10**9) == [far[:2], far[2:]]  # KAFKA-5413
    many = [Sealed(each, each + 1) for each in range(MAX_GROUP_SEGMENTS + 1)]
    assert [len(each) for each in grouped(many, 10**9)] == [MAX_GROUP_SEGMENTS, 1]


def test_the_throttle_pauses_for_the_time_that_it_is_ahead() -> None:
    """KAFKA-7098: bytes count once."""
    throttle = IoThrottle(1_000.0, 0)
    assert throttle.pause_ms(100, 50) == 0
    assert throttle.pause_ms(900, CHECK_INTERVAL_MS) == 1_000 - CHECK_INTERVAL_MS
    assert throttle.pause_ms(0, 1_000 + CHECK_INTERVAL_MS) == 0
    assert throttle.pause_ms(1_000, 100_000) == 1_000, "idle time gives no credit"
    assert IoThrottle(1.7976931348623157e308, 0).pause_ms(1 << 40, 400) == 0


def test_spans_are_the_records() -> None:
    rand = random.Random(1)
    for _ in range(100):
        records = [
            Record(
                5 + number,
                1_000 + rand.randrange(-300, 300),
                rand.choice([None, b"", b"k" * rand.randrange(200)]),
                rand.choice([None, b"", b"v" * rand.randrange(200)]),
                rand.choice([(), (("h", None), ("i", b"x" * 99))]),
            )
            for number in range(rand.choice([rand.randrange(1, 20), rand.randrange(120, 400)]))
        ]
        payload = bytes(encode_records(records))
        lists = list(spans_of(payload, len(records)))
        assert max(map(len, lists)) <= RECORDS_PER_STEP
        spans = [span for spans in lists for span in spans]
        assert [(key, has_value) for *_, key, has_value in spans] == [
            (each.key, each.value is not None) for each in records
        ]
        chosen = [each for each in range(len(records)) if rand.random() < 0.6]
        delta_ms = rand.randrange(-(10**6), 10**6)
        base_ms = records[0].timestamp_ms
        for data, base in (
            (joined(payload, [spans[each] for each in chosen]), base_ms),
            (moved(payload, [spans[each] for each in chosen], delta_ms), base_ms - delta_ms),
        ):
            assert list(decode_records(bytes(data), len(chosen), 5, base)) == [
                records[each] for each in chosen
            ]


def source(content: bytes, next_offset: int = 10) -> tuple[SimDisk, SourceSegment]:
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/d")
    disk.open("/d/x", create=True).pwrite(content, 0)
    return disk, SourceSegment("/d/x", 0, next_offset, len(content))


GOOD = batch(0, 1, [b"a" * 50, b"b"]) + batch(5, 1, [b"c"]) + batch(9, 1, [b"d" * 300])


@pytest.mark.parametrize("buffer_bytes", [1, 61, 100, 10_000])
def test_sources_are_read_whatever_the_buffer_is(buffer_bytes: int) -> None:
    """KAFKA-6834: a batch larger than the buffer is read alone."""
    disk, segment = source(GOOD)
    found = list(read_batches(disk, segment, buffer_bytes, lambda header: 1))
    assert b"".join(each.data for each in found) == GOOD
    assert [each.header.base_offset for each in found] == [0, 5, 9]
    assert found[-1].end == len(GOOD)


def test_damage_of_a_source_is_noticed() -> None:
    for content in (
        GOOD[:-1],
        GOOD[:70] + b"\xff" + GOOD[71:],
        batch(5, 1, [b"x"]) + batch(0, 1, [b"y"]),
        batch(10, 1, [b"x"]),
        batch(0, 2, [b"x"]),
    ):
        disk, segment = source(content)
        with pytest.raises(CorruptLog):
            list(read_batches(disk, segment, 100, lambda header: 1))

"""A moment is the same from the nearest snapshot as from the beginning, and reads little."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.analytics.log import seek
from quorate.quorum.analytics.log.errors import OutOfHistory
from quorate.quorum.analytics.log.forward import forward, log_from
from quorate.quorum.analytics.log.reading import read_batches
from quorate.quorum.analytics.log.seek import Before, last_batch, last_before
from quorate.quorum.analytics.log.segments import (
    SEGMENT_NAME,
    files_named,
    log_slices,
    metadata_dir,
)
from quorate.quorum.analytics.replay.moment import Moment, moment
from quorate.quorum.analytics.replay.moment_json import as_json
from quorate.quorum.log.batches.batch import build_value_batch, read_header
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.records import NoOpRecord, PartitionChangeRecord
from tests.unit.analytics.logs import (
    SCRIPT,
    START_MS,
    STEP_MS,
    A,
    batches,
    leadership_of,
    snapshot_of,
    write_segment,
)
from tests.unit.metadata.kafka_dump import C1

MADE = batches()


def put_snapshot(directory: Path, end_offset: int, data: bytes, epoch: int = 1) -> Path:
    path = directory / "__cluster_metadata-0" / f"{end_offset:020d}-{epoch:010d}.checkpoint"
    path.write_bytes(data)
    return path


def with_snapshots(directory: Path) -> list[int]:
    """Write the log, with a snapshot after each batch that ends outside of transactions."""
    write_segment(directory, 0, b"".join(MADE))
    loader, ends = Loader(MetadataImage()), []
    for batch in metadata_batches(b"".join(MADE)):
        loader.feed([batch])
        end_offset = batch.last.offset + 1
        stable = loader.image.brokers and loader.image.last.offset + 1 == end_offset
        if stable and end_offset != AFTER_THE_ABORT:
            put_snapshot(directory, end_offset, snapshot_of(loader.image), batch.last.epoch)
            ends.append(end_offset)
    return ends


AFTER_THE_ABORT = 17
"""A snapshot that ends here has the time of the marker, which had no effect."""


def comparable(at: Moment) -> dict[str, Any]:
    return {name: value for name, value in as_json(at).items() if name != "skipped"}


def test_every_moment_is_the_same_with_and_without_snapshots(tmp_path: Path) -> None:
    plain, snapped = tmp_path / "plain", tmp_path / "snapped"
    write_segment(plain, 0, b"".join(MADE))
    assert len(with_snapshots(snapped)) > 10
    for offset in range(42):
        expected = comparable(moment(plain, offset=offset))
        assert comparable(moment(snapped, offset=offset)) == expected, offset
    for step in range(len(SCRIPT) + 1):
        for at_ms in (START_MS + step * STEP_MS, START_MS + step * STEP_MS + 300):
            expected = comparable(moment(plain, time_ms=at_ms))
            assert comparable(moment(snapped, time_ms=at_ms)) == expected, at_ms
    assert comparable(moment(snapped)) == comparable(moment(plain))


def test_a_real_kafkas_snapshots_give_the_same_moments(tmp_path: Path) -> None:
    """Its log alone, and with its two snapshots."""
    write_segment(tmp_path, 0, (C1 / "00000000000000000000.log").read_bytes())
    for offset in (124, 125, 200, 367, 368, 369, 478):
        expected = comparable(moment(tmp_path, offset=offset))
        assert comparable(moment(C1, offset=offset)) == expected, offset


def test_nothing_before_the_nearest_snapshot_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log before the snapshot is damaged, and the replay does not meet the damage."""
    monkeypatch.setattr(seek, "PROBE_BYTES", 64)
    ends = with_snapshots(tmp_path)
    path = tmp_path / "__cluster_metadata-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(MADE[0]) + 70] ^= 1
    path.write_bytes(data)
    assert moment(tmp_path, offset=ends[-1] - 1).offset == ends[-1] - 1


def test_a_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    ends = with_snapshots(tmp_path)
    at_ms = START_MS + 6 * STEP_MS
    expected = comparable(moment(tmp_path, offset=ends[5]))
    at_time = comparable(moment(tmp_path, time_ms=at_ms))
    for end_offset in (ends[5], ends[5] + 1):
        for path in (tmp_path / "__cluster_metadata-0").glob(f"{end_offset:020d}-*"):
            path.write_bytes(path.read_bytes()[:-5] + b"12345")
    assert comparable(moment(tmp_path, offset=ends[5])) == expected
    for path in (tmp_path / "__cluster_metadata-0").glob("*.checkpoint"):
        path.write_bytes(b"damaged" * 20)
    assert comparable(moment(tmp_path, time_ms=at_ms)) == at_time


def test_a_snapshot_after_a_step_of_the_clock_is_not_used(tmp_path: Path) -> None:
    """The first snapshot ends later than the time, so the second one does not count either."""
    one, two, three = (
        bytes(
            build_value_batch(
                [encode_record(NoOpRecord())],
                base_offset=offset,
                leader_epoch=1,
                timestamp_ms=START_MS + at_ms,
            )
        )
        for offset, at_ms in ((1, 0), (2, 5_000), (3, 100))
    )
    head = leadership_of(1, epoch=1, offset=0, at_ms=START_MS)
    write_segment(tmp_path, 0, head + one + two + three)
    for end_offset, at_ms in ((3, 5_000), (4, 100)):
        image = MetadataImage()._replace(last_timestamp_ms=START_MS + at_ms)
        values = [encode_record(NoOpRecord())]
        put_snapshot(
            tmp_path,
            end_offset,
            bytes(
                build_value_batch(
                    values, base_offset=0, leader_epoch=1, timestamp_ms=image.last_timestamp_ms
                )
            ),
        )
    assert moment(tmp_path, time_ms=START_MS + 100).offset == 1
    assert moment(tmp_path, time_ms=START_MS + 6_000).offset == 3


def long_log(directory: Path, sizes: list[int]) -> list[int]:
    """Write a segment of batches with these numbers of records. Return their base offsets."""
    offset, made, bases = 0, [], []
    for index, size in enumerate(sizes):
        change = PartitionChangeRecord(partition_id=index, topic_id=A, isr=tuple(range(size)))
        batch = build_value_batch(
            [encode_record(change)] * size,
            base_offset=offset,
            leader_epoch=index // 7,
            timestamp_ms=START_MS + index,
        )
        made.append(bytes(batch))
        bases.append(offset)
        offset += size
    write_segment(directory, 0, b"".join(made))
    return bases


def not_after(offset: int) -> Before:
    return lambda header: header.base_offset <= offset


@settings(max_examples=25)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=120), st.randoms())
def test_bisection_finds_the_batch_that_a_scan_finds(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], chance: random.Random
) -> None:
    directory = tmp_path_factory.mktemp("log")
    bases = long_log(directory, sizes)
    (segment,) = files_named(metadata_dir(str(directory)), SEGMENT_NAME)
    data = Path(segment.path).read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seek, "PROBE_BYTES", 512)
        for offset in chance.choices(range(sum(sizes)), k=5):
            position = last_before(segment, not_after(offset))
            expected = max(base for base in bases if base <= offset)
            assert read_header(data, position).base_offset == expected
        last = last_batch(metadata_dir(str(directory)))
    assert last is not None and last.next_offset == sum(sizes)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=40), st.integers(60, 3000), st.data())
def test_slices_planned_while_reading_hold_what_those_planned_in_advance_hold(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    cut: int,
    draw: st.DataObject,
) -> None:
    directory = tmp_path_factory.mktemp("log")
    bases = long_log(directory, sizes)
    from_offset = draw.draw(st.integers(0, sum(sizes)))
    found = metadata_dir(str(directory))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quorate.quorum.analytics.log.forward.SLICE_BYTES", cut)
        read = [
            header.base_offset
            for piece in log_from(found, from_offset)
            for header, _, _ in read_batches(piece)
        ]
        whole = [
            header.base_offset for piece in forward(found) for header, _, _ in read_batches(piece)
        ]
    ends = [*bases[1:], sum(sizes)]
    assert read == [base for base, end in zip(bases, ends, strict=True) if end > from_offset]
    assert (
        whole
        == bases
        == [
            header.base_offset
            for piece in log_slices(found, cut)
            for header, _, _ in read_batches(piece)
        ]
    )


def test_the_leader_of_a_moment_is_found_before_its_snapshot(tmp_path: Path) -> None:
    ends = with_snapshots(tmp_path)
    first, last = moment(tmp_path, offset=ends[3]), moment(tmp_path, offset=ends[-1] - 1)
    assert (first.leader, first.voters, last.leader, last.voters) == (1, (1,), 3, (3,))


def test_a_moment_beyond_the_end_is_refused_by_the_last_offset(tmp_path: Path) -> None:
    with_snapshots(tmp_path)
    with pytest.raises(OutOfHistory, match="the log ends at offset 41, before 42"):
        moment(tmp_path, offset=42)

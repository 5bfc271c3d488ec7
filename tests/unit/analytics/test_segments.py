"""Slices of a log hold every batch once, wherever they are cut. A torn end is not damage."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.analytics.log.chunks import chunks_of, combined, pass_chunk
from quorate.quorum.analytics.log.damage import Damage, Found, refuse
from quorate.quorum.analytics.log.errors import DamagedLog, NoMetadataLog
from quorate.quorum.analytics.log.plan import Choice, planned
from quorate.quorum.analytics.log.plan_text import decoded, encoded
from quorate.quorum.analytics.log.reading import read_batches
from quorate.quorum.analytics.log.seek import last_batch
from quorate.quorum.analytics.log.segments import (
    SEGMENT_NAME,
    Slice,
    files_named,
    log_slices,
    log_start_offset,
    metadata_dir,
    passes_here,
    snapshot_slices,
)
from quorate.quorum.log.batches.batch import build_value_batch, read_header
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import NoOpRecord
from tests.unit.analytics.logs import batches, write_segment
from tests.unit.analytics.test_moment import put_snapshot
from tests.unit.metadata.kafka_dump import C1, LOG

BATCHES = batches()


def offsets(directory: Path, slice_bytes: int = 1 << 20, found: Found = refuse) -> list[int]:
    """Return the base offsets of all batches, slice after slice."""
    return [
        header.base_offset
        for piece in log_slices(metadata_dir(str(directory)), slice_bytes)
        for header, _, _ in read_batches(piece, found)
    ]


def two_segments(tmp_path: Path, tail: bytes = b"") -> tuple[Path, Path, list[int]]:
    whole = b"".join(BATCHES)
    base = int.from_bytes(BATCHES[6][:8], "big")
    first = write_segment(tmp_path, 0, b"".join(BATCHES[:6]))
    second = write_segment(tmp_path, base, b"".join(BATCHES[6:]) + tail)
    assert len(whole) == first.stat().st_size + second.stat().st_size - len(tail)
    return first, second, [int.from_bytes(batch[:8], "big") for batch in BATCHES]


@settings(max_examples=40)
@given(st.integers(1, 4000))
def test_any_slice_size_gives_every_batch_once(slice_bytes: int) -> None:
    assert offsets(C1, slice_bytes) == WHOLE


WHOLE = offsets(C1)


def test_slices_cover_a_real_log_of_many_batches() -> None:
    assert len(WHOLE) > 200
    assert len(log_slices(C1, 1000)) == -(-LOG.stat().st_size // 1000)


@pytest.mark.parametrize("slice_bytes", [50, 1 << 20])
def test_a_torn_end_of_a_live_log_is_no_error(tmp_path: Path, slice_bytes: int) -> None:
    """R43 (tests/scenarios): a crash left a part of a batch that was never acknowledged."""
    for tail in (BATCHES[1][:-1], BATCHES[1][:70], BATCHES[1][:30], b"\0" * 500):
        _, _, expected = two_segments(tmp_path, tail)
        assert offsets(tmp_path, slice_bytes) == expected


@pytest.mark.parametrize("slice_bytes", [50, 1 << 20])
def test_damage_with_batches_behind_it_is_an_error(tmp_path: Path, slice_bytes: int) -> None:
    _, second, _ = two_segments(tmp_path)
    data = bytearray(second.read_bytes())
    data[len(BATCHES[6]) + 70] ^= 1
    second.write_bytes(data)
    with pytest.raises(DamagedLog, match=rf"{second.name}: the batch at byte {len(BATCHES[6])} "):
        offsets(tmp_path, slice_bytes)


@pytest.mark.parametrize("slice_bytes", [50, 1 << 20])
@pytest.mark.parametrize("damaged", [0, 3, 6, 8])
def test_a_permissive_reader_skips_exactly_the_damaged_batch(
    tmp_path: Path, slice_bytes: int, damaged: int
) -> None:
    files = two_segments(tmp_path)
    expected = files[2]
    file, first = (files[0], 0) if damaged < 6 else (files[1], 6)
    data = bytearray(file.read_bytes())
    data[sum(map(len, BATCHES[first:damaged])) + 70] ^= 1
    file.write_bytes(data)
    seen: list[Damage] = []
    assert offsets(tmp_path, slice_bytes, seen.append) == [
        offset for index, offset in enumerate(expected) if index != damaged
    ]
    lost = expected[damaged], expected[damaged + 1]
    assert [(each.kind, each.first_offset, each.end_offset) for each in seen] == [
        ("damaged-batch", *lost)
    ]


@pytest.mark.parametrize("slice_bytes", [50, 1 << 20])
@pytest.mark.parametrize("missing", [0, 3, 5, 8])
def test_missing_records_are_a_gap(tmp_path: Path, slice_bytes: int, missing: int) -> None:
    """Each batch is sound. Only the offsets show that one is missing, also between segments."""
    first, second, expected = two_segments(tmp_path)
    file, batches_in_it = (first, range(6)) if missing < 6 else (second, range(6, len(BATCHES)))
    file.write_bytes(b"".join(BATCHES[each] for each in batches_in_it if each != missing))
    seen: list[Damage] = []
    offsets(tmp_path, slice_bytes, seen.append)
    assert [(each.kind, each.first_offset, each.end_offset) for each in seen] == [
        ("gap", expected[missing], expected[missing + 1])
    ]
    with pytest.raises(DamagedLog, match=f"where offset {expected[missing]} must"):
        offsets(tmp_path, slice_bytes)


def test_a_torn_end_of_a_sealed_segment_is_damage(tmp_path: Path) -> None:
    first, _, _ = two_segments(tmp_path)
    first.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(DamagedLog, match=first.name):
        offsets(tmp_path)


def test_a_log_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    """A follower may truncate its uncommitted tail after the slices were planned."""
    _, second, expected = two_segments(tmp_path)
    pieces = log_slices(metadata_dir(str(tmp_path)), 1 << 20)
    second.write_bytes(second.read_bytes()[: -len(BATCHES[-1])])
    found = [header.base_offset for piece in pieces for header, _, _ in read_batches(piece)]
    assert found == expected[:-1]


def test_where_the_log_is(tmp_path: Path) -> None:
    two_segments(tmp_path)
    inside = tmp_path / "__cluster_metadata-0"
    assert metadata_dir(str(tmp_path)) == metadata_dir(f"file:{inside}") == inside
    with pytest.raises(NoMetadataLog, match="give a node's log directory"):
        metadata_dir(str(tmp_path / "elsewhere"))


def test_snapshots_are_found_and_the_base_is_the_one_where_the_log_begins(tmp_path: Path) -> None:
    assert len(snapshot_slices(C1, only_base=False)) == 2
    assert snapshot_slices(C1, only_base=True) == []
    write_segment(tmp_path, 125, b"")
    directory = metadata_dir(str(tmp_path))
    for name in ("00000000000000000125-0000000001", "00000000000000000368-0000000001"):
        (directory / f"{name}.checkpoint").write_bytes(b"")
    assert log_start_offset(directory) == 125
    (base,) = snapshot_slices(directory, only_base=True)
    assert base.snapshot is not None and base.snapshot.end_offset == 125


@settings(max_examples=40)
@given(st.integers(40, 2000), st.integers(30, 900), st.data())
def test_passes_over_parts_give_the_pass_over_the_whole(
    tmp_path_factory: pytest.TempPathFactory, chunk: int, ranges: int, draw: st.DataObject
) -> None:
    """The last part may end inside a batch. Damage in a part makes the parts useless."""
    directory = tmp_path_factory.mktemp("log")
    data = b"".join(BATCHES)
    cut = draw.draw(st.integers(0, len(data)))
    write_segment(directory, 0, data[:cut] or data)
    (segment,) = files_named(metadata_dir(str(directory)), SEGMENT_NAME)
    parts = [pass_chunk(each, ranges) for each in chunks_of([segment], chunk)]
    whole, (expected,) = combined(parts), passes_here([segment], ranges)
    assert whole is not None
    assert (whole.end, whole.markers) == (expected.end, expected.markers)
    positions = [each.position for each in whole.borders]
    assert positions == sorted(set(positions))
    for border in whole.borders:
        assert read_header(data, border.position).base_offset == border.base_offset


def test_parts_that_do_not_continue_each_other_do_not_count(tmp_path: Path) -> None:
    """A record contains a whole batch, and the second part begins with it."""
    inner = BATCHES[1]
    outer = bytes(build_value_batch([inner], base_offset=0, leader_epoch=1, timestamp_ms=1))
    write_segment(tmp_path, 0, outer + BATCHES[2])
    (segment,) = files_named(metadata_dir(str(tmp_path)), SEGMENT_NAME)
    parts = [pass_chunk(each, 1 << 20) for each in chunks_of([segment], 62)]
    assert parts[1].first == outer.index(inner), "it looks like a batch"
    assert combined(parts) is None


def test_a_plan_is_the_same_as_a_text() -> None:
    for include in ("base", "snapshots"):
        slices = planned(Choice(locations=(str(C1),), include=include, slice_bytes=5000))
        text = encoded(slices)
        assert decoded(text) == slices == planned(Choice(locations=(), plan=text))
        assert len(slices) > 5


@pytest.mark.parametrize("length", [0, 20 << 20])
def test_the_reader_of_a_damaged_slice_needs_little_memory(tmp_path: Path, length: int) -> None:
    """40 MB of zeros follow a batch, or a batch whose header claims 20 MB of them."""
    hole = bytearray(40 << 20)
    hole[8:12], hole[16] = length.to_bytes(4, "big"), 2
    hole[57:61] = (1).to_bytes(4, "big")
    end = read_header(BATCHES[0]).next_offset
    good = bytes(build_value_batch([b"x"], base_offset=end + 9, leader_epoch=1, timestamp_ms=1))
    write_segment(tmp_path, 0, BATCHES[0] + hole + good)
    (segment,) = files_named(metadata_dir(str(tmp_path)), SEGMENT_NAME)
    piece = Slice(segment.path, 0, 1000, segment.size_bytes, may_be_torn=True)
    seen: list[Damage] = []
    tracemalloc.start()
    try:
        found = [header.base_offset for header, _, _ in read_batches(piece, seen.append)]
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [0]
    assert [(each.first_offset, each.end_offset) for each in seen] == [(end, end + 9)]
    assert peak_bytes < length * 2.5 + (5 << 20)


def test_a_snapshot_is_read_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [encode_record(NoOpRecord())] * 4
    data = b"".join(
        bytes(build_value_batch(values, base_offset=at, leader_epoch=1, timestamp_ms=1))
        for at in range(0, 40, 4)
    )
    at_100 = build_value_batch(values, base_offset=100, leader_epoch=1, timestamp_ms=1)
    write_segment(tmp_path, 100, bytes(at_100))
    put_snapshot(tmp_path, 100, data)
    monkeypatch.setattr("quorate.quorum.analytics.log.forward.SLICE_BYTES", len(data) // 3)
    choice = Choice(locations=(str(tmp_path),), include="base")
    slices = [piece for piece in planned(choice) if piece.snapshot and not piece.only_named]
    assert len(slices) == 4
    assert [header.base_offset for piece in slices for header, _, _ in read_batches(piece)] == list(
        range(0, 40, 4)
    )


def test_damage_does_not_end_the_planning_of_a_permissive_reader(tmp_path: Path) -> None:
    """The first batch is damaged, and the end of the log is found all the same."""
    data = bytearray(b"".join(BATCHES))
    data[70] ^= 1
    path = write_segment(tmp_path, 0, bytes(data))
    last = last_batch(path.parent)
    assert last is not None and last.base_offset == read_header(BATCHES[-1]).base_offset
    assert planned(Choice(locations=(str(tmp_path),)))

"""The records and batches that stay, one rule at a time."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from quorate.broker.compaction.batch_filter import MAX_HORIZON_MS, Retention, filtered
from quorate.broker.compaction.offset_map import ENTRY_BYTES, OffsetMap
from quorate.quorum.incremental_work import finished
from quorate.quorum.log.batches.batch import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    BatchHeader,
    assemble,
    build_batch,
    checksum_is_valid,
    read_header,
    records_of,
    set_append_time,
)
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from quorate.quorum.seams import Buffer

NOW = 50_000
RETENTION_MS = 1_000
HEADERS = (("h", b"x" * 200), ("n", None))


def retention(
    latest: Mapping[bytes, int], end: int = 100, now_ms: int = NOW, **options: object
) -> Retention:
    """Return the facts of a cleaning whose map has these keys, and reaches up to `end`."""
    offsets = OffsetMap(1 << 20, 1.0)
    for key, offset in sorted(latest.items(), key=lambda each: each[1]):
        assert offsets.put(key, offset)
    offsets.commit(end)
    return Retention(offsets, now_ms, RETENTION_MS, **options)  # type: ignore[arg-type]


def batch(
    *pairs: tuple[bytes | None, bytes | None], base: int = 10, codec: Codec = Codec.NONE
) -> bytearray:
    """Return a batch of these keys and values, with different timestamps."""
    records = [
        Record(base + number, 1_000 + 300 * number, key, value, HEADERS)
        for number, (key, value) in enumerate(pairs)
    ]
    return build_batch(records, leader_epoch=3, codec=codec)


def clean(data: Buffer, facts: Retention, *, last: bool = False) -> Buffer | None:
    header = read_header(data)
    return finished(filtered(data, header, facts, last=last))


def read(data: Buffer | None) -> tuple[BatchHeader, list[Record]]:
    assert data is not None
    header = read_header(data)
    assert checksum_is_valid(data, 0, header)
    assert header.size_bytes == len(data)
    return header, [
        each._replace(
            key=each.key and bytes(each.key),
            value=None if each.value is None else bytes(each.value),
            headers=tuple((name, value and bytes(value)) for name, value in each.headers),
        )
        for each in records_of(bytes(data), 0, header)
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_superseded_records_go_and_the_others_keep_everything(codec: Codec) -> None:
    data = batch((b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"a", b"4"), codec=codec)
    before, records = read(data)
    header, kept = read(clean(data, retention({b"c": 12, b"a": 13, b"b": 40})))
    assert kept == [records[2], records[3]]
    assert header.record_count == 2
    same = ("base_offset", "last_offset_delta", "leader_epoch", "producer_id", "attributes")
    assert all(getattr(header, each) == getattr(before, each) for each in same)
    assert header.max_timestamp_ms == kept[-1].timestamp_ms


def test_the_largest_timestamp_is_that_of_the_records_that_stay() -> None:
    data = batch((b"a", b"1"), (b"b", b"2"), (b"c", b"3"))
    header, _ = read(clean(data, retention({b"a": 10, b"b": 11, b"c": 50})))
    assert header.max_timestamp_ms == 1_300


def test_log_append_time_keeps_its_timestamp() -> None:
    data = batch((b"a", b"1"), (b"b", b"2"))
    set_append_time(data, 7_777)
    header, kept = read(clean(data, retention({b"a": 10, b"b": 50})))
    assert header.attributes & LOG_APPEND_TIME
    assert (header.max_timestamp_ms, kept[0].timestamp_ms) == (7_777, 7_777)


def test_a_batch_that_stays_whole_is_the_same_bytes() -> None:
    data = batch((b"a", b"1"), (b"b", b"2"))
    assert clean(data, retention({b"a": 10})) is data


def test_records_above_the_map_stay() -> None:
    data = batch((b"a", b"1"), (b"b", b"2"), (None, b"3"))
    _, kept = read(clean(data, retention({b"a": 9}, end=9)))
    assert len(kept) == 3


def test_a_record_without_a_key_goes() -> None:
    data = batch((None, b"1"), (b"b", b"2"))
    _, kept = read(clean(data, retention({})))
    assert [each.key for each in kept] == [b"b"]


def test_a_tombstone_gets_its_horizon_at_the_first_rewrite_and_goes_after_it() -> None:
    """KAFKA-4529: a reader has delete.retention.ms to see it. KIP-534: the horizon is the base
    timestamp, bit 6 of the attributes marks it, and the timestamps of the records stay."""
    data = batch((b"a", b"1"), (b"b", None), (b"c", b"3"))
    _, records = read(data)
    stamped = clean(data, retention({b"a": 10, b"b": 11, b"c": 12}))
    header, kept = read(stamped)
    assert kept == records
    assert header.attributes & DELETE_HORIZON
    assert header.base_timestamp_ms == header.delete_horizon_ms == NOW + RETENTION_MS
    assert stamped is not None
    # Before the horizon nothing changes, and the horizon is not renewed (KAFKA-8522).
    assert clean(stamped, retention({}, now_ms=NOW + RETENTION_MS - 1)) is stamped
    header, kept = read(clean(stamped, retention({}, now_ms=NOW + RETENTION_MS)))
    assert kept == [records[0], records[2]]
    assert header.delete_horizon_ms == NOW + RETENTION_MS


def test_the_largest_retention_keeps_tombstones_forever() -> None:
    """A delete.retention.ms of 2^63 - 1 must not exceed the field of the base timestamp."""
    facts = retention({b"b": 10})
    facts.delete_retention_ms = 2**63 - 1
    stamped = clean(batch((b"b", None)), facts)
    header, kept = read(stamped)
    assert header.delete_horizon_ms == MAX_HORIZON_MS
    assert [each.timestamp_ms for each in kept] == [1_000]
    assert stamped is not None
    assert clean(stamped, retention({b"b": 10}, now_ms=2**62)) is stamped


def test_a_superseded_tombstone_goes_immediately() -> None:
    assert clean(batch((b"a", None)), retention({b"a": 20})) is None


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_the_last_batch_of_a_producer_and_of_a_segment_stay_without_records(codec: Codec) -> None:
    """KAFKA-7385, KAFKA-7467: a later cleaning reads an empty batch. KAFKA-12889: no segment
    becomes empty, because its last batch stays. KAFKA-5490, KAFKA-8335, KAFKA-17076."""
    data = build_batch(
        [Record(10 + each, 1_000, b"a", b"1") for each in range(3)],
        leader_epoch=3,
        codec=codec,
        producer_id=7,
        producer_epoch=2,
        base_sequence=5,
    )
    before = read_header(data)
    gone = {b"a": 50}
    assert clean(data, retention(gone)) is None
    assert clean(data, retention(gone, last_batches={7: 99, 8: 12})) is None
    for empty in (
        clean(data, retention(gone, last_batches={7: 12})),
        clean(data, retention(gone), last=True),
    ):
        header, kept = read(empty)
        assert kept == []
        assert header == before._replace(
            length=49,
            crc=header.crc,
            attributes=0,
            base_timestamp_ms=-1,
            record_count=0,
        )
        # A later cleaning keeps it as long as there is a reason.
        assert empty is not None
        assert clean(empty, retention({}, last_batches={7: 12})) is empty
        assert clean(empty, retention({})) is None


def test_control_batches_stay_and_their_keys_are_not_compared() -> None:
    """KAFKA-8351, KAFKA-13727: no marker of a transaction goes too early. KAFKA-14055."""
    data = build_batch([Record(10, 1_000, b"a", b"1")], leader_epoch=3, flags=CONTROL)
    assert clean(data, retention({b"a": 50})) is data


class Discarding:
    """Transactions whose data is gone."""

    def discards_data(self, header: BatchHeader) -> bool:
        return True

    def discards_marker(self, header: BatchHeader, batch: Buffer) -> bool:
        return True


def test_a_marker_without_data_goes_after_its_horizon_and_aborted_data_at_once() -> None:
    marker = build_batch([Record(10, 1_000, b"k", b"v")], leader_epoch=3, flags=CONTROL)
    stamped = clean(marker, retention({}, transactions=Discarding()))
    header, kept = read(stamped)
    assert len(kept) == 1
    assert header.delete_horizon_ms == NOW + RETENTION_MS
    assert stamped is not None
    later = NOW + RETENTION_MS
    assert clean(stamped, retention({}, now_ms=later - 1, transactions=Discarding())) is stamped
    assert clean(stamped, retention({}, now_ms=later, transactions=Discarding())) is None
    assert clean(batch((b"a", b"1")), retention({b"a": 10}, transactions=Discarding())) is None


def test_an_unreadable_batch_stays_byte_for_byte() -> None:
    """Its CRC is right, so a producer sent it like this. No reader can tell what is in it."""
    header = read_header(batch((b"a", b"1")))
    poison = assemble(b"\x7fgarbage", header)
    assert clean(poison, retention({b"a": 50})) is poison


def test_the_map_is_bounded_by_its_memory() -> None:
    offsets = OffsetMap(ENTRY_BYTES * 4, 0.5)
    assert offsets.capacity == 2
    assert offsets.put(b"a", 1)
    assert offsets.put(b"b", 2)
    assert offsets.put(b"a", 3), "a known key needs no room"
    assert not offsets.put(b"c", 4)
    offsets.commit(3)
    assert offsets.latest_offset == 3
    assert (offsets.offset_of(b"a"), offsets.offset_of(b"c")) == (3, -1)

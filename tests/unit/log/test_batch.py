"""Encoded and decoded batches and records, compared with Kafka's bytes and with each other."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.log.batches.batch import (
    CONTROL,
    HEADER_BYTES,
    TRANSACTIONAL,
    assign,
    batches,
    build_batch,
    build_value_batch,
    checksum_is_valid,
    read_header,
    records_of,
    set_append_time,
)
from quorate.quorum.log.batches.compression import Codec, compress, decompress
from quorate.quorum.log.batches.record import Record, decode_records, encode_records
from quorate.quorum.log.files.errors import CorruptBatch

MAX_EXAMPLES = 150

buffers = st.one_of(st.none(), st.binary(max_size=300))
headers = st.lists(st.tuples(st.text(max_size=5), buffers), max_size=3).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 8))):
        timestamp_ms = draw(st.integers(-1, 2**42))
        records.append(Record(offset, timestamp_ms, draw(buffers), draw(buffers), draw(headers)))
        offset += draw(st.integers(1, 200))
    return records


@settings(max_examples=MAX_EXAMPLES)
@given(record_lists(), st.sampled_from(list(Codec)), st.integers(0, 2**31 - 1))
def test_a_batch_gives_back_its_records(
    records: list[Record], codec: Codec, leader_epoch: int
) -> None:
    data = build_batch(records, leader_epoch=leader_epoch, codec=codec)
    ((position, header),) = batches(data)
    assert list(records_of(bytes(data), position, header)) == records
    assert header.leader_epoch == leader_epoch
    assert (header.base_offset, header.last_offset) == (records[0].offset, records[-1].offset)
    assert header.max_timestamp_ms == max(record.timestamp_ms for record in records)
    assert header.codec == codec
    assert header.record_count == len(records)


def test_the_short_way_writes_the_same_bytes() -> None:
    values = [b"", b"a", b"x" * 200, b"y" * 70_000]
    records = [Record(40 + delta, 9, None, value) for delta, value in enumerate(values)]
    assert build_value_batch(values, base_offset=40, leader_epoch=2, timestamp_ms=9) == build_batch(
        records, leader_epoch=2
    )


def test_assigning_offset_and_epoch_leaves_the_checksum_true() -> None:
    data = bytearray(b"before") + build_batch([Record(0, 5, None, b"v")], leader_epoch=0)
    assign(data, 2**40, 77, 6)
    ((_, header),) = batches(memoryview(data)[6:])
    assert (header.base_offset, header.leader_epoch) == (2**40, 77)


def test_append_time_is_the_time_of_every_record() -> None:
    data = build_batch([Record(0, 5, None, b"v"), Record(1, 7, None, b"w")], leader_epoch=0)
    set_append_time(data, 1_234)
    ((position, header),) = batches(data)
    assert header.is_log_append_time
    assert [record.timestamp_ms for record in records_of(data, position, header)] == [1_234, 1_234]


def test_flags() -> None:
    data = build_batch(
        [Record(0, 5, b"key", b"v")], leader_epoch=0, flags=CONTROL | TRANSACTIONAL, producer_id=9
    )
    header = read_header(data)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.codec) == (9, 0)


def test_every_damaged_byte_from_the_attributes_on_fails_the_checksum() -> None:
    data = bytes(build_batch([Record(3, 5, b"k", b"value")], leader_epoch=1))
    for position in range(17, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        assert not checksum_is_valid(damaged, 0, read_header(data)._replace(crc=0)) or position < 21
        with pytest.raises(CorruptBatch):
            list(batches(damaged))


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (16, struct.pack(">b", 1), "magic 1"),
        (8, struct.pack(">i", 48), "length 48"),
        (8, struct.pack(">i", -1), "length -1"),
        (8, struct.pack(">i", 2**31 - 1), "the data at"),
        (23, struct.pack(">i", -1), "last offset delta -1"),
    ],
)
def test_a_header_that_cannot_be_is_refused(at: int, value: bytes, reason: str) -> None:
    """R48: a wrong length may also ask for gigabytes."""
    data = build_batch([Record(3, 5, b"k", b"value")], leader_epoch=1)
    data[at : at + len(value)] = value
    with pytest.raises(CorruptBatch, match=reason):
        list(batches(data))


def test_a_cut_batch_is_refused() -> None:
    data = build_batch([Record(3, 5, b"k", b"value")], leader_epoch=1)
    for size in range(1, len(data)):
        with pytest.raises(CorruptBatch):
            list(batches(data[:size]))


@settings(max_examples=MAX_EXAMPLES)
@given(st.binary(max_size=120), st.integers(0, 5))
def test_records_of_any_bytes_are_records_or_a_corrupt_batch(payload: bytes, count: int) -> None:
    try:
        found = list(decode_records(payload, count, 0, 0))
    except CorruptBatch:
        return
    assert len(found) == count


@settings(max_examples=MAX_EXAMPLES)
@given(record_lists(), st.data())
def test_a_damaged_payload_never_leads_outside_of_it(
    records: list[Record], data: st.DataObject
) -> None:
    payload = encode_records(records)
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = list(decode_records(bytes(payload), len(records), 0, 0))
    except CorruptBatch:
        return
    assert sum(len(record.value or b"") for record in found) <= len(payload)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_garbage_is_no_compressed_payload(codec: Codec) -> None:
    whole = compress(codec, b"some bytes that repeat " * 200)
    assert decompress(codec, whole) == b"some bytes that repeat " * 200
    for damaged in (b"", b"\x00garbage" * 9, whole[: len(whole) // 2], b"\x82SNAPPY\x00cut"):
        with pytest.raises(CorruptBatch):
            decompress(codec, damaged)


def test_snappy_without_frames_is_read_too() -> None:
    import cramjam

    assert (
        decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"bare" * 99))) == b"bare" * 99
    )


def test_lz4_blocks_are_independent_since_kafka_reads_no_others() -> None:
    block_independence = 0x20
    assert compress(Codec.LZ4, b"some bytes " * 20_000)[4] & block_independence


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(CorruptBatch, match="codec 5"):
        decompress(5, b"")


def test_views_stay_views() -> None:
    data = memoryview(build_batch([Record(3, 5, b"k", b"value")], leader_epoch=1))
    (record,) = records_of(data, 0, read_header(data))
    assert isinstance(record.value, memoryview)
    assert HEADER_BYTES == 61

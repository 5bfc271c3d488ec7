"""No batch that a producer can send harms the node that stores it.

The oracle is simple: a batch is accepted or refused with one of Kafka's error codes, and every
reader of an accepted batch reads it or raises CorruptBatch.
"""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.broker.partition import validation
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.partition.validation import validate_client_batch
from quorate.quorum.log.batches import compression
from quorate.quorum.log.batches.batch import CRC_FROM, HEADER_BYTES, BatchHeader, build_batch
from quorate.quorum.log.batches.compression import Codec, Decompressed, decompress_beginning
from quorate.quorum.log.batches.record import Record, decode_records, encode_records
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from tests.attacks.batches import INT32_MAX, INT64_MAX, records, sealed
from tests.attacks.bombs import bombs
from tests.attacks.poison import POISON
from tests.unit.partition.poison import WALL_MS, check_batch, check_stored

FIELDS = {
    name: (offset, form)
    for name, offset, form in (
        ("base_offset", 0, ">q"),
        ("length", 8, ">i"),
        ("leader_epoch", 12, ">i"),
        ("magic", 16, ">b"),
        ("attributes", 21, ">h"),
        ("last_offset_delta", 23, ">i"),
        ("base_timestamp_ms", 27, ">q"),
        ("max_timestamp_ms", 35, ">q"),
        ("producer_id", 43, ">q"),
        ("producer_epoch", 51, ">h"),
        ("base_sequence", 53, ">i"),
        ("record_count", 57, ">i"),
    )
}
EDGES = (-2, -1, 0, 1, 2, 3, 7, 64, 100, WALL_MS, WALL_MS + 2)
BITS = {">b": 7, ">h": 15, ">i": 31, ">q": 63}
GOOD = records()


def test_the_fields_are_those_of_the_header() -> None:
    assert set(FIELDS) | {"crc"} == set(BatchHeader._fields)


def seal(data: bytearray) -> bytes:
    struct.pack_into(">I", data, CRC_FROM - 4, crc32c(bytes(data[CRC_FROM:])))
    return bytes(data)


@st.composite
def good_batches(draw: st.DrawFn) -> bytearray:
    count = draw(st.integers(1, 30))
    size = draw(st.sampled_from([0, 3, 57, 58, 300]))
    made = [
        Record(
            at,
            draw(st.sampled_from([WALL_MS, WALL_MS + at, WALL_MS - 500 * at])),
            draw(st.sampled_from([None, b"", b"key"])),
            b"v" * (size + draw(st.integers(0, 1))),
            (("name", b"x"),) if at % 7 == 3 else (),
        )
        for at in range(count)
    ]
    producer = (
        {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0} if draw(st.booleans()) else {}
    )
    return build_batch(made, leader_epoch=-1, codec=draw(st.sampled_from(list(Codec))), **producer)


@st.composite
def changed_batches(draw: st.DrawFn) -> bytes:
    """Generate good batches with changed header fields, payload bytes or length, and a right
    CRC."""
    data = draw(good_batches())
    for name in draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=2)):
        offset, form = FIELDS[name]
        most = 2 ** BITS[form] - 1
        number = draw(st.one_of(st.sampled_from([*EDGES, most, most - 1, -most - 1])))
        struct.pack_into(form, data, offset, max(-most - 1, min(most, number)))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(HEADER_BYTES, len(data) - 1))
        data[place] = draw(st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 0x7F, 0x80, 255])))
    if draw(st.integers(0, 4)) == 0:
        del data[draw(st.integers(HEADER_BYTES, len(data))) :]
        if draw(st.booleans()):
            struct.pack_into(">i", data, 8, len(data) - 12)
    return seal(data)


@given(good_batches())
@settings(max_examples=60)
def test_good_batches_are_taken_and_read(data: bytearray) -> None:
    assert check_batch(bytes(data))


@given(changed_batches())
@settings(max_examples=250)
def test_changed_batches_harm_nothing(data: bytes) -> None:
    check_batch(data)
    check_stored(data)


@given(codec=st.integers(0, 7), payload=st.binary(max_size=200), count=st.integers(1, 40))
@settings(max_examples=150)
def test_any_payload_harms_nothing(codec: int, payload: bytes, count: int) -> None:
    data = sealed(payload, attributes=codec, record_count=count, last_offset_delta=count - 1)
    check_batch(data)
    check_stored(data)


@pytest.mark.parametrize("name", POISON)
def test_known_poison_harms_nothing(name: str) -> None:
    check_batch(POISON[name])
    check_stored(POISON[name])


ACCEPTED = {"timestamps of -1", "great producer"}


@pytest.mark.parametrize("name", POISON)
def test_known_poison_is_refused(name: str) -> None:
    data, default = POISON[name], PartitionSettings()
    if name in ACCEPTED:
        validate_client_batch(data, default, WALL_MS)
        return
    with pytest.raises(KafkaError):
        validate_client_batch(data, default, WALL_MS)


@pytest.mark.parametrize("name", bombs(quick=True))
def test_bombs_harm_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED_BYTES", 1 << 20)
    codec, payload = bombs(quick=True)[name]
    for count in (3, 1_000_000):
        data = sealed(payload, attributes=codec, record_count=count, last_offset_delta=count - 1)
        check_batch(data)
        if len(payload) < 50_000:
            check_stored(data)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"attributes": 0x40}, ErrorCode.INVALID_RECORD),
        ({"attributes": -0x8000}, ErrorCode.INVALID_RECORD),
        ({"attributes": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"attributes": 0x10}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"base_offset": 1}, ErrorCode.INVALID_RECORD),
        ({"producer_id": -2}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 1, "producer_epoch": -1, "base_sequence": 0}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 1, "producer_epoch": 0}, ErrorCode.INVALID_RECORD),
        ({"base_timestamp_ms": -2}, ErrorCode.INVALID_TIMESTAMP),
        ({"max_timestamp_ms": -1}, ErrorCode.INVALID_TIMESTAMP),
        ({"base_timestamp_ms": WALL_MS + 3}, ErrorCode.INVALID_TIMESTAMP),
        ({"max_timestamp_ms": INT64_MAX}, ErrorCode.INVALID_TIMESTAMP),
        ({"record_count": INT32_MAX, "last_offset_delta": INT32_MAX - 1}, ErrorCode.INVALID_RECORD),
        ({"record_count": 4, "last_offset_delta": 3}, ErrorCode.INVALID_RECORD),
        ({"record_count": 2, "last_offset_delta": 1}, ErrorCode.INVALID_RECORD),
    ],
)
def test_each_field_has_its_rule(fields: dict[str, int], code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refused:
        validate_client_batch(sealed(GOOD, **fields), PartitionSettings(), WALL_MS)
    assert refused.value.code is code


def test_records_without_a_timestamp_are_never_too_old() -> None:
    """Kafka does not apply message.timestamp.before.max.ms to records without a timestamp."""
    bounded = PartitionSettings(timestamp_before_max_ms=10, timestamp_after_max_ms=10)
    timeless = sealed(records(3, -1), base_timestamp_ms=-1, max_timestamp_ms=1)
    validate_client_batch(timeless, bounded, 0)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_a_compressed_batch_claims_no_more_records_than_it_can_hold(codec: Codec) -> None:
    good = build_batch([Record(0, WALL_MS, None, b"v" * 60_000)], leader_epoch=-1, codec=codec)
    validate_client_batch(good, PartitionSettings(), WALL_MS)
    for count in (2, 1 << 20, INT32_MAX):
        struct.pack_into(">i", good, 57, count)
        struct.pack_into(">i", good, 23, count - 1)
        limit = PartitionSettings()
        if count > 2:
            with pytest.raises(KafkaError, match="cannot hold"):
                validate_client_batch(seal(good), limit, WALL_MS)


def test_a_large_compressed_batch_is_opened_at_its_beginning_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = [Record(at, WALL_MS, None, b"v" * 100) for at in range(5_000)]
    data = build_batch(made, leader_epoch=-1, codec=Codec.ZSTD)
    opened: list[int] = []

    def watched(codec: int, payload: bytes, max_bytes: int) -> Decompressed:
        beginning = decompress_beginning(codec, payload, max_bytes)
        opened.append(len(beginning.data))
        return beginning

    monkeypatch.setattr(validation, "decompress_beginning", watched)
    validate_client_batch(data, PartitionSettings(), WALL_MS)
    assert opened == [validation.CHECKED_BYTES]


@pytest.mark.parametrize(
    ("base_ms", "second"),
    [
        (INT64_MAX, Record(1, 0, None, b"v")),
        (INT64_MAX - 100, Record(1, 1_000, None, b"v")),
        (-(2**63), Record(1, 0, None, b"v")),
        (-(2**63) + 100, Record(1, -1_000, None, b"v")),
        (0, Record(2**31, 0, None, b"v")),
        (0, Record(1, 2**64, None, b"v")),
    ],
)
def test_numbers_of_records_that_leave_their_range_are_a_corrupt_batch(
    base_ms: int, second: Record
) -> None:
    payload = bytes(encode_records([Record(0, 0, None, b"v"), second]))
    with pytest.raises(CorruptBatch):
        list(decode_records(payload, 2, 0, base_ms))

"""Guarantees of the compiled readers and writers beyond a round trip."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from quorate.quorum.metadata.records import ConfigRecord, PartitionChangeRecord
from quorate.quorum.protocol.codec import DecodeError, EncodeError, decode, encode, reader, writer
from quorate.quorum.protocol.field_bounds import CLIENT_TEXT, REPLICAS
from quorate.quorum.protocol.schemas.fetch import FetchRequest, ReplicaState
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataRequestTopic
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from quorate.quorum.protocol.wire import wire
from quorate.quorum.seams import ProtocolError


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    number: int = wire("int8", default=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    name: str = wire("string", bound=CLIENT_TEXT, default="")
    maybe: Inner | None = wire(nullable="0+", default=None)
    late: int = wire("int32", versions="2+", default=9)
    second: str = wire("string", tag=5, bound=CLIENT_TEXT, default="x")
    first: tuple[int, ...] = wire("int16", tag=1, count=REPLICAS, default=())


def test_tags_are_written_in_ascending_order() -> None:
    data = encode(Sample(second="y", first=(1,)), 0)
    assert data == b"\x01\xff\x02\x01\x03\x02\x00\x01\x05\x02\x02y"


def test_tagged_defaults_are_left_out() -> None:
    assert encode(Sample(), 0) == b"\x01\xff\x00"


def test_a_nullable_struct_is_preceded_by_one_byte() -> None:
    data = encode(Sample(maybe=Inner(number=4)), 0)
    assert data == b"\x01\x01\x04\x00\x00"
    assert decode(Sample, 0, data).maybe == Inner(number=4)


def test_a_field_outside_the_version_reads_as_its_default() -> None:
    assert decode(Sample, 1, encode(Sample(late=1), 1)).late == 9
    assert decode(Sample, 2, encode(Sample(late=1), 2)).late == 1


def test_trailing_bytes_are_tolerated_and_positions_returned() -> None:
    data = b"??" + encode(Sample(name="n"), 0) + b"more"
    value, end = reader(Sample, 0, True)(data, 2)
    assert value == Sample(name="n")
    assert data[end:] == b"more"


def test_a_known_tag_must_fill_its_size() -> None:
    with pytest.raises(DecodeError, match="second"):
        decode(Sample, 0, b"\x01\xff\x01\x05\x03\x02yz")


def test_null_where_it_is_not_allowed() -> None:
    with pytest.raises(DecodeError, match=r"name .*null"):
        decode(Sample, 0, b"\x00\xff\x00")
    with pytest.raises(DecodeError, match="topic_data"):
        decode(ProduceRequest, 3, b"\xff\xff\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff")


def test_a_length_below_minus_one() -> None:
    with pytest.raises(DecodeError, match="negative"):
        decode(ProduceRequest, 3, b"\xff\xfe" + bytes(10))


def test_an_array_is_bounded_by_the_bytes_left_before_anything_is_allocated() -> None:
    huge = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(DecodeError, match="do not fit"):
        decode(MetadataRequest, 1, huge)
    # 40 topics of at least 6 bytes each do not fit in 200 bytes either.
    with pytest.raises(DecodeError, match="do not fit"):
        decode(ProduceRequest, 3, b"\xff\xff" + bytes(6) + (40).to_bytes(4, "big") + bytes(200))


def test_a_varint_longer_than_five_bytes() -> None:
    with pytest.raises(DecodeError, match="longer"):
        decode(Sample, 0, b"\x80\x80\x80\x80\x80\x01")


def test_text_must_be_utf8() -> None:
    with pytest.raises(DecodeError, match="UTF-8"):
        decode(Sample, 0, b"\x03\xc3\x28\xff\x00")


def test_a_decode_error_closes_the_link_as_a_protocol_error() -> None:
    assert issubclass(DecodeError, ProtocolError)


def test_records_are_views_of_the_input() -> None:
    request = ProduceRequest(
        acks=1,
        timeout_ms=5,
        topic_data=(
            TopicProduceData(
                name="t", partition_data=(PartitionProduceData(index=0, records=b"batch"),)
            ),
        ),
    )
    data = bytearray(encode(request, 9))
    records = decode(ProduceRequest, 9, memoryview(data)).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    data[data.index(b"batch")] = ord("B")
    assert bytes(records) == b"Batch"


def test_what_the_schema_cannot_say_is_an_encode_error() -> None:
    with pytest.raises(EncodeError, match="MetadataRequest"):
        encode(MetadataRequest(topics=(MetadataRequestTopic(name="x" * 40_000),)), 1)
    with pytest.raises(EncodeError):
        encode(MetadataRequest(topics=(MetadataRequestTopic(name=None),)), 1)
    with pytest.raises(EncodeError):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(EncodeError):
        encode(ConfigRecord(resource_type=1 << 7, resource_name="", name="", value=None), 0)


def test_a_message_is_flexible_as_its_api_says_and_a_record_always() -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    assert encode(request, 8) == b"\x00\x00\x00\x01\x00\x01t\x01\x00\x00"
    assert encode(request, 9) == b"\x02\x02t\x00\x01\x00\x00\x00"
    assert encode(PartitionChangeRecord(partition_id=1), 0)[-1] == 0


def test_a_struct_is_a_tag_of_one_version_and_a_plain_field_before() -> None:
    """Return the replica id of FetchRequest moved into a tagged struct in version 15 (KIP-903)."""
    request = FetchRequest(
        replica_id=3,
        replica_state=ReplicaState(replica_id=3, replica_epoch=8),
        max_wait_ms=1,
        min_bytes=1,
        topics=(),
    )
    old, new = (
        decode(FetchRequest, 14, encode(request, 14)),
        decode(FetchRequest, 15, encode(request, 15)),
    )
    assert (old.replica_id, old.replica_state.replica_id) == (3, -1)
    assert (new.replica_id, new.replica_state.replica_id) == (-1, 3)


def test_writers_append() -> None:
    out = bytearray(b"head")
    writer(Sample, 0, True)(out, Sample())
    assert out == b"head\x01\xff\x00"


def test_a_class_that_is_no_plain_slots_dataclass_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Slotless:
        name: str = wire("string", bound=CLIENT_TEXT)

    with pytest.raises(TypeError, match="slots"):
        reader(Slotless, 0, True)

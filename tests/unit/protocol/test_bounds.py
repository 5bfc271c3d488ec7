"""Every field of variable size in a request or record has a bound, and readers enforce it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from quorate.broker.groups import records as group_records
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.incremental_work import finished
from quorate.quorum.metadata.framing import READABLE_TYPES, READABLE_VERSIONS
from quorate.quorum.protocol import field_bounds as bounds
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS, Api
from quorate.quorum.protocol.codec import DecodeError, EncodeError, decode, encode
from quorate.quorum.protocol.error_response import error_response
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.field_bounds import Bound
from quorate.quorum.protocol.hot import (
    FetchPartitionResult,
    ProducePartitionResult,
    RecordError,
    build_fetch_response,
    build_produce_response,
    parse_fetch_request,
    parse_produce_request,
    parse_produce_steps,
)
from quorate.quorum.protocol.layout import VARIABLE, Field, layout
from quorate.quorum.protocol.reader_compiler import Role, compile_reader
from quorate.quorum.protocol.schemas import fetch, produce
from quorate.quorum.protocol.schemas.error_responses import ERROR_RESPONSES
from quorate.quorum.protocol.schemas.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from quorate.quorum.protocol.schemas.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataRequestTopic
from quorate.quorum.protocol.wire import Message, wire
from quorate.quorum.raft import control_records
from tests.unit.protocol.generated import every_message

LONGEST = "x" * bounds.MAX_STRING_BYTES
REQUESTS = [
    (api, version)
    for api in APIS.values()
    for version in range(api.min_version, api.max_version + 1)
]


def fields_of(cls: type, version: int, flexible: bool) -> list[Field]:
    """Return the fields of `cls` and of the structs inside it."""
    plan = layout(cls, version, flexible)
    found: list[Field] = []
    for field in (*plan.plain, *plan.tagged):
        found.append(field)
        if field.struct is not None:
            found += fields_of(field.struct, version, flexible)
    return found


def largest(cls: type, version: int, flexible: bool) -> Any:
    """Return a value whose strings are as long as their bounds allow."""
    plan = layout(cls, version, flexible)
    values = dict(plan.defaults)
    for field in (*plan.plain, *plan.tagged):
        one: Any
        if field.struct is not None:
            one = largest(field.struct, version, flexible)
        elif field.kind == "string":
            assert field.bound is not None
            one = "x" * field.bound.limit
        else:
            one = {"uuid": b"u" * 16, "bytes": b"b", "records": b"r", "bool": True}.get(
                field.kind, 1
            )
        values[field.name] = (one, one) if field.array else one
    return cls(**values)


# ----------------------------------------------------------------------------------- declarations


def test_every_variable_field_of_a_request_has_a_bound() -> None:
    for api, version in REQUESTS:
        for field in fields_of(api.request, version, version >= api.flexible_since):
            if field.array:
                assert field.count is not None, (api.name, field.name)
            if field.kind in VARIABLE:
                assert field.bound is not None, (api.name, field.name)


def test_every_reader_compiles() -> None:
    record: Any
    key: Any
    value: Any
    cls: Any
    for api, cls, version in every_message():
        compile_reader(cls, version, version >= api.flexible_since)
    for record in READABLE_TYPES.values():
        for version in range(READABLE_VERSIONS[record] + 1):
            compile_reader(record, version, True)
    for key, value in group_records.KEY_TYPES.values():
        compile_reader(key, 0, False)
        for version in range(group_records.LATEST_VALUE_VERSION + 1):
            compile_reader(value, version, version >= group_records.FLEXIBLE_SINCE)
    compile_reader(control_records.VotersRecord, 0, True)
    compile_reader(control_records.LeaderChangeMessage, 1, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoStringBound:
    name: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoElementBound:
    names: tuple[str, ...] = wire("string", count=bounds.TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCount:
    ids: tuple[int, ...] = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoBoundInside:
    inside: NoStringBound = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnboundedRequest(Message):
    API_KEY: ClassVar[int] = 3
    data: bytes = wire("bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnboundedResponse(Message):
    API_KEY: ClassVar[int] = 3
    data: bytes = wire("bytes")


@pytest.mark.parametrize(
    "cls", [NoStringBound, NoElementBound, NoCount, NoBoundInside, UnboundedRequest]
)
def test_a_field_without_a_bound_does_not_compile(cls: Any) -> None:
    with pytest.raises(TypeError, match="needs a bound"):
        compile_reader(cls, 0, True)


def test_a_response_needs_no_bound() -> None:
    assert Role.of(UnboundedResponse) is Role.RESPONSE
    response: Any = UnboundedResponse
    compile_reader(response, 0, True)


# ---------------------------------------------------------------------------------------- decoding


@pytest.mark.parametrize("size", [0, 1, 127, 128, 32_766, 32_767])
def test_a_string_at_its_bound_is_read(size: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=("k" * size,))
    assert decode(FindCoordinatorRequest, 4, encode(request, 4)) == request


@pytest.mark.parametrize("size", [32_768, 40_000, 65_536])
def test_a_string_beyond_its_bound_is_malformed(size: int) -> None:
    length = bytearray()
    value = size + 1
    while value > 0x7F:
        length.append(value & 0x7F | 0x80)
        value >>= 7
    length.append(value)
    body = b"\x00\x02" + bytes(length) + b"k" * size + b"\x00"
    with pytest.raises(DecodeError, match=f"{size} bytes, at most 32767"):
        decode(FindCoordinatorRequest, 4, body)
    with pytest.raises(EncodeError):
        encode(FindCoordinatorRequest(coordinator_keys=("k" * size,)), 4)


def test_an_array_beyond_its_bound_is_malformed() -> None:
    def keys(count: int) -> bytes:
        return encode(FindCoordinatorRequest(coordinator_keys=("",) * count), 4)

    limit = bounds.KEYS.limit
    assert len(decode(FindCoordinatorRequest, 4, keys(limit)).coordinator_keys) == limit
    with pytest.raises(DecodeError, match=f"{limit + 1} elements, at most {limit}"):
        decode(FindCoordinatorRequest, 4, keys(limit + 1))


@pytest.mark.parametrize("version", [7, 9])
def test_the_elements_of_all_arrays_have_one_bound(version: int) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,) * 99)

    def body(topics: int) -> bytes:
        return encode(
            OffsetCommitRequest(group_id="g", member_id="", topics=(topic,) * topics), version
        )

    most = bounds.MAX_ELEMENTS // 100
    assert len(decode(OffsetCommitRequest, version, body(most)).topics) == most
    with pytest.raises(DecodeError, match="too many elements in all"):
        decode(OffsetCommitRequest, version, body(most + 1))


def test_the_bound_on_elements_is_that_of_each_request() -> None:
    """Neither a refused nor an accepted request affects the next one."""
    request = MetadataRequest(topics=(MetadataRequestTopic(name=""),) * bounds.TOPICS.limit)
    body = encode(request, 9)
    for _ in range(4):
        assert len(decode(MetadataRequest, 9, body).topics or ()) == bounds.TOPICS.limit


def test_tagged_fields_are_bounded() -> None:
    tag = b"\x09\x00"
    most = bounds.MAX_TAGGED_FIELDS
    body = encode(FindCoordinatorRequest(), 4)[:-1]
    decode(FindCoordinatorRequest, 4, body + bytes([most]) + tag * most)
    for count in (bytes([most + 1]), b"\xff\x01"):
        with pytest.raises(DecodeError, match="tagged fields, at most 64"):
            decode(FindCoordinatorRequest, 4, body + count + tag * 200)
        with pytest.raises(DecodeError, match="tagged fields, at most 64"):
            headers.skip_tags(memoryview(count + tag * 200), 0)


def test_a_tagged_field_has_a_greatest_size() -> None:
    body = encode(FindCoordinatorRequest(), 4)[:-1] + b"\x01\x09\x81\x80\x40" + bytes((1 << 20) + 1)
    with pytest.raises(DecodeError, match="bytes wanted"):
        decode(FindCoordinatorRequest, 4, body)


def test_a_client_id_has_a_bound() -> None:
    most = bounds.CLIENT_ID.limit
    head = headers.request_header(3, 12, 1, "c" * most, 2)
    assert headers.read_client_id(head, 2) == ("c" * most, len(head))
    with pytest.raises(DecodeError, match="client id of 1025 bytes"):
        headers.read_client_id(headers.request_header(3, 12, 1, "c" * (most + 1), 2), 2)


# -------------------------------------------------------------------------------- produce and fetch


def produced(topics: int, partitions: int) -> memoryview:
    one = produce.PartitionProduceData(index=0, records=None)
    topic = produce.TopicProduceData(name="t", partition_data=(one,) * partitions)
    request = produce.ProduceRequest(acks=1, timeout_ms=1, topic_data=(topic,) * topics)
    return memoryview(encode(request, 9))


def test_the_partitions_of_a_produce_request_have_a_bound() -> None:
    most = bounds.PRODUCED_PARTITIONS.limit
    assert len(finished(parse_produce_steps(produced(2, most // 2), 9)).partitions) == most
    for topics, partitions in ((2, most // 2 + 1), (1, most + 1)):
        with pytest.raises(DecodeError, match="produced partitions, at most"):
            finished(parse_produce_steps(produced(topics, partitions), 9))
    with pytest.raises(DecodeError, match="produced topics, at most"):
        finished(parse_produce_steps(produced(most + 1, 0), 9))


def test_the_partitions_of_a_fetch_request_have_a_bound() -> None:
    def fetched(partitions: int, forgotten: int) -> memoryview:
        one = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=0)
        request = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            topics=(fetch.FetchTopic(topic="t", partitions=(one,) * partitions),),
            forgotten_topics_data=(fetch.ForgottenTopic(topic="t", partitions=(0,) * forgotten),),
        )
        return memoryview(encode(request, 11))

    most = bounds.PARTITIONS.limit
    assert len(parse_fetch_request(fetched(most, most), 11).partitions) == most
    for counts in ((most + 1, 0), (0, most + 1)):
        with pytest.raises(DecodeError, match="partitions, at most"):
            parse_fetch_request(fetched(*counts), 11)


def test_a_hot_name_beyond_the_bound_is_malformed() -> None:
    body = bytearray(b"\x00" + struct.pack(">hi", 1, 1) + b"\x02" + b"\x81\x80\x02")
    body += b"t" * 32_768 + b"\x01\x00\x00"
    with pytest.raises(DecodeError, match="a string of 32768 bytes, at most 32767"):
        parse_produce_request(memoryview(body), 9)


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_the_longest_hot_name_is_answered(version: int) -> None:
    error = RecordError(0, "ä" * 2000)
    result = ProducePartitionResult(
        LONGEST,
        ZERO_UUID,
        0,
        1,
        error_message="ö" * 40_000,
        record_errors=(error,),
    )
    answer = decode(produce.ProduceResponse, version, build_produce_response(version, [result]))
    assert answer.responses[0].name == LONGEST
    if version >= 8:
        partition = answer.responses[0].partition_responses[0]
        assert partition.error_message == "ö" * 500
        assert partition.record_errors[0].batch_index_error_message == "ä" * 500


@pytest.mark.parametrize("version", [4, 11, 12])
def test_the_longest_fetched_name_is_answered(version: int) -> None:
    result = FetchPartitionResult(LONGEST, ZERO_UUID, 0, 1)
    answer = b"".join(build_fetch_response(version, [result]))
    assert decode(fetch.FetchResponse, version, answer).responses[0].topic == LONGEST


# ----------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(("api", "version"), REQUESTS, ids=lambda each: getattr(each, "name", each))
def test_a_failure_of_the_largest_request_can_be_said(api: Api, version: int) -> None:
    """Return the error response to a request can always be encoded, whatever the request
    contains."""
    flexible = version >= api.flexible_since
    request = decode(api.request, version, encode(largest(api.request, version, flexible), version))
    text = "ä" * 40_000
    if api.key in ERROR_RESPONSES:
        answer = ERROR_RESPONSES[api.key](request, ErrorCode.UNKNOWN_SERVER_ERROR, text)
        encode(answer, version)
    whole = error_response(api, version, ErrorCode.UNKNOWN_SERVER_ERROR, text)
    if whole is not None:
        encode(whole, version)


def test_an_error_text_is_clipped_on_the_boundary_of_a_character() -> None:
    response = FindCoordinatorResponse(error_message="a" + "ä" * 600)
    assert decode(FindCoordinatorResponse, 3, encode(response, 3)).error_message == "a" + "ä" * 499


def test_the_bounds_fit_each_other() -> None:
    """A record can hold whatever a request may hold. A member id is longer than a client id."""
    named = [each for each in vars(bounds).values() if isinstance(each, Bound)]
    texts = [each for each in named if each not in (bounds.ERROR_TEXT,) and each.limit <= 32_767]
    assert all(each.limit <= bounds.STORED_TEXT.limit for each in texts if "text" in each.name)
    for part in (bounds.CLIENT_ID, bounds.GROUP_INSTANCE_ID):
        assert part.limit + 37 <= bounds.MEMBER_ID.limit
    assert bounds.MEMBER_METADATA.limit <= bounds.STORED_BYTES.limit
    assert 2 * bounds.REPLICAS.limit <= bounds.STORED_REPLICAS.limit

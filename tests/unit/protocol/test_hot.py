"""The hand-written codecs of Produce and Fetch against the declared schemas, in every version."""

from __future__ import annotations

import random
from itertools import groupby
from typing import Any

import pytest

from quorate.quorum.ids import ZERO_UUID, EpochOffset, Uuid
from quorate.quorum.incremental_work import finished
from quorate.quorum.protocol import hot
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.codec import DecodeError, decode, encode
from quorate.quorum.protocol.hot.produce import SLICED_ABOVE
from quorate.quorum.protocol.schemas import fetch, produce
from tests.unit.protocol.generated import value_of
from tests.unit.protocol.reference_writer import reference_bytes

PRODUCE, FETCH = APIS[ApiKey.PRODUCE], APIS[ApiKey.FETCH]
PRODUCE_VERSIONS = range(PRODUCE.min_version, PRODUCE.max_version + 1)
FETCH_VERSIONS = range(FETCH.min_version, FETCH.max_version + 1)
REPLICA_VERSIONS = range(hot.REPLICA_FETCH_VERSION, FETCH.max_version + 1)
SEEDS = range(8)
A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def generated(cls: type, version: int, flexible: bool, seed: int) -> tuple[Any, memoryview]:
    """Return a value and its bytes, with unknown tagged fields in all structs."""
    value = value_of(cls, version, flexible, random.Random(seed))
    return value, memoryview(reference_bytes(value, version, flexible, unknown_tags=True))


def parse_produce_in_steps(body: memoryview, version: int) -> hot.ProduceRequest:
    return finished(hot.parse_produce_steps(body, version))


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_requests(version: int) -> None:
    for seed in SEEDS:
        declared, data = generated(produce.ProduceRequest, version, version >= 9, seed)
        parsed = hot.parse_produce_request(data, version)
        assert parsed is not None
        assert finished(hot.parse_produce_steps(data, version)) == parsed
        assert parsed[:3] == (declared.transactional_id, declared.acks, declared.timeout_ms)
        assert parsed.partitions == [
            (topic.name, topic.topic_id, each.index, each.records)
            for topic in declared.topic_data
            for each in topic.partition_data
        ]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_responses(version: int) -> None:
    topic, topic_id = ("", A) if version >= 13 else ("orders", ZERO_UUID)
    other = ("", B) if version >= 13 else ("refunds", ZERO_UUID)
    partitions = [
        hot.ProducePartitionResult(topic, topic_id, 0, 0, 41, 1700, 3),
        hot.ProducePartitionResult(topic, topic_id, 7, 6, leader=(2, 9), error_message="moved"),
        hot.ProducePartitionResult(*other, 1, 87, record_errors=[hot.RecordError(4, "no key")]),
    ]
    endpoints = [hot.NodeEndpoint(2, "host", 9092), hot.NodeEndpoint(3, "h", 1, "rack")]
    data = hot.build_produce_response(version, partitions, endpoints=endpoints, throttle_time_ms=5)
    declared = decode(produce.ProduceResponse, version, data)
    assert encode(declared, version) == data
    assert declared.throttle_time_ms == 5
    whole = hot.build_produce_response(version, partitions, endpoints=endpoints)
    assert finished(hot.build_produce_steps(version, partitions, endpoints=endpoints)) == whole
    assert [(each.name, each.topic_id) for each in declared.responses] == [
        (topic, topic_id),
        other,
    ]
    first, moved, refused = (
        each for topic in declared.responses for each in topic.partition_responses
    )
    assert (first.index, first.error_code, first.base_offset) == (0, 0, 41)
    assert first.log_append_time_ms == 1700
    assert first.log_start_offset == (3 if version >= 5 else -1)
    assert (moved.index, moved.error_code, refused.error_code) == (7, 6, 87)
    if version >= 8:
        assert moved.error_message == "moved"
        assert refused.record_errors[0].batch_index_error_message == "no key"
    if version >= 10:
        assert moved.current_leader == produce.LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
        assert [each.rack for each in declared.node_endpoints] == [None, "rack"]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_requests(version: int) -> None:
    for seed in SEEDS:
        declared, data = generated(fetch.FetchRequest, version, version >= 12, seed)
        parsed = hot.parse_fetch_request(data, version)
        assert_same_fetch(parsed, declared, version)
        assert finished(hot.parse_fetch_steps(data, version)) == parsed


def assert_same_fetch(parsed: hot.FetchRequest, declared: fetch.FetchRequest, version: int) -> None:
    state = declared.replica_state
    replica_id = state.replica_id if version >= 15 else declared.replica_id
    assert parsed.replica_id == replica_id
    assert parsed.replica_epoch == (state.replica_epoch if version >= 15 else -1)
    for name in ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id"):
        assert getattr(parsed, name) == getattr(declared, name), name
    assert parsed.session_epoch == declared.session_epoch
    assert parsed.rack_id == declared.rack_id
    assert parsed.cluster_id == declared.cluster_id
    assert parsed.partitions == [
        (
            topic.topic,
            topic.topic_id,
            each.partition,
            each.fetch_offset,
            each.partition_max_bytes,
            each.current_leader_epoch,
            each.last_fetched_epoch,
            each.log_start_offset,
            each.replica_directory_id,
            each.high_watermark,
        )
        for topic in declared.topics
        for each in topic.partitions
    ]
    assert parsed.forgotten == [
        (topic.topic, topic.topic_id, each)
        for topic in declared.forgotten_topics_data
        for each in topic.partitions
    ]


def test_the_fetch_request_of_a_follower() -> None:
    version = hot.REPLICA_FETCH_VERSION
    for cluster_id, directory in ((None, ZERO_UUID), ("cluster", B)):
        request = hot.FetchRequest(
            replica_id=3,
            replica_epoch=77,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=10 << 20,
            isolation_level=0,
            session_id=9,
            session_epoch=4,
            partitions=[
                hot.FetchPartition("", A, 0, 100, 1 << 20, 5, 4, 0, directory),
                hot.FetchPartition("", A, 1, 0, 1 << 20),
                hot.FetchPartition("", B, 0, 7, 1 << 20, 1, 1, 2),
            ],
            forgotten=[("", A, 8), ("", B, 9)],
            rack_id="",
            cluster_id=cluster_id,
        )
        data = hot.build_fetch_request(request)
        declared = decode(fetch.FetchRequest, version, data)
        assert encode(declared, version) == data
        assert_same_fetch(request, declared, version)
        assert hot.parse_fetch_request(memoryview(data), version) == request


def some_fetched(by_id: bool) -> list[hot.FetchPartitionResult]:
    orders: tuple[str, Uuid] = ("", A) if by_id else ("orders", ZERO_UUID)
    refunds: tuple[str, Uuid] = ("", B) if by_id else ("refunds", ZERO_UUID)
    return [
        hot.FetchPartitionResult(*orders, 0, 0, 10, 9, 1, records=b"batches"),
        hot.FetchPartitionResult(*orders, 1, 0, 10, 9, 1),
        hot.FetchPartitionResult(*orders, 2, 0, 5, 5, 0, diverging=EpochOffset(3, 40)),
        hot.FetchPartitionResult(*refunds, 0, 6, leader=(4, 12)),
        hot.FetchPartitionResult(
            *refunds, 1, 0, 8, 7, 0, aborted=[(900, 3)], records=memoryview(b"x")
        ),
    ]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_responses(version: int) -> None:
    partitions = some_fetched(by_id=version >= 13)
    endpoints = [hot.NodeEndpoint(4, "host", 9092)]
    parts = hot.build_fetch_response(
        version, partitions, session_id=6, error=0, endpoints=endpoints, throttle_time_ms=2
    )
    data = b"".join(parts)
    in_steps = hot.build_fetch_steps(
        version, partitions, session_id=6, error=0, endpoints=endpoints
    )
    without_throttle = data[4:]  # it comes first in every version
    assert b"".join(finished(in_steps))[4:] == without_throttle
    declared = decode(fetch.FetchResponse, version, data)
    assert encode(declared, version) == data
    assert declared.throttle_time_ms == 2
    assert declared.session_id == (6 if version >= 7 else 0)
    seen = [each for topic in declared.responses for each in topic.partitions]
    for each, partition in zip(seen, partitions, strict=True):
        assert each.partition_index == partition.partition
        assert each.error_code == partition.error
        assert each.high_watermark == partition.high_watermark
        assert each.last_stable_offset == partition.last_stable_offset
        assert each.log_start_offset == (partition.log_start_offset if version >= 5 else -1)
        assert each.records is not None, "no records are zero bytes, not null"
        assert bytes(each.records) == bytes(partition.records)
    assert seen[0].aborted_transactions is None
    assert seen[4].aborted_transactions == (
        fetch.AbortedTransaction(producer_id=900, first_offset=3),
    )
    if version >= 12:
        assert seen[2].diverging_epoch == fetch.EpochEndOffset(epoch=3, end_offset=40)
        assert seen[3].current_leader == fetch.LeaderIdAndEpoch(leader_id=4, leader_epoch=12)
    assert len(declared.node_endpoints) == (1 if version >= 16 else 0)


def test_a_large_request_is_parsed_in_steps() -> None:
    partitions = [hot.FetchPartition("", A, each, 0, 1, -1) for each in range(1000)]
    request = hot.FetchRequest(-1, -1, 0, 0, 0, 0, 0, 0, partitions, [], "")
    data = memoryview(hot.build_fetch_request(request))
    steps = hot.parse_fetch_steps(data, hot.REPLICA_FETCH_VERSION)
    assert sum(1 for _ in steps) >= 10
    cut = hot.parse_fetch_steps(data[: len(data) // 2], hot.REPLICA_FETCH_VERSION)
    with pytest.raises(DecodeError, match="cut off"):
        finished(cut)


def test_records_are_not_copied() -> None:
    records = memoryview(b"r" * 1000)
    partition = hot.FetchPartitionResult("", A, 0, 0, 10, 9, 1, records=records)
    parts = hot.build_fetch_response(17, [partition])
    assert any(part is records for part in parts)
    body = memoryview(b"".join(parts))
    fetched = hot.parse_fetch_response(body, 17).partitions[0].records
    assert isinstance(fetched, memoryview)
    assert fetched.obj is body.obj


def test_an_empty_answer_of_a_session() -> None:
    parts = hot.build_fetch_response(17, [], session_id=3)
    assert hot.parse_fetch_response(memoryview(b"".join(parts)), 17) == (0, 3, [])


@pytest.mark.parametrize("version", REPLICA_VERSIONS)
def test_followers_read_what_leaders_build(version: int) -> None:
    partitions = some_fetched(by_id=True)
    body = b"".join(hot.build_fetch_response(version, partitions, error=0, session_id=6))
    answer = hot.parse_fetch_response(memoryview(body), version)
    assert (answer.error, answer.session_id) == (0, 6)
    assert answer.partitions == partitions


@pytest.mark.parametrize("version", REPLICA_VERSIONS)
def test_followers_read_what_the_schema_allows(version: int) -> None:
    for seed in SEEDS:
        declared, data = generated(fetch.FetchResponse, version, True, seed)
        answer = hot.parse_fetch_response(data, version)
        assert (answer.error, answer.session_id) == (declared.error_code, declared.session_id)
        expected = [
            (topic.topic_id, each.partition_index, each.high_watermark, bytes(each.records or b""))
            for topic in declared.responses
            for each in topic.partitions
        ]
        assert expected == [
            (each.topic_id, each.partition, each.high_watermark, bytes(each.records))
            for each in answer.partitions
        ]


def test_old_fetch_responses_are_not_for_followers() -> None:
    with pytest.raises(DecodeError, match="v12"):
        hot.parse_fetch_response(memoryview(bytes(20)), 12)


@pytest.mark.parametrize(
    ("parse", "cls", "versions", "flexible_since"),
    [
        (hot.parse_produce_request, produce.ProduceRequest, PRODUCE_VERSIONS, 9),
        (parse_produce_in_steps, produce.ProduceRequest, PRODUCE_VERSIONS, 9),
        (hot.parse_fetch_request, fetch.FetchRequest, FETCH_VERSIONS, 12),
        (hot.parse_fetch_response, fetch.FetchResponse, REPLICA_VERSIONS, 12),
    ],
)
def test_cut_off_or_damaged(parse: Any, cls: type, versions: range, flexible_since: int) -> None:
    chance = random.Random(3)
    for version in versions:
        _, data = generated(cls, version, version >= flexible_since, 2)
        for end in range(0, len(data), max(1, len(data) // 50)):
            with pytest.raises(DecodeError):
                parse(data[:end], version)
        for _ in range(60):
            damaged = bytearray(data)
            damaged[chance.randrange(len(damaged))] = chance.choice((0xFF, 0x7F, 0x80, 0))
            try:
                parse(memoryview(damaged), version)
            except DecodeError as error:
                assert str(error)


def test_a_produce_request_of_many_partitions_is_left_to_the_parser_in_steps() -> None:
    one = produce.PartitionProduceData(index=0, records=None)

    def data(topics: int, partitions: int) -> memoryview:
        topic = produce.TopicProduceData(name="t", partition_data=(one,) * partitions)
        request = produce.ProduceRequest(acks=1, timeout_ms=1, topic_data=(topic,) * topics)
        return memoryview(encode(request, 9))

    assert hot.parse_produce_request(data(2, SLICED_ABOVE // 2), 9) is not None
    for shape in ((2, SLICED_ABOVE // 2 + 1), (1, SLICED_ABOVE + 1), (SLICED_ABOVE + 1, 0)):
        assert hot.parse_produce_request(data(*shape), 9) is None
        assert len(parse_produce_in_steps(data(*shape), 9).partitions) == shape[0] * shape[1]


def test_partitions_are_grouped_only_with_their_neighbours() -> None:
    partitions = [
        hot.ProducePartitionResult("a", ZERO_UUID, 0, 0),
        hot.ProducePartitionResult("b", ZERO_UUID, 0, 0),
        hot.ProducePartitionResult("a", ZERO_UUID, 1, 0),
    ]
    declared = decode(produce.ProduceResponse, 9, hot.build_produce_response(9, partitions))
    assert [each.name for each in declared.responses] == [
        name for name, _ in groupby(each.topic for each in partitions)
    ]

"""Fetch responses: built in every served version, and parsed in the versions with topic ids, which
followers use.

Records are separate parts of the response and are not copied. If there are no records, their size
is zero, never null, because some clients consider null a malformed response.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.hot.fetch_request import FLEXIBLE_SINCE, TOPIC_ID_SINCE
from quorate.quorum.protocol.hot.primitives import (
    INT32,
    STEP_PARTITIONS,
    NodeEndpoint,
    by_topic,
    by_topic_steps,
    each_tag,
    guarded,
    read_bytes,
    read_count,
    read_length,
    read_tags,
    read_topic,
    write_endpoints,
    write_length,
    write_tag,
    write_topic,
)
from quorate.quorum.protocol.varint import DecodeError
from quorate.quorum.seams import Buffer

_TOP_V4 = struct.Struct(">i")  # throttle time
_TOP_V7 = struct.Struct(">ihi")  # throttle time, error code, session id
_PARTITION_V4 = struct.Struct(">ihqq")  # index, error code, high watermark, last stable offset
_PARTITION_V5 = struct.Struct(">ihqqq")  # with the log start offset
_ABORTED = struct.Struct(">qq")  # producer id, first offset
_DIVERGING = struct.Struct(">iqB")  # epoch, end offset, no tagged fields
_LEADER = struct.Struct(">iiB")  # leader id, leader epoch, no tagged fields
_NO_LEADER = (-1, -1)


class FetchPartitionResult(NamedTuple):
    """The result of one partition.

    `error` is an ErrorCode. `leader` is (id, epoch), given with errors of a wrong leader. `aborted`
    holds pairs of producer id and first offset. Fields that the version lacks are left out."""

    topic: str
    topic_id: Uuid
    partition: int
    error: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Buffer = b""
    diverging: EpochOffset | None = None
    leader: tuple[int, int] | None = None
    aborted: Sequence[tuple[int, int]] | None = None
    preferred_read_replica: int = -1


class FetchResponse(NamedTuple):
    """A parsed response. `error` is the error of the whole request."""

    error: int
    session_id: int
    partitions: list[FetchPartitionResult]


def build_fetch_response(
    version: int,
    partitions: Sequence[FetchPartitionResult],
    *,
    error: int = 0,
    session_id: int = 0,
    endpoints: Sequence[NodeEndpoint] = (),
    throttle_time_ms: int = 0,
) -> list[Buffer]:
    """Return the parts of the body. Partitions of one topic must be neighbours.

    The records of the partitions are among the parts, so they must not change until the response is
    written."""
    flexible = version >= FLEXIBLE_SINCE
    out, parts = bytearray(), list[Buffer]()
    topics = by_topic(partitions)
    _write_top(out, version, error, session_id, throttle_time_ms, len(topics))
    for topic, topic_id, group in topics:
        write_topic(out, topic, topic_id, flexible, version >= TOPIC_ID_SINCE)
        write_length(out, len(group), flexible)
        for partition in group:
            _write_partition(out, version, partition)
            if len(partition.records):
                parts += (out, partition.records)
                out = bytearray()
            if flexible:
                _write_partition_tags(out, partition)
        if flexible:
            out.append(0)
    if flexible:
        write_endpoints(out, endpoints if version >= 16 else ())
    if out:
        parts.append(out)
    return parts


def build_fetch_steps(
    version: int,
    partitions: Sequence[FetchPartitionResult],
    *,
    error: int = 0,
    session_id: int = 0,
    endpoints: Sequence[NodeEndpoint] = (),
) -> IncrementalWork[list[Buffer]]:
    """Return the result of `build_fetch_response` without throttling, in steps."""
    flexible = version >= FLEXIBLE_SINCE
    out, parts = bytearray(), list[Buffer]()
    topics = yield from by_topic_steps(partitions)
    _write_top(out, version, error, session_id, 0, len(topics))
    written = 0
    for topic, topic_id, group in topics:
        write_topic(out, topic, topic_id, flexible, version >= TOPIC_ID_SINCE)
        write_length(out, len(group), flexible)
        for partition in group:
            _write_partition(out, version, partition)
            if len(partition.records):
                parts += (out, partition.records)
                out = bytearray()
            if flexible:
                _write_partition_tags(out, partition)
            written += 1
            if written % STEP_PARTITIONS == 0:
                yield
        if flexible:
            out.append(0)
    if flexible:
        write_endpoints(out, endpoints if version >= 16 else ())
    if out:
        parts.append(out)
    return parts


def _write_top(
    out: bytearray, version: int, error: int, session_id: int, throttle_time_ms: int, topics: int
) -> None:
    if version >= 7:
        out += _TOP_V7.pack(throttle_time_ms, error, session_id)
    else:
        out += _TOP_V4.pack(throttle_time_ms)
    write_length(out, topics, version >= FLEXIBLE_SINCE)


def _write_partition(out: bytearray, version: int, partition: FetchPartitionResult) -> None:
    """Append everything that precedes the bytes of the records."""
    flexible = version >= FLEXIBLE_SINCE
    if version >= 5:
        out += _PARTITION_V5.pack(
            partition.partition,
            partition.error,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
        )
    else:
        out += _PARTITION_V4.pack(
            partition.partition,
            partition.error,
            partition.high_watermark,
            partition.last_stable_offset,
        )
    if partition.aborted is None:
        write_length(out, -1, flexible)
    else:
        write_length(out, len(partition.aborted), flexible)
        for aborted in partition.aborted:
            out += _ABORTED.pack(*aborted)
            if flexible:
                out.append(0)
    if version >= 11:
        out += INT32.pack(partition.preferred_read_replica)
    write_length(out, len(partition.records), flexible)


def _write_partition_tags(out: bytearray, partition: FetchPartitionResult) -> None:
    diverging, leader = partition.diverging, partition.leader
    if diverging is None and leader is None:
        out.append(0)
        return
    out.append((diverging is not None) + (leader is not None))
    if diverging is not None:
        write_tag(out, 0, _DIVERGING.pack(diverging.epoch, diverging.offset, 0))
    if leader is not None:
        write_tag(out, 1, _LEADER.pack(*leader, 0))


def _parse(body: memoryview, version: int) -> FetchResponse:
    if version < TOPIC_ID_SINCE:
        raise DecodeError(
            f"Fetch response v{version}: only v{TOPIC_ID_SINCE} and later have topic ids"
        )
    _, error, session_id = _TOP_V7.unpack_from(body)
    topics, position = read_count(body, _TOP_V7.size, True)
    partitions: list[FetchPartitionResult] = []
    for _ in range(topics):
        topic, topic_id, position = read_topic(body, position, True, True)
        count, position = read_count(body, position, True)
        for _ in range(count):
            partition, position = _partition(body, position, topic, topic_id)
            partitions.append(partition)
        position = read_tags(body, position)
    read_tags(body, position)
    return FetchResponse(error, session_id, partitions)


parse_fetch_response = guarded("Fetch response", _parse)
"""Parses a response for a follower. Raises DecodeError if it is malformed or has no topic ids."""


def _partition(
    body: memoryview, position: int, topic: str, topic_id: Uuid
) -> tuple[FetchPartitionResult, int]:
    index, error, high_watermark, stable_offset, start_offset = _PARTITION_V5.unpack_from(
        body, position
    )
    aborted, position = _aborted(body, position + _PARTITION_V5.size)
    (preferred,) = INT32.unpack_from(body, position)
    records, position = read_bytes(body, position + 4, True)
    diverging = leader = None
    if body[position] == 0:
        position += 1
    else:
        tags, position = each_tag(body, position)
        for tag, start, end in tags:
            if tag == 0:
                epoch, offset, _ = _DIVERGING.unpack_from(body[start:end])
                diverging = EpochOffset(epoch, offset) if epoch >= 0 else None
            elif tag == 1:
                leader_id, leader_epoch, _ = _LEADER.unpack_from(body[start:end])
                leader = (leader_id, leader_epoch)
    partition = FetchPartitionResult(
        topic,
        topic_id,
        index,
        error,
        high_watermark,
        stable_offset,
        start_offset,
        b"" if records is None else records,
        diverging,
        None if leader == _NO_LEADER else leader,
        aborted,
        preferred,
    )
    return partition, position


def _aborted(body: memoryview, position: int) -> tuple[list[tuple[int, int]] | None, int]:
    count, position = read_length(body, position, True)
    if count < 0:
        return None, position
    aborted: list[tuple[int, int]] = []
    for _ in range(count):
        producer_id, first_offset = _ABORTED.unpack_from(body, position)
        aborted.append((producer_id, first_offset))
        position = read_tags(body, position + _ABORTED.size)
    return aborted, position

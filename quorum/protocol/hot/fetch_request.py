"""Fetch requests: every served version is parsed, and one version is built for followers.

Versions: sessions since v7 (KIP-227), leader epochs since v9 (KIP-320), the last fetched epoch and
flexible since v12 (KIP-595), topic ids since v13 (KIP-516), the replica state as a tag since v15
(KIP-903), high watermark since v18 (KIP-1166).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.field_bounds import PARTITIONS, TOPICS
from quorate.quorum.protocol.hot.primitives import (
    INT32,
    INT64,
    STEP_PARTITIONS,
    by_topic,
    check_elements,
    each_tag,
    guarded,
    guarded_steps,
    read_count,
    read_string,
    read_tags,
    read_topic,
    write_length,
    write_string,
    write_tag,
)
from quorate.quorum.protocol.varint import DecodeError

FLEXIBLE_SINCE = 12
TOPIC_ID_SINCE = 13
REPLICA_STATE_SINCE = 15
REPLICA_FETCH_VERSION = 17
"""The version in which followers fetch from leaders."""
NO_HIGH_WATERMARK = (1 << 63) - 1
"""The high watermark of a fetcher that sent none, as in Kafka's schema."""
CONSUMER = -1
"""The replica id of a consumer."""

_BOUNDS = struct.Struct(">iiib")  # max wait, min bytes, max bytes, isolation level
_SESSION = struct.Struct(">ii")
_REPLICA_STATE = struct.Struct(">iqB")  # id, epoch, no tagged fields
# Partition, [leader epoch,] fetch offset, [last fetched epoch,] [log start offset,] max bytes.
_PARTITION_V4 = struct.Struct(">iqi")
_PARTITION_V5 = struct.Struct(">iqqi")
_PARTITION_V9 = struct.Struct(">iiqqi")
_PARTITION_V12 = struct.Struct(">iiqiqi")


class FetchPartition(NamedTuple):
    """One partition to fetch. `topic` is empty since v13, and `topic_id` is zero before. Epochs and
    `log_start_offset` are -1 if they are unknown or the version lacks them."""

    topic: str
    topic_id: Uuid
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    replica_directory_id: Uuid = ZERO_UUID
    high_watermark: int = NO_HIGH_WATERMARK


class FetchRequest(NamedTuple):
    """A parsed request. `forgotten` are the partitions to remove from the fetch session, and
    `replica_id` -1 is a consumer.

    Before v7 there are no sessions: the id is 0 and the epoch is -1. `replica_epoch` is -1 before
    v15."""

    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    partitions: list[FetchPartition]
    forgotten: list[Forgotten]
    rack_id: str
    cluster_id: str | None = None


Forgotten = tuple[str, Uuid, int]
"""Topic name, topic id and partition."""
Head = tuple[int, int, int, int, int, int, int]
"""Replica id, max wait, min bytes, max bytes, isolation level, session id and session epoch."""


def _parse(body: memoryview, version: int) -> FetchRequest:
    flexible, by_id = version >= FLEXIBLE_SINCE, version >= TOPIC_ID_SINCE
    position, head = _head(body, version)
    partitions: list[FetchPartition] = []
    topics, position = read_count(body, position, flexible)
    check_elements(TOPICS, 0, topics)
    for _ in range(topics):
        topic, topic_id, position = read_topic(body, position, flexible, by_id)
        count, position = read_count(body, position, flexible)
        check_elements(PARTITIONS, len(partitions), count)
        for _ in range(count):
            partition, position = _partition(body, position, version, topic, topic_id)
            partitions.append(partition)
        if flexible:
            position = read_tags(body, position)
    forgotten: list[Forgotten] = []
    if version >= 7:
        forgotten, position = _forgotten(body, position, version)
    return _with_rest(body, position, version, head, partitions, forgotten)


def _parse_steps(body: memoryview, version: int) -> IncrementalWork[FetchRequest]:
    flexible, by_id = version >= FLEXIBLE_SINCE, version >= TOPIC_ID_SINCE
    position, head = _head(body, version)
    partitions: list[FetchPartition] = []
    topics, position = read_count(body, position, flexible)
    check_elements(TOPICS, 0, topics)
    for at in range(topics):
        if at % STEP_PARTITIONS == 0:
            yield
        topic, topic_id, position = read_topic(body, position, flexible, by_id)
        count, position = read_count(body, position, flexible)
        check_elements(PARTITIONS, len(partitions), count)
        for _ in range(count):
            partition, position = _partition(body, position, version, topic, topic_id)
            partitions.append(partition)
            if len(partitions) % STEP_PARTITIONS == 0:
                yield
        if flexible:
            position = read_tags(body, position)
    forgotten: list[Forgotten] = []
    if version >= 7:
        forgotten, position = yield from _forgotten_steps(body, position, version)
    return _with_rest(body, position, version, head, partitions, forgotten)


parse_fetch_request = guarded("Fetch request", _parse)
"""Parses a request of any size in one step. Raises DecodeError if it is malformed or exceeds a
bound."""
parse_fetch_steps = guarded_steps("Fetch request", _parse_steps)
"""Parses a request of any size in steps. Raises DecodeError if it is malformed or exceeds a
bound."""


def _head(body: memoryview, version: int) -> tuple[int, Head]:
    """Return the position after the fields before the partitions, and these fields."""
    position, replica_id = 0, CONSUMER
    session_id, session_epoch = 0, -1
    if version < REPLICA_STATE_SINCE:
        (replica_id,) = INT32.unpack_from(body, 0)
        position = 4
    max_wait_ms, min_bytes, max_bytes, isolation_level = _BOUNDS.unpack_from(body, position)
    position += _BOUNDS.size
    if version >= 7:
        session_id, session_epoch = _SESSION.unpack_from(body, position)
        position += _SESSION.size
    return position, (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
    )


def _with_rest(
    body: memoryview,
    position: int,
    version: int,
    head: Head,
    partitions: list[FetchPartition],
    forgotten: list[Forgotten],
) -> FetchRequest:
    flexible = version >= FLEXIBLE_SINCE
    replica_id, replica_epoch, cluster_id = head[0], -1, None
    rack_id = ""
    if version >= 11:
        rack, position = read_string(body, position, flexible)
        rack_id = rack or ""
    if flexible:
        tags, position = each_tag(body, position)
        for tag, start, end in tags:
            if tag == 0:
                cluster_id, _ = read_string(body[start:end], 0, True)
            elif tag == 1 and version >= REPLICA_STATE_SINCE:
                replica_id, replica_epoch, _ = _REPLICA_STATE.unpack_from(body[start:end])
    return FetchRequest(
        replica_id,
        replica_epoch,
        *head[1:],
        partitions,
        forgotten,
        rack_id,
        cluster_id,
    )


def _partition(
    body: memoryview, position: int, version: int, topic: str, topic_id: Uuid
) -> tuple[FetchPartition, int]:
    leader_epoch = fetched_epoch = start_offset = -1
    if version >= FLEXIBLE_SINCE:
        index, leader_epoch, offset, fetched_epoch, start_offset, max_bytes = (
            _PARTITION_V12.unpack_from(body, position)
        )
        position += _PARTITION_V12.size
        partition = FetchPartition(
            topic, topic_id, index, offset, max_bytes, leader_epoch, fetched_epoch, start_offset
        )
        if body[position] == 0:
            return partition, position + 1
        return _with_tags(body, position, version, partition)
    if version >= 9:
        index, leader_epoch, offset, start_offset, max_bytes = _PARTITION_V9.unpack_from(
            body, position
        )
        position += _PARTITION_V9.size
    elif version >= 5:
        index, offset, start_offset, max_bytes = _PARTITION_V5.unpack_from(body, position)
        position += _PARTITION_V5.size
    else:
        index, offset, max_bytes = _PARTITION_V4.unpack_from(body, position)
        position += _PARTITION_V4.size
    return (
        FetchPartition(topic, topic_id, index, offset, max_bytes, leader_epoch, -1, start_offset),
        position,
    )


def _with_tags(
    body: memoryview, position: int, version: int, partition: FetchPartition
) -> tuple[FetchPartition, int]:
    tags, position = each_tag(body, position)
    for tag, start, end in tags:
        if tag == 0 and version >= 17:
            if end - start != 16:
                raise DecodeError(f"a replica directory id of {end - start} bytes, not 16")
            partition = partition._replace(replica_directory_id=Uuid(bytes(body[start:end])))
        elif tag == 1 and version >= 18:
            (high_watermark,) = INT64.unpack(body[start:end])
            partition = partition._replace(high_watermark=high_watermark)
    return partition, position


def _forgotten(body: memoryview, position: int, version: int) -> tuple[list[Forgotten], int]:
    flexible = version >= FLEXIBLE_SINCE
    forgotten: list[Forgotten] = []
    topics, position = read_count(body, position, flexible)
    check_elements(TOPICS, 0, topics)
    for _ in range(topics):
        position = _forgotten_of_topic(body, position, version, forgotten)
    return forgotten, position


def _forgotten_steps(
    body: memoryview, position: int, version: int
) -> IncrementalWork[tuple[list[Forgotten], int]]:
    forgotten: list[Forgotten] = []
    topics, position = read_count(body, position, version >= FLEXIBLE_SINCE)
    check_elements(TOPICS, 0, topics)
    parsed = 0
    for at in range(topics):
        position = _forgotten_of_topic(body, position, version, forgotten)
        if at % STEP_PARTITIONS == 0 or len(forgotten) - parsed >= STEP_PARTITIONS:
            parsed = len(forgotten)
            yield
    return forgotten, position


def _forgotten_of_topic(
    body: memoryview, position: int, version: int, forgotten: list[Forgotten]
) -> int:
    """Add the partitions of the topic at `position`. Return the position after it."""
    flexible = version >= FLEXIBLE_SINCE
    topic, topic_id, position = read_topic(body, position, flexible, version >= TOPIC_ID_SINCE)
    count, position = read_count(body, position, flexible)
    check_elements(PARTITIONS, len(forgotten), count)
    indexes = struct.unpack_from(f">{count}i", body, position)
    forgotten += [(topic, topic_id, index) for index in indexes]
    position += 4 * count
    return read_tags(body, position) if flexible else position


def build_fetch_request(request: FetchRequest) -> bytes:
    """Return the body of `request` in REPLICA_FETCH_VERSION. Partitions of one topic must be
    neighbours.

    The body has no topic names and no high watermarks, because that version has no fields for
    them."""
    out = bytearray()
    out += _BOUNDS.pack(
        request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level
    )
    out += _SESSION.pack(request.session_id, request.session_epoch)
    topics = by_topic(request.partitions)
    write_length(out, len(topics), True)
    for _, topic_id, group in topics:
        out += topic_id
        write_length(out, len(group), True)
        for each in group:
            out += _PARTITION_V12.pack(
                each.partition,
                each.current_leader_epoch,
                each.fetch_offset,
                each.last_fetched_epoch,
                each.log_start_offset,
                each.max_bytes,
            )
            if each.replica_directory_id == ZERO_UUID:
                out.append(0)
            else:
                out.append(1)
                write_tag(out, 0, each.replica_directory_id)
        out.append(0)
    write_length(out, len(request.forgotten), True)
    for _, topic_id, partition in request.forgotten:
        out += topic_id + b"\x02" + INT32.pack(partition) + b"\x00"  # one topic, one partition
    write_string(out, request.rack_id, True)
    out.append(1 if request.cluster_id is None else 2)
    if request.cluster_id is not None:
        name = bytearray()
        write_string(name, request.cluster_id, True)
        write_tag(out, 0, name)
    write_tag(out, 1, _REPLICA_STATE.pack(request.replica_id, request.replica_epoch, 0))
    return bytes(out)

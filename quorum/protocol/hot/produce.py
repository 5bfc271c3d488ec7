"""Parses Produce requests (v3 to v13) and builds their responses.

Versions: error messages since v8 (KIP-467), flexible since v9, leaders in responses since v10
(KIP-951), topics by id since v13 (KIP-516).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.field_bounds import PRODUCED_PARTITIONS, PRODUCED_TOPICS
from quorate.quorum.protocol.hot.primitives import (
    INT32,
    STEP_PARTITIONS,
    NodeEndpoint,
    by_topic,
    by_topic_steps,
    check_elements,
    guarded,
    guarded_steps,
    read_bytes,
    read_count,
    read_string,
    read_tags,
    read_topic,
    write_endpoints,
    write_error_text,
    write_length,
    write_tag,
    write_topic,
)

FLEXIBLE_SINCE = 9
TOPIC_ID_SINCE = 13
_ACKS_TIMEOUT = struct.Struct(">hi")
_OUTCOME = struct.Struct(">ihqq")  # partition, error code, base offset, log append time
_LEADER = struct.Struct(">iiB")  # leader id, leader epoch, no tagged fields


class ProducePartition(NamedTuple):
    """The record batches for one partition. `topic` is empty since v13, and `topic_id` is zero
    before."""

    topic: str
    topic_id: Uuid
    partition: int
    records: memoryview | None


class ProduceRequest(NamedTuple):
    """A parsed request. `transactional_id` is None unless the producer is transactional. `acks` is
    not checked."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[ProducePartition]


class RecordError(NamedTuple):
    """The error of one record, by its index in the batch."""

    batch_index: int
    message: str | None


class ProducePartitionResult(NamedTuple):
    """The outcome of one partition. `error` is an ErrorCode. `leader` is (id, epoch), given with
    NOT_LEADER_OR_FOLLOWER and sent since v10. Fields that the version lacks are left out."""

    topic: str
    topic_id: Uuid
    partition: int
    error: int
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: Sequence[RecordError] = ()
    leader: tuple[int, int] | None = None


SLICED_ABOVE = 128
"""Requests and responses of more partitions are parsed and built in steps. `parse_produce_request`
also counts topics."""


def _parse(body: memoryview, version: int) -> ProduceRequest | None:
    """Parse a small request. Return None if it has more than SLICED_ABOVE partitions or topics."""
    flexible = version >= FLEXIBLE_SINCE
    by_id = version >= TOPIC_ID_SINCE
    transactional_id, position = read_string(body, 0, flexible)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(body, position)
    topics, position = read_count(body, position + _ACKS_TIMEOUT.size, flexible)
    partitions: list[ProducePartition] = []
    if topics > SLICED_ABOVE:
        return None
    for _ in range(topics):
        topic, topic_id, position = read_topic(body, position, flexible, by_id)
        count, position = read_count(body, position, flexible)
        if len(partitions) + count > SLICED_ABOVE:
            return None
        for _ in range(count):
            (partition,) = INT32.unpack_from(body, position)
            records, position = read_bytes(body, position + 4, flexible)
            partitions.append(ProducePartition(topic, topic_id, partition, records))
            if flexible:
                position = read_tags(body, position)
        if flexible:
            position = read_tags(body, position)
    if flexible:
        read_tags(body, position)
    return ProduceRequest(transactional_id, acks, timeout_ms, partitions)


def _parse_steps(body: memoryview, version: int) -> IncrementalWork[ProduceRequest]:
    flexible = version >= FLEXIBLE_SINCE
    by_id = version >= TOPIC_ID_SINCE
    transactional_id, position = read_string(body, 0, flexible)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(body, position)
    topics, position = read_count(body, position + _ACKS_TIMEOUT.size, flexible)
    partitions: list[ProducePartition] = []
    check_elements(PRODUCED_TOPICS, 0, topics)
    for at in range(topics):
        if at % STEP_PARTITIONS == 0:
            yield
        topic, topic_id, position = read_topic(body, position, flexible, by_id)
        count, position = read_count(body, position, flexible)
        check_elements(PRODUCED_PARTITIONS, len(partitions), count)
        for _ in range(count):
            (partition,) = INT32.unpack_from(body, position)
            records, position = read_bytes(body, position + 4, flexible)
            partitions.append(ProducePartition(topic, topic_id, partition, records))
            if len(partitions) % STEP_PARTITIONS == 0:
                yield
            if flexible:
                position = read_tags(body, position)
        if flexible:
            position = read_tags(body, position)
    if flexible:
        read_tags(body, position)
    return ProduceRequest(transactional_id, acks, timeout_ms, partitions)


parse_produce_request = guarded("Produce request", _parse)
"""Parses a request. Returns None if it is so large that `parse_produce_steps` must parse it. Raises
DecodeError if it is malformed."""
parse_produce_steps = guarded_steps("Produce request", _parse_steps)
"""Parses a request of any size in steps. Raises DecodeError if it is malformed or exceeds a
bound."""


def build_produce_response(
    version: int,
    partitions: Sequence[ProducePartitionResult],
    *,
    endpoints: Sequence[NodeEndpoint] = (),
    throttle_time_ms: int = 0,
) -> bytes:
    """Return the body of a response. Partitions of one topic must be neighbours, as in the request.
    Otherwise the response names the topic several times."""
    flexible = version >= FLEXIBLE_SINCE
    out = bytearray()
    topics = by_topic(partitions)
    write_length(out, len(topics), flexible)
    for topic, topic_id, group in topics:
        write_topic(out, topic, topic_id, flexible, version >= TOPIC_ID_SINCE)
        write_length(out, len(group), flexible)
        for partition in group:
            _write_partition(out, version, partition)
        if flexible:
            out.append(0)
    out += INT32.pack(throttle_time_ms)
    if flexible:
        write_endpoints(out, endpoints if version >= 10 else ())
    return bytes(out)


def build_produce_steps(
    version: int,
    partitions: Sequence[ProducePartitionResult],
    *,
    endpoints: Sequence[NodeEndpoint] = (),
    throttle_time_ms: int = 0,
) -> IncrementalWork[bytes]:
    """Return the result of `build_produce_response`, in steps."""
    flexible = version >= FLEXIBLE_SINCE
    out = bytearray()
    topics = yield from by_topic_steps(partitions)
    write_length(out, len(topics), flexible)
    written = 0
    for topic, topic_id, group in topics:
        write_topic(out, topic, topic_id, flexible, version >= TOPIC_ID_SINCE)
        write_length(out, len(group), flexible)
        for partition in group:
            _write_partition(out, version, partition)
            written += 1
            if written % STEP_PARTITIONS == 0:
                yield
        if flexible:
            out.append(0)
    out += INT32.pack(throttle_time_ms)
    if flexible:
        write_endpoints(out, endpoints if version >= 10 else ())
    return bytes(out)


def _write_partition(out: bytearray, version: int, partition: ProducePartitionResult) -> None:
    flexible = version >= FLEXIBLE_SINCE
    out += _OUTCOME.pack(
        partition.partition, partition.error, partition.base_offset, partition.log_append_time_ms
    )
    if version >= 5:
        out += partition.log_start_offset.to_bytes(8, "big", signed=True)
    if version >= 8:
        write_length(out, len(partition.record_errors), flexible)
        for error in partition.record_errors:
            out += INT32.pack(error.batch_index)
            write_error_text(out, error.message, flexible)
            if flexible:
                out.append(0)
        write_error_text(out, partition.error_message, flexible)
    if flexible:
        if partition.leader is None or version < 10:
            out.append(0)
        else:
            out.append(1)
            write_tag(out, 0, _LEADER.pack(*partition.leader, 0))

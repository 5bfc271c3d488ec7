"""Produce requests parsed (v3 to v13), and their responses built.

Flexible since v9, topics by id since v13 (KIP-516); v8 brought error messages (KIP-467), v10
leaders in answers (KIP-951).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from quorate.quorum.ids import Uuid
from quorate.quorum.rpc.kafka.bounds import PRODUCED_PARTITIONS, PRODUCED_TOPICS
from quorate.quorum.rpc.kafka.hot.primitives import (
    INT32,
    NodeEndpoint,
    by_topic,
    check_elements,
    guarded,
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
    """`topic` is empty since v13, `topic_id` zero before."""

    topic: str
    topic_id: Uuid
    partition: int
    records: memoryview | None


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[ProducePartition]


class RecordError(NamedTuple):
    batch_index: int
    message: str | None


class ProducedPartition(NamedTuple):
    """The outcome of one partition. `leader` is (id, epoch), for NOT_LEADER_OR_FOLLOWER."""

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


def _parse(body: memoryview, version: int) -> ProduceRequest:
    flexible = version >= FLEXIBLE_SINCE
    by_id = version >= TOPIC_ID_SINCE
    transactional_id, position = read_string(body, 0, flexible)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(body, position)
    topics, position = read_count(body, position + _ACKS_TIMEOUT.size, flexible)
    partitions: list[ProducePartition] = []
    check_elements(PRODUCED_TOPICS, 0, topics)
    for _ in range(topics):
        topic, topic_id, position = read_topic(body, position, flexible, by_id)
        count, position = read_count(body, position, flexible)
        check_elements(PRODUCED_PARTITIONS, len(partitions), count)
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


parse_produce_request = guarded("Produce request", _parse)


def build_produce_response(
    version: int,
    partitions: Sequence[ProducedPartition],
    *,
    endpoints: Sequence[NodeEndpoint] = (),
    throttle_time_ms: int = 0,
) -> bytes:
    """Partitions of one topic stand side by side, best as they stood in the request."""
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


def _write_partition(out: bytearray, version: int, partition: ProducedPartition) -> None:
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

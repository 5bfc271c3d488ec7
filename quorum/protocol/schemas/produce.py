"""The Produce messages (KIP-98, KIP-467, KIP-951, KIP-516): record batches for partitions.

Brokers do not use these classes. Their own code parses the requests and builds the responses, which
is faster (`../hot/produce.py`). The clients of this repository use the classes. Tests compare both
codecs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.field_bounds import (
    ERROR_TEXT,
    PARTITIONS,
    RECORDS,
    TOPIC_NAME,
    TOPICS,
    TRANSACTIONAL_ID,
)
from quorate.quorum.protocol.wire import Message, wire
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProduceData:
    """The record batches for one partition."""

    index: int = wire("int32")
    records: Buffer | None = wire("records", nullable="0+", bound=RECORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduceData:
    """The record batches for one topic."""

    name: str = wire("string", versions="0-12", bound=TOPIC_NAME, default="")
    topic_id: Uuid = wire("uuid", versions="13+", default=ZERO_UUID)
    partition_data: tuple[PartitionProduceData, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequest(Message):
    """Appends record batches.

    `acks` is 1 to wait for the leader only, and -1 to wait for all in-sync replicas, for at most
    `timeout_ms`. With `acks` 0 there is no response."""

    API_KEY: ClassVar[int] = 0
    transactional_id: str | None = wire(
        "string", nullable="0+", bound=TRANSACTIONAL_ID, default=None
    )
    acks: int = wire("int16")
    timeout_ms: int = wire("int32")
    topic_data: tuple[TopicProduceData, ...] = wire(count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIndexAndErrorMessage:
    """The error of one record in a refused batch, by its index in the batch (KIP-467)."""

    batch_index: int = wire("int32", versions="8+", default=0)
    batch_index_error_message: str | None = wire(
        "string", versions="8+", nullable="0+", bound=ERROR_TEXT, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIdAndEpoch:
    """The leader of the partition, sent with NOT_LEADER_OR_FOLLOWER (KIP-951). -1 means unknown."""

    leader_id: int = wire("int32", versions="10+", default=-1)
    leader_epoch: int = wire("int32", versions="10+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProduceResponse:
    """The outcome in one partition: the offset of the first new record, or an error.

    If nothing was appended, `base_offset` is -1. `log_append_time_ms` is -1 unless the broker sets
    the timestamps of the topic's records."""

    index: int = wire("int32")
    error_code: int = wire("int16", default=0)
    base_offset: int = wire("int64")
    log_append_time_ms: int = wire("int64", default=-1)
    log_start_offset: int = wire("int64", versions="5+", default=-1)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = wire(versions="8+", default=())
    error_message: str | None = wire(
        "string", versions="8+", nullable="0+", bound=ERROR_TEXT, default=None
    )
    current_leader: LeaderIdAndEpoch = wire(versions="10+", tag=0, default=LeaderIdAndEpoch())


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduceResponse:
    """The partitions of one topic."""

    name: str = wire("string", versions="0-12", default="")
    topic_id: Uuid = wire("uuid", versions="13+", default=ZERO_UUID)
    partition_responses: tuple[PartitionProduceResponse, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint:
    """The address of a leader that the response names (KIP-951)."""

    node_id: int = wire("int32", versions="10+", default=0)
    host: str = wire("string", versions="10+", default="")
    port: int = wire("int32", versions="10+", default=0)
    rack: str | None = wire("string", versions="10+", nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponse(Message):
    """The outcomes for all partitions."""

    API_KEY: ClassVar[int] = 0
    responses: tuple[TopicProduceResponse, ...] = wire()
    throttle_time_ms: int = wire("int32", default=0)
    node_endpoints: tuple[NodeEndpoint, ...] = wire(versions="10+", tag=0, default=())

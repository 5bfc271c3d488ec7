"""The DescribeProducers messages (KIP-664): the producer states of partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import ERROR_TEXT, PARTITIONS, TOPIC_NAME, TOPICS
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest:
    """The partitions of one topic to describe."""

    name: str = wire("string", bound=TOPIC_NAME)
    partition_indexes: tuple[int, ...] = wire("int32", count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducersRequest(Message):
    """Asks the leaders of partitions for their producer states."""

    API_KEY: ClassVar[int] = 61
    topics: tuple[TopicRequest, ...] = wire(count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerState:
    """The state of one producer in a partition. The timestamp is in milliseconds; -1 means
    unknown."""

    producer_id: int = wire("int64")
    producer_epoch: int = wire("int32")
    last_sequence: int = wire("int32", default=-1)
    last_timestamp: int = wire("int64", default=-1)
    coordinator_epoch: int = wire("int32", default=-1)
    current_txn_start_offset: int = wire("int64", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResponse:
    """The producers of one partition, or its error."""

    partition_index: int = wire("int32")
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    active_producers: tuple[ProducerState, ...] = wire(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResponse:
    """The partitions of one topic."""

    name: str = wire("string")
    partitions: tuple[PartitionResponse, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducersResponse(Message):
    """The producers of the described partitions."""

    API_KEY: ClassVar[int] = 61
    throttle_time_ms: int = wire("int32", default=0)
    topics: tuple[TopicResponse, ...] = wire()

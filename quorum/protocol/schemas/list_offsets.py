"""The ListOffsets messages (KIP-79, KIP-320, KIP-734): the offset at a timestamp, or at an end of a
partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import PARTITIONS, TOPIC_NAME, TOPICS
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartition:
    """A partition and a timestamp in milliseconds. Negative timestamps are symbols: -1 latest, -2
    earliest, -3 maximum timestamp, -4 earliest local, -5 latest tiered."""

    partition_index: int = wire("int32")
    current_leader_epoch: int = wire("int32", versions="4+", default=-1)
    timestamp: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopic:
    """The partitions of one topic."""

    name: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[ListOffsetsPartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest(Message):
    """Asks leaders for offsets. `replica_id` -1 is a consumer."""

    API_KEY: ClassVar[int] = 2
    replica_id: int = wire("int32")
    isolation_level: int = wire("int8", versions="2+", default=0)
    topics: tuple[ListOffsetsTopic, ...] = wire(count=TOPICS)
    timeout_ms: int = wire("int32", versions="10+", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartitionResponse:
    """The offset of one partition, or its error. Offset -1 means that there is none."""

    partition_index: int = wire("int32")
    error_code: int = wire("int16", default=0)
    timestamp: int = wire("int64", default=-1)
    offset: int = wire("int64", default=-1)
    leader_epoch: int = wire("int32", versions="4+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopicResponse:
    """The partitions of one topic."""

    name: str = wire("string")
    partitions: tuple[ListOffsetsPartitionResponse, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponse(Message):
    """The offsets of all partitions."""

    API_KEY: ClassVar[int] = 2
    throttle_time_ms: int = wire("int32", versions="2+", default=0)
    topics: tuple[ListOffsetsTopicResponse, ...] = wire()

"""The OffsetForLeaderEpoch messages (KIP-101, KIP-320): the end offset of a leader epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import PARTITIONS, TOPIC_NAME, TOPICS
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderPartition:
    """A partition and the leader epoch whose end is wanted."""

    partition: int = wire("int32")
    current_leader_epoch: int = wire("int32", default=-1)
    leader_epoch: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopic:
    """The partitions of one topic."""

    topic: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[OffsetForLeaderPartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest(Message):
    """Asks leaders for the ends of epochs. `replica_id` -1 is a consumer."""

    API_KEY: ClassVar[int] = 23
    replica_id: int = wire("int32", versions="3+", default=-2)
    topics: tuple[OffsetForLeaderTopic, ...] = wire(count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndOffset:
    """The largest epoch not above the wanted one, and its end offset. Both are -1 if unknown."""

    error_code: int = wire("int16", default=0)
    partition: int = wire("int32")
    leader_epoch: int = wire("int32", default=-1)
    end_offset: int = wire("int64", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopicResult:
    """The partitions of one topic."""

    topic: str = wire("string")
    partitions: tuple[EpochEndOffset, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponse(Message):
    """The end offsets of all partitions."""

    API_KEY: ClassVar[int] = 23
    throttle_time_ms: int = wire("int32", default=0)
    topics: tuple[OffsetForLeaderTopicResult, ...] = wire()

"""Where a leader epoch ended (KIP-101, KIP-320)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.bounds import PARTITIONS, TOPIC_NAME, TOPICS
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderPartition:
    partition: int = wire("int32")
    current_leader_epoch: int = wire("int32", default=-1)
    leader_epoch: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopic:
    topic: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[OffsetForLeaderPartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest(Message):
    API_KEY: ClassVar[int] = 23
    replica_id: int = wire("int32", versions="3+", default=-2)
    topics: tuple[OffsetForLeaderTopic, ...] = wire(count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndOffset:
    error_code: int = wire("int16", default=0)
    partition: int = wire("int32")
    leader_epoch: int = wire("int32", default=-1)
    end_offset: int = wire("int64", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopicResult:
    topic: str = wire("string")
    partitions: tuple[EpochEndOffset, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponse(Message):
    API_KEY: ClassVar[int] = 23
    throttle_time_ms: int = wire("int32", default=0)
    topics: tuple[OffsetForLeaderTopicResult, ...] = wire()

"""Offsets that groups commit, fetch and give up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.bounds import (
    GROUP_ID,
    GROUP_INSTANCE_ID,
    GROUPS,
    MEMBER_ID,
    OFFSET_METADATA,
    PARTITIONS,
    TOPIC_NAME,
    TOPICS,
)
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestPartition:
    partition_index: int = wire("int32")
    committed_offset: int = wire("int64")
    committed_leader_epoch: int = wire("int32", versions="6+", default=-1)
    committed_metadata: str | None = wire(
        "string", nullable="0+", bound=OFFSET_METADATA, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic:
    name: str = wire("string", versions="0-9", bound=TOPIC_NAME, default="")
    topic_id: Uuid = wire("uuid", versions="10+", default=ZERO_UUID)
    partitions: tuple[OffsetCommitRequestPartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest(Message):
    API_KEY: ClassVar[int] = 8
    group_id: str = wire("string", bound=GROUP_ID)
    generation_id_or_member_epoch: int = wire("int32", default=-1)
    member_id: str = wire("string", bound=MEMBER_ID)
    group_instance_id: str | None = wire(
        "string", versions="7+", nullable="7+", bound=GROUP_INSTANCE_ID, default=None
    )
    retention_time_ms: int = wire("int64", versions="2-4", default=-1)
    topics: tuple[OffsetCommitRequestTopic, ...] = wire(count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponsePartition:
    partition_index: int = wire("int32")
    error_code: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponseTopic:
    name: str = wire("string", versions="0-9", default="")
    topic_id: Uuid = wire("uuid", versions="10+", default=ZERO_UUID)
    partitions: tuple[OffsetCommitResponsePartition, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponse(Message):
    API_KEY: ClassVar[int] = 8
    throttle_time_ms: int = wire("int32", versions="3+", default=0)
    topics: tuple[OffsetCommitResponseTopic, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestTopic:
    name: str = wire("string", versions="0-7", bound=TOPIC_NAME, default="")
    partition_indexes: tuple[int, ...] = wire("int32", versions="0-7", count=PARTITIONS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestTopics:
    name: str = wire("string", versions="8-9", bound=TOPIC_NAME, default="")
    topic_id: Uuid = wire("uuid", versions="10+", default=ZERO_UUID)
    partition_indexes: tuple[int, ...] = wire("int32", versions="8+", count=PARTITIONS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestGroup:
    group_id: str = wire("string", versions="8+", bound=GROUP_ID, default="")
    member_id: str | None = wire(
        "string", versions="9+", nullable="9+", bound=MEMBER_ID, default=None
    )
    member_epoch: int = wire("int32", versions="9+", default=-1)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = wire(
        versions="8+", nullable="8+", count=TOPICS, default=()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequest(Message):
    API_KEY: ClassVar[int] = 9
    group_id: str = wire("string", versions="0-7", bound=GROUP_ID, default="")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = wire(
        versions="0-7", nullable="2-7", count=TOPICS, default=()
    )
    groups: tuple[OffsetFetchRequestGroup, ...] = wire(versions="8+", count=GROUPS, default=())
    require_stable: bool = wire("bool", versions="7+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponsePartition:
    partition_index: int = wire("int32", versions="0-7", default=0)
    committed_offset: int = wire("int64", versions="0-7", default=0)
    committed_leader_epoch: int = wire("int32", versions="5-7", default=-1)
    metadata: str | None = wire("string", versions="0-7", nullable="0-7", default=None)
    error_code: int = wire("int16", versions="0-7", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseTopic:
    name: str = wire("string", versions="0-7", default="")
    partitions: tuple[OffsetFetchResponsePartition, ...] = wire(versions="0-7", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponsePartitions:
    partition_index: int = wire("int32", versions="8+", default=0)
    committed_offset: int = wire("int64", versions="8+", default=0)
    committed_leader_epoch: int = wire("int32", versions="8+", default=-1)
    metadata: str | None = wire("string", versions="8+", nullable="8+", default=None)
    error_code: int = wire("int16", versions="8+", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseTopics:
    name: str = wire("string", versions="8-9", default="")
    topic_id: Uuid = wire("uuid", versions="10+", default=ZERO_UUID)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = wire(versions="8+", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseGroup:
    group_id: str = wire("string", versions="8+", default="")
    topics: tuple[OffsetFetchResponseTopics, ...] = wire(versions="8+", default=())
    error_code: int = wire("int16", versions="8+", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponse(Message):
    API_KEY: ClassVar[int] = 9
    throttle_time_ms: int = wire("int32", versions="3+", default=0)
    topics: tuple[OffsetFetchResponseTopic, ...] = wire(versions="0-7", default=())
    error_code: int = wire("int16", versions="2-7", default=0)
    groups: tuple[OffsetFetchResponseGroup, ...] = wire(versions="8+", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    partition_index: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    name: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[OffsetDeleteRequestPartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequest(Message):
    API_KEY: ClassVar[int] = 47
    group_id: str = wire("string", bound=GROUP_ID)
    topics: tuple[OffsetDeleteRequestTopic, ...] = wire(count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponsePartition:
    partition_index: int = wire("int32")
    error_code: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponseTopic:
    name: str = wire("string")
    partitions: tuple[OffsetDeleteResponsePartition, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponse(Message):
    API_KEY: ClassVar[int] = 47
    error_code: int = wire("int16")
    throttle_time_ms: int = wire("int32")
    topics: tuple[OffsetDeleteResponseTopic, ...] = wire()

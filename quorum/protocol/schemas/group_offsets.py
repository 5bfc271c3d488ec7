"""The messages OffsetCommit, OffsetFetch (KIP-447, KIP-709) and OffsetDelete (KIP-496): the
committed offsets of groups.

Leader epochs came with KIP-320, static members with KIP-345, topic ids with KIP-848.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.field_bounds import (
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
    """The offset to commit for one partition."""

    partition_index: int = wire("int32")
    committed_offset: int = wire("int64")
    committed_leader_epoch: int = wire("int32", versions="6+", default=-1)
    committed_metadata: str | None = wire(
        "string", nullable="0+", bound=OFFSET_METADATA, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic:
    """The offsets to commit for one topic."""

    name: str = wire("string", versions="0-9", bound=TOPIC_NAME, default="")
    topic_id: Uuid = wire("uuid", versions="10+", default=ZERO_UUID)
    partitions: tuple[OffsetCommitRequestPartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest(Message):
    """Commits offsets of a group. Generation -1 and an empty member id commit without
    membership."""

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
    """The outcome for one partition."""

    partition_index: int = wire("int32")
    error_code: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponseTopic:
    """The outcomes for one topic."""

    name: str = wire("string", versions="0-9", default="")
    topic_id: Uuid = wire("uuid", versions="10+", default=ZERO_UUID)
    partitions: tuple[OffsetCommitResponsePartition, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponse(Message):
    """The outcomes for all partitions."""

    API_KEY: ClassVar[int] = 8
    throttle_time_ms: int = wire("int32", versions="3+", default=0)
    topics: tuple[OffsetCommitResponseTopic, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestTopic:
    """Partitions of one topic, before version 8."""

    name: str = wire("string", versions="0-7", bound=TOPIC_NAME, default="")
    partition_indexes: tuple[int, ...] = wire("int32", versions="0-7", count=PARTITIONS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestTopics:
    """Partitions of one topic, since version 8."""

    name: str = wire("string", versions="8-9", bound=TOPIC_NAME, default="")
    topic_id: Uuid = wire("uuid", versions="10+", default=ZERO_UUID)
    partition_indexes: tuple[int, ...] = wire("int32", versions="8+", count=PARTITIONS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestGroup:
    """A group, and the partitions to fetch. None means all partitions with an offset."""

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
    """Asks for committed offsets of one group, or of several since version 8."""

    API_KEY: ClassVar[int] = 9
    group_id: str = wire("string", versions="0-7", bound=GROUP_ID, default="")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = wire(
        versions="0-7", nullable="2-7", count=TOPICS, default=()
    )
    groups: tuple[OffsetFetchRequestGroup, ...] = wire(versions="8+", count=GROUPS, default=())
    require_stable: bool = wire("bool", versions="7+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponsePartition:
    """The offset of one partition, before version 8. Offset -1 means none."""

    partition_index: int = wire("int32", versions="0-7", default=0)
    committed_offset: int = wire("int64", versions="0-7", default=0)
    committed_leader_epoch: int = wire("int32", versions="5-7", default=-1)
    metadata: str | None = wire("string", versions="0-7", nullable="0-7", default=None)
    error_code: int = wire("int16", versions="0-7", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseTopic:
    """The offsets of one topic, before version 8."""

    name: str = wire("string", versions="0-7", default="")
    partitions: tuple[OffsetFetchResponsePartition, ...] = wire(versions="0-7", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponsePartitions:
    """The offset of one partition, since version 8. Offset -1 means none."""

    partition_index: int = wire("int32", versions="8+", default=0)
    committed_offset: int = wire("int64", versions="8+", default=0)
    committed_leader_epoch: int = wire("int32", versions="8+", default=-1)
    metadata: str | None = wire("string", versions="8+", nullable="8+", default=None)
    error_code: int = wire("int16", versions="8+", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseTopics:
    """The offsets of one topic, since version 8."""

    name: str = wire("string", versions="8-9", default="")
    topic_id: Uuid = wire("uuid", versions="10+", default=ZERO_UUID)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = wire(versions="8+", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseGroup:
    """The offsets of one group, or its error."""

    group_id: str = wire("string", versions="8+", default="")
    topics: tuple[OffsetFetchResponseTopics, ...] = wire(versions="8+", default=())
    error_code: int = wire("int16", versions="8+", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponse(Message):
    """The committed offsets of all requested groups."""

    API_KEY: ClassVar[int] = 9
    throttle_time_ms: int = wire("int32", versions="3+", default=0)
    topics: tuple[OffsetFetchResponseTopic, ...] = wire(versions="0-7", default=())
    error_code: int = wire("int16", versions="2-7", default=0)
    groups: tuple[OffsetFetchResponseGroup, ...] = wire(versions="8+", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    """A partition whose offset to delete."""

    partition_index: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    """The partitions of one topic."""

    name: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[OffsetDeleteRequestPartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequest(Message):
    """Deletes committed offsets of a group for topics without subscribers."""

    API_KEY: ClassVar[int] = 47
    group_id: str = wire("string", bound=GROUP_ID)
    topics: tuple[OffsetDeleteRequestTopic, ...] = wire(count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponsePartition:
    """The outcome for one partition."""

    partition_index: int = wire("int32")
    error_code: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponseTopic:
    """The outcomes for one topic."""

    name: str = wire("string")
    partitions: tuple[OffsetDeleteResponsePartition, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponse(Message):
    """The outcomes for all partitions."""

    API_KEY: ClassVar[int] = 47
    error_code: int = wire("int16")
    throttle_time_ms: int = wire("int32")
    topics: tuple[OffsetDeleteResponseTopic, ...] = wire()

"""The messages CreateTopics (KIP-4, KIP-525), DeleteTopics (KIP-4), CreatePartitions (KIP-195) and
DeleteRecords (KIP-107).

Topic ids came with KIP-516.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.field_bounds import (
    CONFIG_NAME,
    CONFIG_VALUE,
    CONFIGS,
    ERROR_TEXT,
    MAX_ASSIGNMENT_ELEMENTS,
    MAX_CONTROLLER_ELEMENTS,
    PARTITIONS,
    REPLICAS,
    TOPIC_NAME,
    TOPICS,
)
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableReplicaAssignment:
    """The replicas of one new partition."""

    partition_index: int = wire("int32")
    broker_ids: tuple[int, ...] = wire("int32", count=REPLICAS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopicConfig:
    """A config of a new topic."""

    name: str = wire("string", bound=CONFIG_NAME)
    value: str | None = wire("string", nullable="0+", bound=CONFIG_VALUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopic:
    """A topic to create. Counts of -1 mean the default, or that `assignments` are given."""

    name: str = wire("string", bound=TOPIC_NAME)
    num_partitions: int = wire("int32")
    replication_factor: int = wire("int16")
    assignments: tuple[CreatableReplicaAssignment, ...] = wire(count=PARTITIONS)
    configs: tuple[CreatableTopicConfig, ...] = wire(count=CONFIGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsRequest(Message):
    """Creates topics. With `validate_only` nothing is created."""

    API_KEY: ClassVar[int] = 19
    MAX_ELEMENTS: ClassVar[int] = MAX_ASSIGNMENT_ELEMENTS
    topics: tuple[CreatableTopic, ...] = wire(count=TOPICS)
    timeout_ms: int = wire("int32", default=60000)
    validate_only: bool = wire("bool", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopicConfigs:
    """A config of the created topic."""

    name: str = wire("string", versions="5+", default="")
    value: str | None = wire("string", versions="5+", nullable="0+", default=None)
    read_only: bool = wire("bool", versions="5+", default=False)
    config_source: int = wire("int8", versions="5+", default=-1)
    is_sensitive: bool = wire("bool", versions="5+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopicResult:
    """The outcome for one topic."""

    name: str = wire("string")
    topic_id: Uuid = wire("uuid", versions="7+", default=ZERO_UUID)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    topic_config_error_code: int = wire("int16", versions="5+", tag=0, default=0)
    num_partitions: int = wire("int32", versions="5+", default=-1)
    replication_factor: int = wire("int16", versions="5+", default=-1)
    configs: tuple[CreatableTopicConfigs, ...] | None = wire(
        versions="5+", nullable="0+", default=()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsResponse(Message):
    """The outcomes for all topics."""

    API_KEY: ClassVar[int] = 19
    throttle_time_ms: int = wire("int32", default=0)
    topics: tuple[CreatableTopicResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicState:
    """A topic to delete, by name or by id."""

    name: str | None = wire("string", versions="6+", nullable="0+", bound=TOPIC_NAME, default=None)
    topic_id: Uuid = wire("uuid", versions="6+", default=ZERO_UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsRequest(Message):
    """Deletes topics. Before version 6 they are given in `topic_names`."""

    API_KEY: ClassVar[int] = 20
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    topics: tuple[DeleteTopicState, ...] = wire(versions="6+", count=TOPICS, default=())
    topic_names: tuple[str, ...] = wire(
        "string", versions="0-5", bound=TOPIC_NAME, count=TOPICS, default=()
    )
    timeout_ms: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletableTopicResult:
    """The outcome for one topic."""

    name: str | None = wire("string", nullable="6+")
    topic_id: Uuid = wire("uuid", versions="6+", default=ZERO_UUID)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire(
        "string", versions="5+", nullable="0+", bound=ERROR_TEXT, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsResponse(Message):
    """The outcomes for all topics."""

    API_KEY: ClassVar[int] = 20
    throttle_time_ms: int = wire("int32", default=0)
    responses: tuple[DeletableTopicResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsAssignment:
    """The replicas of one new partition."""

    broker_ids: tuple[int, ...] = wire("int32", count=REPLICAS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsTopic:
    """A topic and its new number of partitions."""

    name: str = wire("string", bound=TOPIC_NAME)
    count: int = wire("int32")
    assignments: tuple[CreatePartitionsAssignment, ...] | None = wire(
        nullable="0+", count=PARTITIONS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsRequest(Message):
    """Adds partitions to topics. With `validate_only` nothing changes."""

    API_KEY: ClassVar[int] = 37
    MAX_ELEMENTS: ClassVar[int] = MAX_ASSIGNMENT_ELEMENTS
    topics: tuple[CreatePartitionsTopic, ...] = wire(count=TOPICS)
    timeout_ms: int = wire("int32")
    validate_only: bool = wire("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsTopicResult:
    """The outcome for one topic."""

    name: str = wire("string")
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsResponse(Message):
    """The outcomes for all topics."""

    API_KEY: ClassVar[int] = 37
    throttle_time_ms: int = wire("int32", default=0)
    results: tuple[CreatePartitionsTopicResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsPartition:
    """A partition and its new log start offset. Offset -1 means the high watermark."""

    partition_index: int = wire("int32")
    offset: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsTopic:
    """The partitions of one topic."""

    name: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[DeleteRecordsPartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsRequest(Message):
    """Deletes the records below an offset."""

    API_KEY: ClassVar[int] = 21
    topics: tuple[DeleteRecordsTopic, ...] = wire(count=TOPICS)
    timeout_ms: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsPartitionResult:
    """The new low watermark of one partition, or its error."""

    partition_index: int = wire("int32")
    low_watermark: int = wire("int64")
    error_code: int = wire("int16", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsTopicResult:
    """The outcomes for one topic."""

    name: str = wire("string")
    partitions: tuple[DeleteRecordsPartitionResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsResponse(Message):
    """The outcomes for all partitions."""

    API_KEY: ClassVar[int] = 21
    throttle_time_ms: int = wire("int32", default=0)
    topics: tuple[DeleteRecordsTopicResult, ...] = wire()

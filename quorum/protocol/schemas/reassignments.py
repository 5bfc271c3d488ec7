"""The messages AlterPartitionReassignments and ListPartitionReassignments (KIP-455, KIP-860): moves
of replicas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import (
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
class ReassignablePartition:
    """The target replicas of one partition. None cancels its reassignment."""

    partition_index: int = wire("int32")
    replicas: tuple[int, ...] | None = wire("int32", nullable="0+", count=REPLICAS, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignableTopic:
    """The partitions of one topic."""

    name: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[ReassignablePartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsRequest(Message):
    """Starts or cancels reassignments."""

    API_KEY: ClassVar[int] = 45
    MAX_ELEMENTS: ClassVar[int] = MAX_ASSIGNMENT_ELEMENTS
    timeout_ms: int = wire("int32", default=60000)
    allow_replication_factor_change: bool = wire("bool", versions="1+", default=True)
    topics: tuple[ReassignableTopic, ...] = wire(count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignablePartitionResponse:
    """The outcome for one partition."""

    partition_index: int = wire("int32")
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignableTopicResponse:
    """The outcomes for one topic."""

    name: str = wire("string")
    partitions: tuple[ReassignablePartitionResponse, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsResponse(Message):
    """The outcomes for all partitions."""

    API_KEY: ClassVar[int] = 45
    throttle_time_ms: int = wire("int32", default=0)
    allow_replication_factor_change: bool = wire("bool", versions="1+", default=True)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    responses: tuple[ReassignableTopicResponse, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsTopics:
    """Partitions of one topic."""

    name: str = wire("string", bound=TOPIC_NAME)
    partition_indexes: tuple[int, ...] = wire("int32", count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsRequest(Message):
    """Asks for reassignments in progress. None means all partitions."""

    API_KEY: ClassVar[int] = 46
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    timeout_ms: int = wire("int32", default=60000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = wire(
        nullable="0+", count=TOPICS, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OngoingPartitionReassignment:
    """A partition with its current, adding and removing replicas."""

    partition_index: int = wire("int32")
    replicas: tuple[int, ...] = wire("int32")
    adding_replicas: tuple[int, ...] = wire("int32")
    removing_replicas: tuple[int, ...] = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class OngoingTopicReassignment:
    """The reassignments of one topic."""

    name: str = wire("string")
    partitions: tuple[OngoingPartitionReassignment, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsResponse(Message):
    """The reassignments in progress."""

    API_KEY: ClassVar[int] = 46
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    topics: tuple[OngoingTopicReassignment, ...] = wire()

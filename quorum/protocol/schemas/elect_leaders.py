"""The ElectLeaders messages (KIP-183, KIP-460): preferred and unclean elections on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import (
    ERROR_TEXT,
    MAX_CONTROLLER_ELEMENTS,
    PARTITIONS,
    TOPIC_NAME,
    TOPICS,
)
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions:
    """Partitions of one topic."""

    topic: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[int, ...] = wire("int32", count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequest(Message):
    """Asks for elections. `election_type` is 0 for preferred and 1 for unclean; None means all
    partitions."""

    API_KEY: ClassVar[int] = 43
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    election_type: int = wire("int8", versions="1+", default=0)
    topic_partitions: tuple[TopicPartitions, ...] | None = wire(nullable="0+", count=TOPICS)
    timeout_ms: int = wire("int32", default=60000)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """The outcome for one partition."""

    partition_id: int = wire("int32")
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaElectionResult:
    """The outcomes for the partitions of one topic."""

    topic: str = wire("string")
    partition_result: tuple[PartitionResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersResponse(Message):
    """The outcomes of all elections."""

    API_KEY: ClassVar[int] = 43
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", versions="1+", default=0)
    replica_election_results: tuple[ReplicaElectionResult, ...] = wire()

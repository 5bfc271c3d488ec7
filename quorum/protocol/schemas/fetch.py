"""The Fetch messages (KIP-74, KIP-227, KIP-320, KIP-595, KIP-516, KIP-903): record batches of
partitions.

Brokers do not use these classes. Their own code parses and builds the messages, which is faster
(`../hot/`). The clients of this repository use the classes. Tests compare both codecs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.field_bounds import (
    CLIENT_TEXT,
    CLUSTER_ID,
    PARTITIONS,
    TOPIC_NAME,
    TOPICS,
)
from quorate.quorum.protocol.wire import Message, wire
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The fetching replica and its broker epoch (KIP-903). `replica_id` -1 is a consumer."""

    replica_id: int = wire("int32", versions="15+", default=-1)
    replica_epoch: int = wire("int64", versions="15+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPartition:
    """One partition to fetch, and the state of the fetcher in it."""

    partition: int = wire("int32")
    current_leader_epoch: int = wire("int32", versions="9+", default=-1)
    fetch_offset: int = wire("int64")
    last_fetched_epoch: int = wire("int32", versions="12+", default=-1)
    log_start_offset: int = wire("int64", versions="5+", default=-1)
    partition_max_bytes: int = wire("int32")
    replica_directory_id: Uuid = wire("uuid", versions="17+", tag=0, default=ZERO_UUID)
    high_watermark: int = wire("int64", versions="18+", tag=1, default=9223372036854775807)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTopic:
    """The partitions of one topic to fetch."""

    topic: str = wire("string", versions="0-12", bound=TOPIC_NAME, default="")
    topic_id: Uuid = wire("uuid", versions="13+", default=ZERO_UUID)
    partitions: tuple[FetchPartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenTopic:
    """Partitions to remove from the fetch session (KIP-227)."""

    topic: str = wire("string", versions="7-12", bound=TOPIC_NAME, default="")
    topic_id: Uuid = wire("uuid", versions="13+", default=ZERO_UUID)
    partitions: tuple[int, ...] = wire("int32", versions="7+", count=PARTITIONS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest(Message):
    """Asks for record batches. The leader waits up to `max_wait_ms` for `min_bytes`."""

    API_KEY: ClassVar[int] = 1
    cluster_id: str | None = wire(
        "string", versions="12+", nullable="0+", tag=0, bound=CLUSTER_ID, default=None
    )
    replica_id: int = wire("int32", versions="0-14", default=-1)
    replica_state: ReplicaState = wire(versions="15+", tag=1, default=ReplicaState())
    max_wait_ms: int = wire("int32")
    min_bytes: int = wire("int32")
    max_bytes: int = wire("int32", default=2147483647)
    isolation_level: int = wire("int8", default=0)
    session_id: int = wire("int32", versions="7+", default=0)
    session_epoch: int = wire("int32", versions="7+", default=-1)
    topics: tuple[FetchTopic, ...] = wire(count=TOPICS)
    forgotten_topics_data: tuple[ForgottenTopic, ...] = wire(
        versions="7+", count=TOPICS, default=()
    )
    rack_id: str = wire("string", versions="11+", bound=CLIENT_TEXT, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndOffset:
    """The leader's largest epoch not above the follower's last fetched one, and its end offset. The
    leader sends it if the follower's log diverges (KIP-595). -1 means that it does not."""

    epoch: int = wire("int32", versions="12+", default=-1)
    end_offset: int = wire("int64", versions="12+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIdAndEpoch:
    """The leader of the partition, sent with errors of a wrong leader."""

    leader_id: int = wire("int32", versions="12+", default=-1)
    leader_epoch: int = wire("int32", versions="12+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotId:
    """The snapshot to fetch instead, in Raft's use of Fetch (KIP-630)."""

    end_offset: int = wire("int64", default=-1)
    epoch: int = wire("int32", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTransaction:
    """A transaction whose records consumers must skip."""

    producer_id: int = wire("int64")
    first_offset: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData:
    """The records and the offsets of one partition, or its error."""

    partition_index: int = wire("int32")
    error_code: int = wire("int16", default=0)
    high_watermark: int = wire("int64")
    last_stable_offset: int = wire("int64", default=-1)
    log_start_offset: int = wire("int64", versions="5+", default=-1)
    diverging_epoch: EpochEndOffset = wire(versions="12+", tag=0, default=EpochEndOffset())
    current_leader: LeaderIdAndEpoch = wire(versions="12+", tag=1, default=LeaderIdAndEpoch())
    snapshot_id: SnapshotId = wire(versions="12+", tag=2, default=SnapshotId())
    aborted_transactions: tuple[AbortedTransaction, ...] | None = wire(nullable="0+", default=None)
    preferred_read_replica: int = wire("int32", versions="11+", default=-1)
    records: Buffer | None = wire("records", nullable="0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchableTopicResponse:
    """The partitions of one topic."""

    topic: str = wire("string", versions="0-12", default="")
    topic_id: Uuid = wire("uuid", versions="13+", default=ZERO_UUID)
    partitions: tuple[PartitionData, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint:
    """The address of a leader that the response names (KIP-951)."""

    node_id: int = wire("int32", versions="16+", default=0)
    host: str = wire("string", versions="16+", default="")
    port: int = wire("int32", versions="16+", default=0)
    rack: str | None = wire("string", versions="16+", nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse(Message):
    """The fetched partitions."""

    API_KEY: ClassVar[int] = 1
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", versions="7+", default=0)
    session_id: int = wire("int32", versions="7+", default=0)
    responses: tuple[FetchableTopicResponse, ...] = wire()
    node_endpoints: tuple[NodeEndpoint, ...] = wire(versions="16+", tag=0, default=())

"""What brokers ask the active controller, node to node, as plain values named as Kafka's RPCs.

Admin requests of clients travel inside an Envelope, in Kafka's own bytes, and come back the same
way. Errors are Kafka's codes (`rpc/kafka/errors.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from quorate.quorum.bounds import (
    MAX_NODE_FRAME_BYTES,
    Bytes,
    ClientId,
    Count,
    Epoch,
    EpochOrNone,
    ErrorNumber,
    Host,
    Items,
    Message,
    Name,
    NodeId,
    NodeIdOrNone,
    Number,
    OffsetOrNone,
    PartitionId,
    Port,
    Rack,
    Version,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.records import Endpoint, FeatureRange
from quorate.quorum.seams import Buffer

MAX_ENDPOINTS = 16
MAX_FEATURES = 100
MAX_LOG_DIRS = 100
MAX_ISR = 1000
MAX_CHANGES = 10_000
"""Partitions in one AlterPartition request; a broker with more changes sends them in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationRequest:
    broker_id: NodeId
    cluster_id: Name
    incarnation_id: Uuid
    endpoints: Annotated[tuple[Endpoint, ...], Items(MAX_ENDPOINTS)]
    features: Annotated[tuple[FeatureRange, ...], Items(MAX_FEATURES)]
    rack: Rack | None
    log_dirs: Annotated[tuple[Uuid, ...], Items(MAX_LOG_DIRS)]
    previous_broker_epoch: OffsetOrNone  # of the clean shutdown file; -1 after an unclean one
    replication_address: tuple[
        Host, Port
    ]  # where a probe can tell a dead process from a silent one


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationResponse:
    error: ErrorNumber
    message: Message = ""
    broker_epoch: OffsetOrNone = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatRequest:
    broker_id: NodeId
    broker_epoch: OffsetOrNone
    metadata_offset: OffsetOrNone  # last offset the broker has replayed
    want_fence: bool
    want_shut_down: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatResponse:
    error: ErrorNumber
    caught_up: bool = False
    fenced: bool = True
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChange:
    """One partition of an AlterPartition request. `isr` pairs broker id and broker epoch (-1:
    unknown)."""

    topic_id: Uuid
    partition_id: PartitionId
    leader_epoch: Epoch
    partition_epoch: Epoch
    isr: Annotated[tuple[tuple[NodeId, OffsetOrNone], ...], Items(MAX_ISR)]
    leader_recovery_state: Number
    cause: Name  # the leader's reason, see metadata/causes.py


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequest:
    broker_id: NodeId
    broker_epoch: OffsetOrNone
    changes: Annotated[tuple[IsrChange, ...], Items(MAX_CHANGES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChangeResult:
    topic_id: Uuid
    partition_id: PartitionId
    error: ErrorNumber
    leader: NodeIdOrNone = -1
    leader_epoch: EpochOrNone = -1
    partition_epoch: EpochOrNone = -1
    isr: Annotated[tuple[NodeId, ...], Items(MAX_ISR)] = ()
    leader_recovery_state: Number = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionResponse:
    error: ErrorNumber
    results: Annotated[tuple[IsrChangeResult, ...], Items(MAX_CHANGES)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsRequest:
    broker_id: NodeId
    broker_epoch: OffsetOrNone


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsResponse:
    error: ErrorNumber
    first_producer_id: OffsetOrNone = -1
    count: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeRequest:
    """A client's admin request: `body` is the Kafka request after its header, at (api_key,
    version)."""

    api_key: Number
    version: Version
    client_id: ClientId
    body: Annotated[Buffer, Bytes(MAX_NODE_FRAME_BYTES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeResponse:
    """NONE: `body` is the Kafka response after its header. NOT_CONTROLLER: provably not appended,
    may be sent again. REQUEST_TIMED_OUT or NETWORK_EXCEPTION: unknown outcome, told to the
    client."""

    error: ErrorNumber
    body: Annotated[Buffer, Bytes(MAX_NODE_FRAME_BYTES)] = b""

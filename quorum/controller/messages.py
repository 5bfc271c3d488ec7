"""The node-to-node messages between brokers and the active controller, named after Kafka's RPCs.

Admin requests of clients travel inside an Envelope in Kafka's own encoding, and so do their
responses. Errors are Kafka's codes (`rpc/kafka/errors.py`). Each field's type declares its bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.records import Endpoint, FeatureRange
from quorate.quorum.node_message_bounds import (
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
from quorate.quorum.seams import Buffer

MAX_ENDPOINTS = 16
MAX_FEATURES = 100
MAX_LOG_DIRS = 100
MAX_ISR = 1000
MAX_CHANGES = 10_000
"""The maximum number of partitions in one AlterPartition request. A broker with more changes sends
several requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationRequest:
    """A broker registers itself, or renews the registration of the same incarnation.

    `incarnation_id` is new for each process. `features` are the ranges that the broker supports,
    and `log_dirs` are the ids of its log directories.
    """

    broker_id: NodeId
    cluster_id: Name
    incarnation_id: Uuid
    endpoints: Annotated[tuple[Endpoint, ...], Items(MAX_ENDPOINTS)]
    features: Annotated[tuple[FeatureRange, ...], Items(MAX_FEATURES)]
    rack: Rack | None
    log_dirs: Annotated[tuple[Uuid, ...], Items(MAX_LOG_DIRS)]
    # from the clean shutdown file; -1 after an unclean shutdown
    previous_broker_epoch: OffsetOrNone
    replication_address: tuple[
        Host, Port
    ]  # HOST and PORT of the node port, which probes connect to


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationResponse:
    """The broker epoch of the registration, or an error with its message."""

    error: ErrorNumber
    message: Message = ""
    broker_epoch: OffsetOrNone = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatRequest:
    """A broker extends its session and asks for a state.

    `want_shut_down` asks for a controlled shutdown, and then for the permission to stop.
    `want_fence` asks to be fenced. An unfenced broker that sets both may stop without a controlled
    shutdown. A fenced broker that sets neither asks to be unfenced.
    """

    broker_id: NodeId
    broker_epoch: OffsetOrNone
    metadata_offset: OffsetOrNone  # last offset that the broker has replayed
    want_fence: bool
    want_shut_down: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatResponse:
    """The state that the controller chose for the broker.

    `caught_up`: the broker has replayed the record that fenced or registered it. `fenced`: the
    broker is fenced after this heartbeat. `should_shut_down`: the broker may end its process. After
    an error only `error` counts.
    """

    error: ErrorNumber
    caught_up: bool = False
    fenced: bool = True
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChange:
    """One partition of an AlterPartition request.

    `isr` is the proposed ISR as pairs of broker id and broker epoch; epoch -1 means unknown.
    `leader_epoch` and `partition_epoch` are those that the leader decided on.
    """

    topic_id: Uuid
    partition_id: PartitionId
    leader_epoch: Epoch
    partition_epoch: Epoch
    isr: Annotated[tuple[tuple[NodeId, OffsetOrNone], ...], Items(MAX_ISR)]
    leader_recovery_state: Number
    cause: Name  # the leader's reason; see metadata/causes.py


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequest:
    """A leader proposes new ISRs for partitions that it leads (KIP-497)."""

    broker_id: NodeId
    broker_epoch: OffsetOrNone
    changes: Annotated[tuple[IsrChange, ...], Items(MAX_CHANGES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChangeResult:
    """The new state of one partition. If `error` is not NONE, only the ids are set."""

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
    """The results in the order of the request's changes. If `error` is not NONE, the whole request
    failed and `results` is empty."""

    error: ErrorNumber
    results: Annotated[tuple[IsrChangeResult, ...], Items(MAX_CHANGES)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsRequest:
    """A broker asks for a block of producer ids."""

    broker_id: NodeId
    broker_epoch: OffsetOrNone


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsResponse:
    """The block: `count` ids from `first_producer_id` on, or an error."""

    error: ErrorNumber
    first_producer_id: OffsetOrNone = -1
    count: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeRequest:
    """An admin request of a client, forwarded by a broker.

    `body` holds the bytes of the Kafka request after its header, encoded for (`api_key`,
    `version`).
    """

    api_key: Number
    version: Version
    client_id: ClientId
    body: Annotated[Buffer, Bytes(MAX_NODE_FRAME_BYTES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeResponse:
    """The outcome of an EnvelopeRequest.

    NONE: `body` holds the bytes of the Kafka response after its header. NOT_CONTROLLER: nothing was
    appended, so the broker may resend the request. REQUEST_TIMED_OUT: the outcome is unknown, and
    the broker reports this error to the client. Any other error: the controller has refused the
    request, and the broker reports the error (`ControllerPort.envelope`).
    """

    error: ErrorNumber
    body: Annotated[Buffer, Bytes(MAX_NODE_FRAME_BYTES)] = b""

"""The messages of brokers and controllers to the active controller, named after Kafka's RPCs.

Admin requests of clients travel inside an Envelope in Kafka's own encoding, and so do their
responses. Errors are Kafka's codes (`protocol/errors.py`). The type of each field declares its
bound. The decoder rejects a message that exceeds one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from quorate.config.node_config import MAX_LOG_DIRS
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
"""Maximum number of listeners of a broker or a controller."""
MAX_FEATURES = 100
"""Maximum number of features that a broker or a controller names."""
MAX_ISR = 1000
"""Maximum number of replicas in the ISR of one partition."""
MAX_REPLICA_LOGS = 1_000
"""The maximum number of partitions in one ReplicaLogs request."""
MAX_CHANGES = 10_000
"""Maximum number of partitions in one AlterPartition request. A broker with more changes sends
several requests."""


MAX_ASSIGNMENTS = 2250
"""Maximum number of replicas in one AssignReplicasToDirs request, as in Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationRequest:
    """A broker registers itself, or renews the registration of the same incarnation."""

    broker_id: NodeId
    cluster_id: Name
    incarnation_id: Uuid
    """A random id that is new for each process."""
    endpoints: Annotated[tuple[Endpoint, ...], Items(MAX_ENDPOINTS)]
    features: Annotated[tuple[FeatureRange, ...], Items(MAX_FEATURES)]
    """The ranges of feature versions that the broker supports."""
    rack: Rack | None
    log_dirs: Annotated[tuple[Uuid, ...], Items(MAX_LOG_DIRS)]
    """The ids of the broker's log directories."""
    previous_broker_epoch: OffsetOrNone
    """The broker epoch in the clean shutdown file, -1 after an unclean shutdown."""
    replication_address: tuple[Host, Port]
    """The address of the broker's node port. Other brokers fetch there, controllers probe it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationResponse:
    """The broker epoch of the registration, or an error with its message."""

    error: ErrorNumber
    message: Message = ""
    broker_epoch: OffsetOrNone = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistrationRequest:
    """A controller registers itself at the active controller (KIP-919)."""

    controller_id: NodeId
    incarnation_id: Uuid
    """A random id that is new for each process."""
    endpoints: Annotated[tuple[Endpoint, ...], Items(MAX_ENDPOINTS)]
    """The controller listeners."""
    features: Annotated[tuple[FeatureRange, ...], Items(MAX_FEATURES)]
    """The ranges of feature versions that the controller supports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistrationResponse:
    """The outcome of a registration, or an error with its message."""

    error: ErrorNumber
    message: Message = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatRequest:
    """A broker extends its session and asks for a state.

    - With neither flag the broker asks to be unfenced, or to stay so.
    - `want_fence` alone asks to be fenced.
    - `want_shut_down` alone asks to stop. A broker that leads partitions first gets a controlled
      shutdown, and repeats the heartbeat until the response has `should_shut_down`.
    - Both flags together ask to stop without a controlled shutdown.

    A controlled shutdown that has begun continues, whatever the flags are.
    """

    broker_id: NodeId
    broker_epoch: OffsetOrNone
    metadata_offset: OffsetOrNone
    """The last offset that the broker has replayed."""
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: Annotated[tuple[Uuid, ...], Items(MAX_LOG_DIRS)] = ()
    """The ids of the log directories that have failed since the broker was started. Every heartbeat
    names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatResponse:
    """The state that the controller chose for the broker.

    If `error` is not NONE, the other fields have no meaning.
    """

    error: ErrorNumber
    caught_up: bool = False
    """True if the broker has replayed the record that fenced or registered it."""
    fenced: bool = True
    """True if the broker is fenced after this heartbeat."""
    should_shut_down: bool = False
    """True if the broker may end its process now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChange:
    """One partition of an AlterPartition request.

    `leader_epoch` and `partition_epoch` are the leader's when it proposed the ISR. The controller
    refuses the change if its image has other epochs.
    """

    topic_id: Uuid
    partition_id: PartitionId
    leader_epoch: Epoch
    partition_epoch: Epoch
    isr: Annotated[tuple[tuple[NodeId, OffsetOrNone], ...], Items(MAX_ISR)]
    """The proposed ISR as (broker id, broker epoch). The controller refuses the change if another
    epoch is registered. Epoch -1 means that the leader does not know it, and is not compared."""
    leader_recovery_state: Number
    """RECOVERED or RECOVERING (`metadata/records.py`)."""
    cause: Name
    """The leader's reason, one of `metadata/causes.py`."""
    min_insync_replicas: Count = 1
    """The min.insync.replicas that the leader applies. A leader that sends none may apply 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequest:
    """A leader proposes new ISRs for partitions that it leads (KIP-497)."""

    broker_id: NodeId
    broker_epoch: OffsetOrNone
    changes: Annotated[tuple[IsrChange, ...], Items(MAX_CHANGES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChangeResult:
    """The new state of one partition. If `error` is not NONE, only the topic id, the partition id
    and the error are set."""

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
class AssignReplicasToDirsRequest:
    """A broker reports the log directories of some of its replicas (KIP-858)."""

    broker_id: NodeId
    broker_epoch: OffsetOrNone
    assignments: Annotated[tuple[tuple[Uuid, PartitionId, Uuid], ...], Items(MAX_ASSIGNMENTS)]
    """The replicas, each as (topic id, partition id, directory id)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignReplicasToDirsResponse:
    """One error code for each assignment of the request, in its order. If `error` is not NONE, the
    whole request failed and `errors` is empty."""

    error: ErrorNumber
    errors: Annotated[tuple[ErrorNumber, ...], Items(MAX_ASSIGNMENTS)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsRequest:
    """A broker asks for a block of producer ids."""

    broker_id: NodeId
    broker_epoch: OffsetOrNone


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsResponse:
    """The block: `count` producer ids from `first_producer_id` on, or an error and no ids."""

    error: ErrorNumber
    first_producer_id: OffsetOrNone = -1
    count: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLogsRequest:
    """The active controller asks a broker for the ends of some of its logs (KIP-966, part 2)."""

    partitions: Annotated[tuple[tuple[Uuid, PartitionId], ...], Items(MAX_REPLICA_LOGS)]
    """The partitions, each as (topic id, partition id)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLog:
    """The end of one replica's log."""

    topic_id: Uuid
    partition_id: PartitionId
    last_epoch: EpochOrNone
    """The leader epoch of the last record; -1 for an empty log."""
    end_offset: OffsetOrNone
    """The log end offset."""
    high_watermark: OffsetOrNone
    """The high watermark that the replica knows. Records below it are committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLogsResponse:
    """The ends of the logs that are open on the broker. Other partitions are left out."""

    broker_epoch: OffsetOrNone
    """The broker epoch of the incarnation that answers."""
    logs: Annotated[tuple[ReplicaLog, ...], Items(MAX_REPLICA_LOGS)] = ()


NODE_PRINCIPAL = "Node"
"""The principal type of a broker that sends an envelope for itself. No client has this type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeRequest:
    """An admin request of a client, forwarded by a broker.

    `body` holds the bytes of the Kafka request after its header, encoded for (`api_key`,
    `version`). The principal and the host are those of the client. Nodes before the authorizer do
    not send them; a controller with an authorizer refuses such an envelope. A broker that asks for
    itself has the principal type NODE_PRINCIPAL.
    """

    api_key: Number
    version: Version
    client_id: ClientId
    body: Annotated[Buffer, Bytes(MAX_NODE_FRAME_BYTES)]
    principal_type: Name = ""
    principal_name: ClientId = ""
    token_authenticated: bool = False
    """True if the client has authenticated with a delegation token."""
    client_host: Host = ""
    listener: Name = ""
    """The name of the broker's listener that the client is connected to."""
    must_check: bool = False
    """True if the broker has an authorizer and did not check the request itself. A controller
    without an authorizer refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeResponse:
    """The outcome of an EnvelopeRequest, by its `error`:

    - NONE: `body` holds the bytes of the Kafka response after its header.
    - NOT_CONTROLLER: nothing was appended, so the broker may resend the request.
    - REQUEST_TIMED_OUT: the outcome is unknown. The broker passes the error on to the client.
    - Any other error: nothing was changed (`ControllerPort.envelope`). The broker passes the error
      on to the client.
    """

    error: ErrorNumber
    body: Annotated[Buffer, Bytes(MAX_NODE_FRAME_BYTES)] = b""

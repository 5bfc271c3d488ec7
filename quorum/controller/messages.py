"""What brokers ask the active controller, node to node, as plain values named as Kafka's RPCs.

Admin requests of clients travel inside an Envelope, in Kafka's own bytes, and come back the same
way. Errors are Kafka's codes (`rpc/kafka/errors.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.records import Endpoint, FeatureRange
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationRequest:
    broker_id: int
    cluster_id: str
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...]
    rack: str | None
    log_dirs: tuple[Uuid, ...]
    previous_broker_epoch: int  # of the clean shutdown file; -1 after an unclean one
    replication_address: tuple[str, int]  # where a probe can tell a dead process from a silent one


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationResponse:
    error: int
    message: str = ""
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatRequest:
    broker_id: int
    broker_epoch: int
    metadata_offset: int  # last offset the broker has replayed
    want_fence: bool
    want_shut_down: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatResponse:
    error: int
    caught_up: bool = False
    fenced: bool = True
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChange:
    """One partition of an AlterPartition request. `isr` pairs broker id and broker epoch (-1:
    unknown)."""

    topic_id: Uuid
    partition_id: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    leader_recovery_state: int
    cause: str  # the leader's reason, see metadata/causes.py


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequest:
    broker_id: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChangeResult:
    topic_id: Uuid
    partition_id: int
    error: int
    leader: int = -1
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionResponse:
    error: int
    results: tuple[IsrChangeResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsRequest:
    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateProducerIdsResponse:
    error: int
    first_producer_id: int = -1
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeRequest:
    """A client's admin request: `body` is the Kafka request after its header, at (api_key,
    version)."""

    api_key: int
    version: int
    client_id: str
    body: Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeResponse:
    """NONE: `body` is the Kafka response after its header. NOT_CONTROLLER: provably not appended,
    may be sent again. REQUEST_TIMED_OUT or NETWORK_EXCEPTION: unknown outcome, told to the
    client."""

    error: int
    body: Buffer = b""

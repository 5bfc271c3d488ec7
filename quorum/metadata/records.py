"""Kafka's metadata records (KIP-500), as declared schemas; the framing and codecs are in
`framing.py`.

Each class names its api key and the highest version we write at metadata.version 27 (4.1-IV1).
Change records carry only what changed. `cause` (tag 9000, ours: Kafka skips it) says why; see
`causes.py`. It is history, not state: it is neither in the image nor in snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.bounds import Host, Name, Number, Port, Version
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.rpc.kafka.bounds import (
    REGISTERED_TEXT,
    STORED_ELEMENTS,
    STORED_REPLICAS,
    STORED_TEXT,
)
from quorate.quorum.rpc.kafka.wire import wire

NO_LEADER = -1
NO_LEADER_CHANGE = -2
RECOVERED = 0
RECOVERING = 1
NO_RECOVERY_CHANGE = -1
CAUSE_TAG = 9000


class MetadataRecord:
    """Base of every record class; `API_KEY` is unique, `VERSION` the one we write."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    VERSION: ClassVar[int] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    name: Name = wire("string", bound=REGISTERED_TEXT)
    host: Host = wire("string", bound=REGISTERED_TEXT)
    port: Port = wire("uint16")
    security_protocol: Number = wire("int16", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRange:
    name: Name = wire("string", bound=REGISTERED_TEXT)
    min_supported_version: Version = wire("int16")
    max_supported_version: Version = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 0
    VERSION: ClassVar[int] = 3
    broker_id: int = wire("int32")
    is_migrating_zk_broker: bool = wire("bool", versions="2+", default=False)
    incarnation_id: Uuid = wire("uuid")
    broker_epoch: int = wire("int64")
    end_points: tuple[Endpoint, ...] = wire(count=STORED_ELEMENTS)
    features: tuple[FeatureRange, ...] = wire(count=STORED_ELEMENTS, default=())
    rack: str | None = wire("string", nullable="0+", bound=REGISTERED_TEXT, default=None)
    fenced: bool = wire("bool", default=True)
    in_controlled_shutdown: bool = wire("bool", versions="1+", default=False)
    log_dirs: tuple[Uuid, ...] = wire(
        "uuid", versions="3+", tag=0, count=STORED_ELEMENTS, default=()
    )
    cause: str = wire("string", tag=CAUSE_TAG, bound=STORED_TEXT, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 1
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64")
    cause: str = wire("string", tag=CAUSE_TAG, bound=STORED_TEXT, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 2
    name: str = wire("string", bound=STORED_TEXT)
    topic_id: Uuid = wire("uuid")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 3
    VERSION: ClassVar[int] = 1
    partition_id: int = wire("int32", default=-1)
    topic_id: Uuid = wire("uuid", default=ZERO_UUID)
    replicas: tuple[int, ...] = wire("int32", count=STORED_REPLICAS, default=())
    isr: tuple[int, ...] = wire("int32", count=STORED_REPLICAS, default=())
    removing_replicas: tuple[int, ...] = wire("int32", count=STORED_REPLICAS, default=())
    adding_replicas: tuple[int, ...] = wire("int32", count=STORED_REPLICAS, default=())
    leader: int = wire("int32", default=NO_LEADER)
    leader_recovery_state: int = wire("int8", tag=0, default=RECOVERED)
    leader_epoch: int = wire("int32", default=-1)
    partition_epoch: int = wire("int32", default=-1)
    directories: tuple[Uuid, ...] = wire("uuid", versions="1+", count=STORED_REPLICAS, default=())
    eligible_leader_replicas: tuple[int, ...] | None = wire(
        "int32", versions="2+", nullable="2+", tag=1, count=STORED_REPLICAS, default=None
    )
    last_known_elr: tuple[int, ...] | None = wire(
        "int32", versions="2+", nullable="2+", tag=2, count=STORED_REPLICAS, default=None
    )
    cause: str = wire("string", tag=CAUSE_TAG, bound=STORED_TEXT, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 4
    resource_type: int = wire("int8")
    resource_name: str = wire("string", bound=STORED_TEXT)
    name: str = wire("string", bound=STORED_TEXT)
    value: str | None = wire("string", nullable="0+", bound=STORED_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 5
    VERSION: ClassVar[int] = 1
    partition_id: int = wire("int32", default=-1)
    topic_id: Uuid = wire("uuid", default=ZERO_UUID)
    isr: tuple[int, ...] | None = wire(
        "int32", nullable="0+", tag=0, count=STORED_REPLICAS, default=None
    )
    leader: int = wire("int32", tag=1, default=NO_LEADER_CHANGE)
    replicas: tuple[int, ...] | None = wire(
        "int32", nullable="0+", tag=2, count=STORED_REPLICAS, default=None
    )
    removing_replicas: tuple[int, ...] | None = wire(
        "int32", nullable="0+", tag=3, count=STORED_REPLICAS, default=None
    )
    adding_replicas: tuple[int, ...] | None = wire(
        "int32", nullable="0+", tag=4, count=STORED_REPLICAS, default=None
    )
    leader_recovery_state: int = wire("int8", tag=5, default=NO_RECOVERY_CHANGE)
    directories: tuple[Uuid, ...] | None = wire(
        "uuid", versions="1+", nullable="1+", tag=8, count=STORED_REPLICAS, default=None
    )
    eligible_leader_replicas: tuple[int, ...] | None = wire(
        "int32", versions="2+", nullable="2+", tag=6, count=STORED_REPLICAS, default=None
    )
    last_known_elr: tuple[int, ...] | None = wire(
        "int32", versions="2+", nullable="2+", tag=7, count=STORED_REPLICAS, default=None
    )
    cause: str = wire("string", tag=CAUSE_TAG, bound=STORED_TEXT, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceBrokerRecord(MetadataRecord):
    """Legacy (before 3.3): read, never written."""

    API_KEY: ClassVar[int] = 7
    id: int = wire("int32")
    epoch: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceBrokerRecord(MetadataRecord):
    """Legacy (before 3.3): read, never written."""

    API_KEY: ClassVar[int] = 8
    id: int = wire("int32")
    epoch: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 9
    topic_id: Uuid = wire("uuid")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 12
    name: str = wire("string", bound=STORED_TEXT)
    feature_level: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 15
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64", default=-1)
    next_producer_id: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord(MetadataRecord):
    """`fenced`: -1 unfence, 0 no change, 1 fence. `in_controlled_shutdown`: 0 no change, 1
    enter."""

    API_KEY: ClassVar[int] = 17
    VERSION: ClassVar[int] = 2
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64")
    fenced: int = wire("int8", tag=0, default=0)
    in_controlled_shutdown: int = wire("int8", versions="1+", tag=1, default=0)
    log_dirs: tuple[Uuid, ...] = wire(
        "uuid", versions="2+", tag=2, count=STORED_ELEMENTS, default=()
    )
    cause: str = wire("string", tag=CAUSE_TAG, bound=STORED_TEXT, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOpRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 20

    cause: str = wire("string", tag=CAUSE_TAG, bound=STORED_TEXT, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkMigrationStateRecord(MetadataRecord):
    """Kafka 3.4 to 3.9 wrote it; read only to be shown."""

    API_KEY: ClassVar[int] = 21
    zk_migration_state: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransactionRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 23
    name: str | None = wire("string", nullable="0+", tag=0, bound=STORED_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransactionRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 25
    reason: str | None = wire("string", nullable="0+", tag=0, bound=STORED_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterControllerRecord(MetadataRecord):
    API_KEY: ClassVar[int] = 27
    controller_id: int = wire("int32")
    incarnation_id: Uuid = wire("uuid")
    zk_migration_ready: bool = wire("bool", default=False)
    end_points: tuple[Endpoint, ...] = wire(count=STORED_ELEMENTS)
    features: tuple[FeatureRange, ...] = wire(count=STORED_ELEMENTS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearElrRecord(MetadataRecord):
    """An empty topic name clears every topic's ELR."""

    API_KEY: ClassVar[int] = 28
    topic_name: str = wire("string", bound=STORED_TEXT, default="")


RECORD_TYPES: dict[int, type[MetadataRecord]] = {
    record.API_KEY: record
    for record in (
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        TopicRecord,
        PartitionRecord,
        ConfigRecord,
        PartitionChangeRecord,
        FenceBrokerRecord,
        UnfenceBrokerRecord,
        RemoveTopicRecord,
        FeatureLevelRecord,
        ProducerIdsRecord,
        BrokerRegistrationChangeRecord,
        NoOpRecord,
        ZkMigrationStateRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
        RegisterControllerRecord,
        ClearElrRecord,
    )
}

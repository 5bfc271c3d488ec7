"""Kafka's metadata records as declared schemas (KIP-631). `framing.py` encodes and decodes them.

Each class declares its api key, and the version that Quorate writes at metadata.version 27
(4.1-IV1). Partition records with eligible leader replicas are the exception
(`framing.written_version`). Change records carry only the changed fields.

The field `cause` is not in Kafka. It uses tag 9000, which Kafka skips (KIP-482), and says why the
record was written; see `causes.py`. Neither the image nor a snapshot contains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.node_message_bounds import Host, Name, Number, Port, Version
from quorate.quorum.protocol.field_bounds import (
    REGISTERED_TEXT,
    STORED_ELEMENTS,
    STORED_REPLICAS,
    STORED_TEXT,
)
from quorate.quorum.protocol.wire import wire

NO_LEADER = -1
"""The leader of a partition without a leader."""
NO_LEADER_CHANGE = -2
"""The leader field of a change record that leaves the leader and its epoch as they are."""
RECOVERED = 0
"""The recovery state of a partition whose leader was elected cleanly or has finished its
recovery."""
RECOVERING = 1
"""The recovery state of a partition whose leader was elected uncleanly and has not finished its
recovery."""
NO_RECOVERY_CHANGE = -1
"""The recovery state field of a change record that leaves the state as it is."""
CAUSE_TAG = 9000
"""The tag of the field `cause`."""


class MetadataRecord:
    """Base class of all records. `API_KEY` identifies the class. `VERSION` is the version that
    Quorate writes."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    VERSION: ClassVar[int] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One listener of a broker or controller. `security_protocol` is Kafka's code; 0 is
    PLAINTEXT."""

    name: Name = wire("string", bound=REGISTERED_TEXT)
    host: Host = wire("string", bound=REGISTERED_TEXT)
    port: Port = wire("uint16")
    security_protocol: Number = wire("int16", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRange:
    """The levels of one feature that a node supports, both bounds inclusive."""

    name: Name = wire("string", bound=REGISTERED_TEXT)
    min_supported_version: Version = wire("int16")
    max_supported_version: Version = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord(MetadataRecord):
    """Registers an incarnation of a broker. `broker_epoch` is the offset of the incarnation's first
    such record."""

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
    """Removes the registration with this broker epoch. Another epoch contradicts the image."""

    API_KEY: ClassVar[int] = 1
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64")
    cause: str = wire("string", tag=CAUSE_TAG, bound=STORED_TEXT, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord(MetadataRecord):
    """Creates a topic without partitions."""

    API_KEY: ClassVar[int] = 2
    name: str = wire("string", bound=STORED_TEXT)
    topic_id: Uuid = wire("uuid")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord(MetadataRecord):
    """The full state of a partition, written when it is created and in snapshots."""

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
    """Sets one config of a resource. A value of None deletes it.

    `resource_type` is Kafka's ConfigResource code: 2 for a topic, 4 for a broker. The resource name
    "" is the default of all resources of the type."""

    API_KEY: ClassVar[int] = 4
    resource_type: int = wire("int8")
    resource_name: str = wire("string", bound=STORED_TEXT)
    name: str = wire("string", bound=STORED_TEXT)
    value: str | None = wire("string", nullable="0+", bound=STORED_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord(MetadataRecord):
    """Changes the named fields of a partition.

    None, NO_LEADER_CHANGE and NO_RECOVERY_CHANGE mean unchanged. Each such record raises the
    partition epoch by one. A record that names a leader, even the same one, also raises the leader
    epoch by one.
    """

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
    """Fences a broker. Kafka wrote it before version 3.3. Quorate reads it and never writes it."""

    API_KEY: ClassVar[int] = 7
    id: int = wire("int32")
    epoch: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceBrokerRecord(MetadataRecord):
    """Unfences a broker. Kafka wrote it before version 3.3. Quorate reads it and never writes
    it."""

    API_KEY: ClassVar[int] = 8
    id: int = wire("int32")
    epoch: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord(MetadataRecord):
    """Deletes a topic with its partitions and its configs."""

    API_KEY: ClassVar[int] = 9
    topic_id: Uuid = wire("uuid")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord(MetadataRecord):
    """Finalizes the level of a feature. Level 0 removes the feature (KIP-584)."""

    API_KEY: ClassVar[int] = 12
    name: str = wire("string", bound=STORED_TEXT)
    feature_level: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntity:
    """One part of the entity that a quota applies to. A name of None is the default entity of the
    type."""

    entity_type: str = wire("string", bound=STORED_TEXT)
    entity_name: str | None = wire("string", nullable="0+", bound=STORED_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord(MetadataRecord):
    """Sets the quota `key` of an entity to `value`, or removes it (KIP-546). `value` is ignored if
    `remove`."""

    API_KEY: ClassVar[int] = 14
    entity: tuple[QuotaEntity, ...] = wire(count=STORED_ELEMENTS)
    key: str = wire("string", bound=STORED_TEXT)
    value: float = wire("float64", default=0.0)
    remove: bool = wire("bool", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord(MetadataRecord):
    """Reserves producer ids for a broker. `next_producer_id` is the first id that is not
    reserved."""

    API_KEY: ClassVar[int] = 15
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64", default=-1)
    next_producer_id: int = wire("int64")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord(MetadataRecord):
    """Changes the state of a registration.

    `fenced`: -1 unfences, 0 changes nothing, 1 fences. `in_controlled_shutdown`: 0 changes nothing,
    1 starts the controlled shutdown. Empty `log_dirs` change nothing.
    """

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
    """Changes nothing. The active controller writes it periodically, so that the committed offset
    advances in an idle cluster, too (KIP-835)."""

    API_KEY: ClassVar[int] = 20

    cause: str = wire("string", tag=CAUSE_TAG, bound=STORED_TEXT, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkMigrationStateRecord(MetadataRecord):
    """The state of a migration from ZooKeeper. Kafka 3.4 to 3.9 wrote it. Replay ignores it."""

    API_KEY: ClassVar[int] = 21
    zk_migration_state: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransactionRecord(MetadataRecord):
    """Begins a metadata transaction (KIP-868)."""

    API_KEY: ClassVar[int] = 23
    name: str | None = wire("string", nullable="0+", tag=0, bound=STORED_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRecord(MetadataRecord):
    """Ends a metadata transaction. Its records take effect now (KIP-868)."""

    API_KEY: ClassVar[int] = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransactionRecord(MetadataRecord):
    """Ends a metadata transaction and discards its records (KIP-868)."""

    API_KEY: ClassVar[int] = 25
    reason: str | None = wire("string", nullable="0+", tag=0, bound=STORED_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterControllerRecord(MetadataRecord):
    """Registers an incarnation of a controller with its endpoints and features (KIP-919)."""

    API_KEY: ClassVar[int] = 27
    controller_id: int = wire("int32")
    incarnation_id: Uuid = wire("uuid")
    zk_migration_ready: bool = wire("bool", default=False)
    end_points: tuple[Endpoint, ...] = wire(count=STORED_ELEMENTS)
    features: tuple[FeatureRange, ...] = wire(count=STORED_ELEMENTS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearElrRecord(MetadataRecord):
    """Clears the eligible leader replicas of one topic, or of all topics if the name is empty
    (KIP-966).

    A partition that has any gets a new partition epoch, as from a PartitionChangeRecord."""

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
        ClientQuotaRecord,
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
"""The record classes of this module by api key. `framing.py` has all that a node can read."""

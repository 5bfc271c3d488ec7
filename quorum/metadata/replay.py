"""Replay: (image, records) -> (next image, delta). Cluster state changes in no other way.

The active controller, standbys, brokers, restarts, snapshot loads and reads of old offsets replay
the same records. The table REPLAY at the end holds the effect of each record class. A record that
contradicts the image raises `ReplayError`, and the node stops. Replay does not accept the markers
of metadata transactions; `Loader` resolves them first (KIP-868).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.acl_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from quorate.quorum.metadata.acls import Acl
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.errors import ReplayError
from quorate.quorum.metadata.image import (
    Broker,
    ControllerRegistration,
    MetadataImage,
    Partition,
    ScramCredential,
)
from quorate.quorum.metadata.image_builder import ImageBuilder, TopicBuilder
from quorate.quorum.metadata.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    Endpoint,
    FeatureLevelRecord,
    FeatureRange,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    ZkMigrationStateRecord,
)
from quorate.quorum.metadata.registration_bounds import (
    usable_endpoints,
    usable_features,
    usable_rack,
)
from quorate.quorum.metadata.scram_records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

N = TypeVar("N", Endpoint, FeatureRange)


def replay(
    image: MetadataImage,
    records: Sequence[MetadataRecord],
    last: EpochOffset,
    timestamp_ms: int,
) -> tuple[MetadataImage, ImageDelta]:
    """Return the image after `records`, and the delta.

    `last` is the epoch and offset of the last record, or of the control record that follows it.
    `timestamp_ms` is the wall time of its batch. Raise ReplayError if a record contradicts the
    image or `last` is older than the image. `image` itself never changes.
    """
    if last < image.last:
        raise ReplayError(f"the image is at {image.last} and cannot go back to {last}")
    builder = ImageBuilder(image)
    apply(builder, records, last)
    return builder.finish(last, timestamp_ms)


def apply(builder: ImageBuilder, records: Sequence[MetadataRecord], last: EpochOffset) -> None:
    """Add the effects of `records` to the builder. `last` is for the error's text. Raise
    ReplayError if a record contradicts the builder's image."""
    for index, record in enumerate(records):
        rule = REPLAY.get(type(record))
        try:
            if rule is None:
                raise ReplayError("this record cannot be replayed by itself")
            rule(builder, record)
        except ReplayError as error:
            raise ReplayError(
                f"{error}: {record}, record {index + 1} of {len(records)} up to offset "
                f"{last.offset}. The record contradicts the image, so this node must stop. Move "
                "its metadata directory away and let it catch up from another node"
            ) from None


def partition_of(record: PartitionRecord) -> Partition:
    """Return the partition that the record describes."""
    return Partition(
        replicas=record.replicas,
        isr=record.isr,
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        removing=record.removing_replicas,
        adding=record.adding_replicas,
        leader_recovery_state=record.leader_recovery_state,
        directories=record.directories,
        elr=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
    )


def merge(old: Partition, change: PartitionChangeRecord) -> Partition:
    """Return the partition after the change.

    Every change raises the partition epoch by one. A change that names a leader, even the same one,
    raises the leader epoch by one.
    """
    named = change.leader != NO_LEADER_CHANGE
    recovery, elr, known = (
        change.leader_recovery_state,
        change.eligible_leader_replicas,
        change.last_known_elr,
    )
    return Partition(
        replicas=old.replicas if change.replicas is None else change.replicas,
        isr=old.isr if change.isr is None else change.isr,
        leader=change.leader if named else old.leader,
        leader_epoch=old.leader_epoch + 1 if named else old.leader_epoch,
        partition_epoch=old.partition_epoch + 1,
        removing=old.removing if change.removing_replicas is None else change.removing_replicas,
        adding=old.adding if change.adding_replicas is None else change.adding_replicas,
        leader_recovery_state=(
            old.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery
        ),
        directories=old.directories if change.directories is None else change.directories,
        elr=old.elr if elr is None else elr,
        last_known_elr=old.last_known_elr if known is None else known,
    )


# ------------------------------------------------------------------------------------------- topics


def _topic(builder: ImageBuilder, record: TopicRecord) -> None:
    builder.create_topic(record.topic_id, record.name)


def _remove_topic(builder: ImageBuilder, record: RemoveTopicRecord) -> None:
    builder.delete_topic(record.topic_id)


def _partition(builder: ImageBuilder, record: PartitionRecord) -> None:
    partitions = builder.topic(record.topic_id).partitions
    old = partitions.get(record.partition_id)
    if old is not None and (
        record.leader_epoch < old.leader_epoch or record.partition_epoch < old.partition_epoch
    ):
        raise ReplayError(f"the record's epochs are lower than those of {old}")
    partitions.changed[record.partition_id] = partition_of(record)


def _partition_change(builder: ImageBuilder, record: PartitionChangeRecord) -> None:
    partitions = builder.topic(record.topic_id).partitions
    old = partitions.get(record.partition_id)
    if old is None:
        raise ReplayError("there is no such partition")
    partitions.changed[record.partition_id] = merge(old, record)


def _clear_elr(builder: ImageBuilder, record: ClearElrRecord) -> None:
    if record.topic_name:
        topic_id = builder.names.get(record.topic_name)
        if topic_id is None:
            raise ReplayError("there is no such topic")
        _clear_elr_of(builder.topic(topic_id))
        return
    names = {**dict.fromkeys(builder.image.topic_ids), **builder.names.changed}
    for name in sorted(names):
        topic_id = builder.names.get(name)
        if topic_id is not None:
            _clear_elr_of(builder.topic(topic_id))


def _clear_elr_of(topic: TopicBuilder) -> None:
    partitions = topic.partitions
    for partition_id in sorted({**dict.fromkeys(partitions.base), **partitions.changed}):
        old = partitions.get(partition_id)
        if old is not None and (old.elr or old.last_known_elr):
            change = PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=())
            partitions.changed[partition_id] = merge(old, change)


# ------------------------------------------------------------------------------------------ brokers

FENCING = {-1: False, 0: None, 1: True}
CONTROLLED_SHUTDOWN = {0: None, 1: True}
"""The meanings of two fields of BrokerRegistrationChangeRecord. None means no change. Any other
number contradicts the image."""


def _register_broker(builder: ImageBuilder, record: RegisterBrokerRecord) -> None:
    old = builder.brokers.get(record.broker_id)
    if old is not None and record.broker_epoch < old.epoch:
        raise ReplayError(f"the broker is registered with the higher epoch {old.epoch}")
    builder.brokers.changed[record.broker_id] = Broker(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=_by_name(usable_endpoints(record.end_points)),
        features=_by_name(usable_features(record.features)),
        rack=usable_rack(record.rack),
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=record.log_dirs,
    )


def _by_name(named: tuple[N, ...]) -> tuple[N, ...]:
    """Return the endpoints or features sorted by name. Kafka writes them in the order of its hash
    maps."""
    return tuple(sorted(named, key=lambda each: each.name))


def _registered(builder: ImageBuilder, broker_id: int, broker_epoch: int) -> Broker:
    broker = builder.brokers.get(broker_id)
    if broker is None:
        raise ReplayError("the broker is not registered")
    if broker.epoch != broker_epoch:
        raise ReplayError(f"the broker is registered with another epoch, {broker.epoch}")
    return broker


def _unregister_broker(builder: ImageBuilder, record: UnregisterBrokerRecord) -> None:
    _registered(builder, record.broker_id, record.broker_epoch)
    builder.brokers.changed[record.broker_id] = None


def _change_registration(builder: ImageBuilder, record: BrokerRegistrationChangeRecord) -> None:
    broker = _registered(builder, record.broker_id, record.broker_epoch)
    try:
        fenced = FENCING[record.fenced]
        shutdown = CONTROLLED_SHUTDOWN[record.in_controlled_shutdown]
    except KeyError as error:
        raise ReplayError(f"{error} is no change of a broker's state") from None
    builder.brokers.changed[broker.id] = replace(
        broker,
        fenced=broker.fenced if fenced is None else fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown if shutdown is None else shutdown,
        log_dirs=record.log_dirs or broker.log_dirs,
    )


def _fence_broker(builder: ImageBuilder, record: FenceBrokerRecord) -> None:
    broker = _registered(builder, record.id, record.epoch)
    builder.brokers.changed[record.id] = replace(broker, fenced=True)


def _unfence_broker(builder: ImageBuilder, record: UnfenceBrokerRecord) -> None:
    broker = _registered(builder, record.id, record.epoch)
    builder.brokers.changed[record.id] = replace(broker, fenced=False)


def _register_controller(builder: ImageBuilder, record: RegisterControllerRecord) -> None:
    builder.controllers.changed[record.controller_id] = ControllerRegistration(
        id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=_by_name(usable_endpoints(record.end_points)),
        features=_by_name(usable_features(record.features)),
    )


# ---------------------------------------------------------------------------------- everything else


def _config(builder: ImageBuilder, record: ConfigRecord) -> None:
    overlay = builder.config((record.resource_type, record.resource_name))
    overlay.changed[record.name] = record.value


def _client_quota(builder: ImageBuilder, record: ClientQuotaRecord) -> None:
    names = {each.entity_type: each.entity_name for each in record.entity}
    overlay = builder.client_quota(tuple((kind, names[kind]) for kind in sorted(names)))
    overlay.changed[record.key] = None if record.remove else record.value


def _scram_credential(builder: ImageBuilder, record: UserScramCredentialRecord) -> None:
    builder.scram_credentials.changed[record.name, record.mechanism] = ScramCredential(
        salt=bytes(record.salt),
        stored_key=bytes(record.stored_key),
        server_key=bytes(record.server_key),
        iterations=record.iterations,
    )


def _remove_scram_credential(
    builder: ImageBuilder, record: RemoveUserScramCredentialRecord
) -> None:
    key = record.name, record.mechanism
    if builder.scram_credentials.get(key) is None:
        raise ReplayError("there is no such credential")
    builder.scram_credentials.changed[key] = None


def acl_of(record: AccessControlEntryRecord) -> Acl:
    """Return the ACL that the record describes."""
    return Acl(
        record.resource_type,
        record.pattern_type,
        record.resource_name,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def _acl(builder: ImageBuilder, record: AccessControlEntryRecord) -> None:
    builder.add_acl(record.id, acl_of(record))


def _remove_acl(builder: ImageBuilder, record: RemoveAccessControlEntryRecord) -> None:
    builder.remove_acl(record.id)


def _feature_level(builder: ImageBuilder, record: FeatureLevelRecord) -> None:
    """Set the level. Level 0 removes the feature (KIP-584)."""
    builder.features.changed[record.name] = record.feature_level or None


def _producer_ids(builder: ImageBuilder, record: ProducerIdsRecord) -> None:
    if record.next_producer_id < builder.next_producer_id:
        raise ReplayError(f"producer ids up to {builder.next_producer_id} are already assigned")
    builder.next_producer_id = record.next_producer_id


def _nothing(builder: ImageBuilder, record: MetadataRecord) -> None:
    """Change nothing. The record only occupies an offset."""


REPLAY: dict[type[MetadataRecord], Callable[[ImageBuilder, Any], None]] = {
    RegisterBrokerRecord: _register_broker,
    UnregisterBrokerRecord: _unregister_broker,
    TopicRecord: _topic,
    PartitionRecord: _partition,
    ConfigRecord: _config,
    PartitionChangeRecord: _partition_change,
    FenceBrokerRecord: _fence_broker,
    UnfenceBrokerRecord: _unfence_broker,
    RemoveTopicRecord: _remove_topic,
    FeatureLevelRecord: _feature_level,
    ClientQuotaRecord: _client_quota,
    UserScramCredentialRecord: _scram_credential,
    RemoveUserScramCredentialRecord: _remove_scram_credential,
    AccessControlEntryRecord: _acl,
    RemoveAccessControlEntryRecord: _remove_acl,
    ProducerIdsRecord: _producer_ids,
    BrokerRegistrationChangeRecord: _change_registration,
    NoOpRecord: _nothing,
    ZkMigrationStateRecord: _nothing,
    RegisterControllerRecord: _register_controller,
    ClearElrRecord: _clear_elr,
}
"""The effect of each record class. A record of another class raises ReplayError."""

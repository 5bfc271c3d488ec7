"""The records of a snapshot: replayed on an empty image, they restore the image.

The list is deterministic: the same image gives the same records on every node, because every
collection is sorted. It contains no change records and no causes. `snapshot_file.py` turns the
records into bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.metadata.acl_records import AccessControlEntryRecord
from quorate.quorum.metadata.acls import Acl
from quorate.quorum.metadata.image import (
    METADATA_VERSION,
    MetadataImage,
    Partition,
    Topic,
    quota_order,
)
from quorate.quorum.metadata.records import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntity,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)
from quorate.quorum.metadata.replay import replay
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord


def snapshot_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield the records. metadata.version is first, because it determines how the following records
    are read."""
    yield from _features(image)
    yield from _brokers(image)
    yield from _controllers(image)
    yield from _topics(image)
    yield from _configs(image)
    yield from _client_quotas(image)
    yield from _acls(image)
    yield from _producer_ids(image)
    yield from _scram_credentials(image)


def image_of_snapshot(
    records: Iterable[MetadataRecord], last: EpochOffset, timestamp_ms: int
) -> MetadataImage:
    """Return the image that the records restore.

    `last` is the last offset that the snapshot contains. The name of a snapshot file has the offset
    after it. Raise ReplayError if the records contradict each other.
    """
    image, _ = replay(MetadataImage(), list(records), last, timestamp_ms)
    return image


def _features(image: MetadataImage) -> Iterator[MetadataRecord]:
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])


def _brokers(image: MetadataImage) -> Iterator[MetadataRecord]:
    for broker_id in image.broker_ids():
        broker = image.brokers[broker_id]
        yield RegisterBrokerRecord(
            broker_id=broker.id,
            incarnation_id=broker.incarnation_id,
            broker_epoch=broker.epoch,
            end_points=broker.endpoints,
            features=broker.features,
            rack=broker.rack,
            fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=broker.log_dirs,
        )


def _controllers(image: MetadataImage) -> Iterator[MetadataRecord]:
    for controller_id in sorted(image.controllers):
        controller = image.controllers[controller_id]
        yield RegisterControllerRecord(
            controller_id=controller.id,
            incarnation_id=controller.incarnation_id,
            end_points=controller.endpoints,
            features=controller.features,
        )


def _topics(image: MetadataImage) -> Iterator[MetadataRecord]:
    for name in image.topic_names():
        topic = image.topics[image.topic_ids[name]]
        yield TopicRecord(name=name, topic_id=topic.id)
        for partition_id in topic.partition_ids():
            yield partition_record(topic, partition_id, topic.partitions[partition_id])


def partition_record(topic: Topic, partition_id: int, partition: Partition) -> PartitionRecord:
    """Return the full state of a partition as one record."""
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic.id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing,
        adding_replicas=partition.adding,
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
        eligible_leader_replicas=partition.elr or None,
        last_known_elr=partition.last_known_elr or None,
    )


def _configs(image: MetadataImage) -> Iterator[MetadataRecord]:
    for resource_type, name in sorted(image.configs):
        for key, value in sorted(image.config(resource_type, name).items()):
            yield ConfigRecord(
                resource_type=resource_type, resource_name=name, name=key, value=value
            )


def _client_quotas(image: MetadataImage) -> Iterator[MetadataRecord]:
    for entity in sorted(image.client_quotas, key=quota_order):
        parts = tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity)
        for key, value in sorted(image.client_quotas[entity].items()):
            yield ClientQuotaRecord(entity=parts, key=key, value=value)


def _acls(image: MetadataImage) -> Iterator[MetadataRecord]:
    for acl_id in sorted(image.acls.by_id):
        yield acl_record(acl_id, image.acls.by_id[acl_id])


def acl_record(acl_id: Uuid, acl: Acl) -> AccessControlEntryRecord:
    """Return the record that adds an ACL."""
    return AccessControlEntryRecord(id=acl_id, **acl._asdict())


def _producer_ids(image: MetadataImage) -> Iterator[MetadataRecord]:
    if image.next_producer_id:
        yield ProducerIdsRecord(
            broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id
        )


def _scram_credentials(image: MetadataImage) -> Iterator[MetadataRecord]:
    for name, mechanism in sorted(image.scram_credentials):
        credential = image.scram_credentials[name, mechanism]
        yield UserScramCredentialRecord(
            name=name,
            mechanism=mechanism,
            salt=credential.salt,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
            iterations=credential.iterations,
        )

"""Replay: the effect of each record on the image, its delta, and the records that are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.metadata.acl_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from quorate.quorum.metadata.delta import Change, ImageDelta
from quorate.quorum.metadata.errors import ReplayError
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from quorate.quorum.metadata.replay import merge, replay
from quorate.quorum.metadata.snapshot import image_of_snapshot, snapshot_records

A = Uuid(b"A" * 16)
B = Uuid(b"B" * 16)
ONE = PartitionRecord(
    partition_id=0,
    topic_id=A,
    replicas=(1, 2, 3),
    isr=(1, 2, 3),
    leader=1,
    leader_epoch=0,
    partition_epoch=0,
)


def broker(broker_id: int, epoch: int = 5) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id, incarnation_id=B, broker_epoch=epoch, end_points=()
    )


def apply(image: MetadataImage, *records: MetadataRecord) -> tuple[MetadataImage, ImageDelta]:
    last = EpochOffset(1, image.last.offset + len(records))
    return replay(image, records, last, 1000 + last.offset)


def image_of(*records: MetadataRecord) -> MetadataImage:
    return apply(MetadataImage(), *records)[0]


BASE = image_of(
    FeatureLevelRecord(name="metadata.version", feature_level=27),
    broker(1),
    broker(2),
    TopicRecord(name="orders", topic_id=A),
    ONE,
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"),
)


def partition_of(image: MetadataImage) -> Partition:
    partition = image.partition(A, 0)
    assert partition is not None
    return partition


def test_a_change_of_the_isr_alone_keeps_the_leader_epoch() -> None:
    image, delta = apply(BASE, PartitionChangeRecord(partition_id=0, topic_id=A, isr=(1, 2)))
    now = partition_of(image)
    assert (now.isr, now.leader, now.leader_epoch, now.partition_epoch) == ((1, 2), 1, 0, 1)
    assert [(topic.name, pid, change) for topic, pid, change in delta.partitions()] == [
        ("orders", 0, Change(partition_of(BASE), now))
    ]


def test_naming_the_same_leader_raises_the_leader_epoch() -> None:
    """KAFKA-15021: the leader epoch rises without a change of leader."""
    image, _ = apply(BASE, PartitionChangeRecord(partition_id=0, topic_id=A, leader=1))
    assert (partition_of(image).leader, partition_of(image).leader_epoch) == (1, 1)


def test_merge_takes_each_field_or_keeps_it() -> None:
    old = Partition(replicas=(1, 2), isr=(1,), leader=1, adding=(2,), elr=(2,), directories=(A, B))
    assert merge(old, PartitionChangeRecord()) == replace(old, partition_epoch=1)
    change = PartitionChangeRecord(
        isr=(2,),
        leader=2,
        replicas=(2,),
        removing_replicas=(1,),
        adding_replicas=(),
        leader_recovery_state=1,
        directories=(B,),
        eligible_leader_replicas=(),
        last_known_elr=(1,),
    )
    assert merge(old, change) == Partition(
        replicas=(2,),
        isr=(2,),
        leader=2,
        leader_epoch=1,
        partition_epoch=1,
        removing=(1,),
        leader_recovery_state=1,
        directories=(B,),
        last_known_elr=(1,),
    )


def test_many_changes_of_one_partition_are_one_change() -> None:
    changes = [PartitionChangeRecord(partition_id=0, topic_id=A, isr=isr) for isr in ((1,), (1, 2))]
    image, delta = apply(BASE, *changes)
    assert partition_of(image).partition_epoch == 2
    assert len(list(delta.partitions())) == 1


def test_the_image_before_is_untouched() -> None:
    before = repr(sorted(map(repr, snapshot_records(BASE))))
    apply(BASE, RemoveTopicRecord(topic_id=A), broker(3), broker(1, 9))
    assert repr(sorted(map(repr, snapshot_records(BASE)))) == before


def test_a_deleted_topic_takes_its_configs_along() -> None:
    image, delta = apply(BASE, RemoveTopicRecord(topic_id=A))
    assert image.topic("orders") is None
    assert image.topics.get(A) is None
    assert image.config(2, "orders") == {}
    assert (2, "orders") not in image.configs
    assert list(delta.deleted.values()) == [BASE.topics[A]]
    assert delta.configs == ((2, "orders"),)
    assert not delta.topics


def test_deleted_and_created_again_by_the_same_name_in_one_batch() -> None:
    image, delta = apply(
        BASE,
        RemoveTopicRecord(topic_id=A),
        TopicRecord(name="orders", topic_id=B),
        replace(ONE, topic_id=B),
        ConfigRecord(resource_type=2, resource_name="orders", name="segment.ms", value="7"),
    )
    assert image.topic_id("orders") == B
    assert image.config(2, "orders") == {"segment.ms": "7"}
    assert list(delta.deleted) == [A]
    assert [change.created for change in delta.topics.values()] == [True]


def test_created_and_deleted_in_one_batch_leaves_no_trace() -> None:
    image, delta = apply(
        MetadataImage(),
        TopicRecord(name="t", topic_id=B),
        ConfigRecord(resource_type=2, resource_name="t", name="x", value="1"),
        RemoveTopicRecord(topic_id=B),
    )
    assert image._replace(last=EpochOffset(-1, -1), last_timestamp_ms=-1) == MetadataImage()
    assert (delta.topics, delta.deleted) == ({}, {})


def test_a_config_without_value_is_removed() -> None:
    unset = ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None)
    image, delta = apply(BASE, unset, unset)
    assert (2, "orders") not in image.configs
    assert delta.configs == ((2, "orders"),)


def test_brokers_register_change_and_leave() -> None:
    unfence = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1)
    leave = BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=5, in_controlled_shutdown=1, log_dirs=(A,)
    )
    serving, _ = apply(BASE, unfence)
    assert serving.brokers[1].active
    leaving, delta = apply(serving, leave, UnregisterBrokerRecord(broker_id=2, broker_epoch=5))
    assert not leaving.brokers[1].fenced and leaving.brokers[1].in_controlled_shutdown
    assert leaving.brokers[1].log_dirs == (A,)
    assert leaving.broker_ids() == [1]
    assert delta.brokers[2] == Change(BASE.brokers[2], None)
    again, _ = apply(leaving, broker(1, 9))
    assert again.brokers[1].fenced and not again.brokers[1].in_controlled_shutdown


def test_legacy_fencing_of_kafka_before_3_3() -> None:
    image, _ = apply(BASE, UnfenceBrokerRecord(id=1, epoch=5), FenceBrokerRecord(id=2, epoch=5))
    assert [image.brokers[each].fenced for each in (1, 2)] == [False, True]


def test_feature_level_0_is_not_finalized() -> None:
    image, delta = apply(BASE, FeatureLevelRecord(name="metadata.version", feature_level=0))
    assert not image.features
    assert delta.features == {"metadata.version": Change(27, None)}


def test_elr_is_cleared_and_counts_as_a_change() -> None:
    elr = PartitionChangeRecord(partition_id=0, topic_id=A, eligible_leader_replicas=(3,))
    with_elr, _ = apply(BASE, elr)
    for name in ("orders", ""):
        image, _ = apply(with_elr, ClearElrRecord(topic_name=name))
        assert (partition_of(image).elr, partition_of(image).partition_epoch) == ((), 2)
    untouched, _ = apply(BASE, ClearElrRecord())
    assert partition_of(untouched) == partition_of(BASE)


def test_no_op_moves_only_the_offset() -> None:
    image, delta = apply(BASE, NoOpRecord())
    assert not delta
    assert image == BASE._replace(last=image.last, last_timestamp_ms=image.last_timestamp_ms)


CONTRADICTIONS = {
    "no such topic": PartitionChangeRecord(partition_id=0, topic_id=B),
    "no such partition": PartitionChangeRecord(partition_id=1, topic_id=A),
    "already a topic named": TopicRecord(name="orders", topic_id=B),
    "already a topic with this id": TopicRecord(name="other", topic_id=A),
    "not registered": UnregisterBrokerRecord(broker_id=9, broker_epoch=5),
    "another epoch, 5": BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4, fenced=1),
    "higher epoch 5": broker(1, 4),
    "no change of a broker": BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=7),
    "epochs are lower": replace(ONE, partition_epoch=-1),
    "there is no such topic": ClearElrRecord(topic_name="nope"),
    "cannot be replayed by itself": EndTransactionRecord(),
}


@pytest.mark.parametrize(("why", "record"), CONTRADICTIONS.items(), ids=list(CONTRADICTIONS))
def test_a_record_that_contradicts_the_image_is_named(why: str, record: MetadataRecord) -> None:
    with pytest.raises(ReplayError) as raised:
        apply(BASE, NoOpRecord(), record)
    text = str(raised.value)
    assert why in text
    assert repr(record) in text
    assert f"record 2 of 2 up to offset {BASE.last.offset + 2}" in text


def test_producer_ids_never_step_back() -> None:
    image, delta = apply(BASE, ProducerIdsRecord(broker_id=1, next_producer_id=2000))
    assert (image.next_producer_id, delta.next_producer_id) == (2000, 2000)
    with pytest.raises(ReplayError, match="already assigned"):
        apply(image, ProducerIdsRecord(broker_id=1, next_producer_id=1000))


def test_the_image_never_goes_back() -> None:
    with pytest.raises(ReplayError, match="cannot go back"):
        replay(BASE, [NoOpRecord()], EpochOffset(0, 100), 0)


def test_a_snapshot_leaves_history_behind() -> None:
    image, _ = apply(
        BASE,
        PartitionChangeRecord(partition_id=0, topic_id=A, isr=(1,), cause="isr-shrink-lag"),
        ProducerIdsRecord(broker_id=1, next_producer_id=2000),
    )
    records = list(snapshot_records(image))
    assert image_of_snapshot(records, image.last, image.last_timestamp_ms) == image
    assert "isr-shrink-lag" not in repr(records)
    assert isinstance(records[0], FeatureLevelRecord)


ACL = AccessControlEntryRecord(
    id=A,
    resource_type=2,
    resource_name="orders",
    pattern_type=3,
    principal="User:alice",
    host="*",
    operation=3,
    permission_type=3,
)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (ACL, "already an ACL with this id"),
        (replace(ACL, id=B), "the same ACL exists under another id"),
        (RemoveAccessControlEntryRecord(id=B), "no ACL with this id"),
    ],
)
def test_an_acl_has_one_id(record: MetadataRecord, reason: str) -> None:
    """Kafka's brokers stop at such a log, too: the removal of one id would leave the other."""
    with pytest.raises(ReplayError, match=reason):
        apply(image_of(ACL), record)

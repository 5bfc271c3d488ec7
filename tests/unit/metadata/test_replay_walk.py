"""Random histories: replay gives the same image for every division into runs, and deltas are
complete."""

from __future__ import annotations

from random import Random

import pytest

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.metadata.acl_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from quorate.quorum.metadata.delta import Change, ImageDelta
from quorate.quorum.metadata.difference import difference
from quorate.quorum.metadata.framing import decode_record, encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntity,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from quorate.quorum.metadata.replay import acl_of, replay
from quorate.quorum.metadata.scram_records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorate.quorum.metadata.snapshot import image_of_snapshot, snapshot_records

NAMES = ("a", "b", "c")


class Walk:
    """A random sequence of records, each valid for the current image."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rules = (
            self.topic,
            self.removal,
            self.partition,
            self.partition,
            self.change,
            self.change,
            self.change,
            self.config,
            self.config,
            self.broker,
            self.broker_change,
            self.unregistration,
            self.feature,
            self.producer_ids,
            lambda image: ClearElrRecord(),
            self.quota,
            self.credential,
            self.credential_removal,
            self.acl,
            self.acl_removal,
        )

    def step(self, image: MetadataImage) -> MetadataRecord:
        while True:
            record = self.random.choice(self.rules)(image)
            if record is not None:
                return record

    def replicas(self) -> tuple[int, ...]:
        return tuple(self.random.sample(range(5), self.random.randrange(4)))

    def topic(self, image: MetadataImage) -> MetadataRecord | None:
        free = [name for name in NAMES if name not in image.topic_ids]
        if not free:
            return None
        topic_id = Uuid(self.random.getrandbits(128).to_bytes(16, "big"))
        return TopicRecord(name=self.random.choice(free), topic_id=topic_id)

    def any_topic(self, image: MetadataImage) -> Uuid | None:
        names = image.topic_names()
        return image.topic_ids[self.random.choice(names)] if names else None

    def removal(self, image: MetadataImage) -> MetadataRecord | None:
        topic_id = self.any_topic(image)
        rare = self.random.random() < 0.2
        return RemoveTopicRecord(topic_id=topic_id) if topic_id and rare else None

    def partition(self, image: MetadataImage) -> MetadataRecord | None:
        topic_id = self.any_topic(image)
        if topic_id is None:
            return None
        return PartitionRecord(
            partition_id=len(image.topics[topic_id].partitions),
            topic_id=topic_id,
            replicas=self.replicas(),
            isr=self.replicas(),
            leader=self.random.randrange(-1, 5),
            leader_epoch=self.random.randrange(5),
            partition_epoch=self.random.randrange(5),
            eligible_leader_replicas=self.random.choice((None, (3,))),
        )

    def change(self, image: MetadataImage) -> MetadataRecord | None:
        partitions = [(topic.id, pid) for topic, pid, _ in image.all_partitions()]
        if not partitions:
            return None
        topic_id, partition_id = self.random.choice(partitions)
        return PartitionChangeRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            isr=self.random.choice((None, self.replicas())),
            leader=self.random.randrange(-2, 5),
            replicas=self.random.choice((None, self.replicas())),
            removing_replicas=self.random.choice((None, (), (1,))),
            last_known_elr=self.random.choice((None, (), (1,))),
            cause="isr-expand",
        )

    def config(self, image: MetadataImage) -> MetadataRecord:
        return ConfigRecord(
            resource_type=self.random.choice((2, 4)),
            resource_name=self.random.choice(NAMES),
            name=self.random.choice(("x", "y")),
            value=self.random.choice((None, "1", "2")),
        )

    def quota(self, image: MetadataImage) -> MetadataRecord:
        kinds = self.random.choice((("user",), ("client-id", "user"), ("user", "client-id")))
        names = self.random.choices((None, "a", "b"), k=len(kinds))
        return ClientQuotaRecord(
            entity=tuple(
                QuotaEntity(entity_type=kind, entity_name=name)
                for kind, name in zip(kinds, names, strict=True)
            ),
            key=self.random.choice(("x", "y")),
            value=self.random.choice((1.0, 2.5)),
            remove=self.random.random() < 0.4,
        )

    def credential(self, image: MetadataImage) -> MetadataRecord:
        return UserScramCredentialRecord(
            name=self.random.choice(NAMES),
            mechanism=self.random.choice((1, 2)),
            salt=b"s",
            stored_key=b"a",
            server_key=b"b",
            iterations=self.random.choice((4096, 8192)),
        )

    def credential_removal(self, image: MetadataImage) -> MetadataRecord | None:
        if not image.scram_credentials:
            return None
        name, mechanism = self.random.choice(sorted(image.scram_credentials))
        return RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)

    def acl(self, image: MetadataImage) -> MetadataRecord | None:
        record = AccessControlEntryRecord(
            id=Uuid(self.random.getrandbits(128).to_bytes(16, "big")),
            resource_type=2,
            resource_name=self.random.choice((*NAMES, "aa", "*")),
            pattern_type=self.random.choice((3, 4)),
            principal=self.random.choice(("User:a", "User:b")),
            host="*",
            operation=self.random.choice((3, 4)),
            permission_type=self.random.choice((2, 3)),
        )
        return None if image.acls.contains(acl_of(record)) else record

    def acl_removal(self, image: MetadataImage) -> MetadataRecord | None:
        if not image.acls:
            return None
        return RemoveAccessControlEntryRecord(id=self.random.choice(sorted(image.acls.by_id)))

    def broker(self, image: MetadataImage) -> MetadataRecord:
        return RegisterBrokerRecord(
            broker_id=self.random.randrange(4),
            incarnation_id=Uuid(bytes(16)),
            broker_epoch=image.last.offset + 1,
            end_points=(),
            rack=self.random.choice((None, "r")),
        )

    def broker_change(self, image: MetadataImage) -> MetadataRecord | None:
        if not image.brokers:
            return None
        broker = image.brokers[self.random.choice(image.broker_ids())]
        return BrokerRegistrationChangeRecord(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            fenced=self.random.randrange(-1, 2),
            in_controlled_shutdown=self.random.randrange(2),
        )

    def unregistration(self, image: MetadataImage) -> MetadataRecord | None:
        if not image.brokers or self.random.random() < 0.7:
            return None
        broker = image.brokers[self.random.choice(image.broker_ids())]
        return UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)

    def feature(self, image: MetadataImage) -> MetadataRecord:
        return FeatureLevelRecord(
            name=self.random.choice(("metadata.version", "z")),
            feature_level=self.random.randrange(3),
        )

    def producer_ids(self, image: MetadataImage) -> MetadataRecord:
        return ProducerIdsRecord(broker_id=1, next_producer_id=image.next_producer_id + 1000)


def at(offset: int) -> EpochOffset:
    return EpochOffset(1, offset)


@pytest.mark.parametrize("seed", range(25))
def test_histories_cut_anywhere(seed: int) -> None:
    walk = Walk(seed)
    image, history = MetadataImage(), []
    images = [image]
    for offset in range(80):
        record = walk.step(image)
        history.append(decode_record(encode_record(record)))
        image, delta = replay(image, [record], at(offset), offset)
        check_delta(images[-1], image, delta)
        images.append(image)
    cut = walk.random.randrange(81)
    assert replay(MetadataImage(), history[:cut], at(cut - 1), cut - 1)[0] == images[cut]
    whole, delta = replay(images[cut], history[cut:], at(79), 79)
    assert whole == image
    check_delta(images[cut], image, delta)
    assert image_of_snapshot(snapshot_records(image), image.last, 79) == image
    assert list(snapshot_records(image)) == list(snapshot_records(whole))


def check_delta(old: MetadataImage, new: MetadataImage, delta: ImageDelta) -> None:
    """Check that the delta's changes are right, and that everything else is unchanged."""
    for broker_id in {*old.brokers, *new.brokers, *delta.brokers}:
        change = Change(old.brokers.get(broker_id), new.brokers.get(broker_id))
        assert delta.brokers.get(broker_id, Change(change.old, change.old)) == change
    for topic_id in {*old.topics, *new.topics}:
        before, after = old.topics.get(topic_id), new.topics.get(topic_id)
        if after is None:
            assert delta.deleted[topic_id] == before
        elif topic_id not in delta.topics:
            assert before == after
        else:
            told = delta.topics[topic_id]
            assert (told.topic, told.created) == (after, before is None)
            for partition_id in after.partitions:
                was = before.partitions.get(partition_id) if before else None
                now = after.partitions[partition_id]
                assert told.partitions.get(partition_id, Change(now, now)) == Change(was, now)
    assert not set(delta.topics) & set(delta.deleted)
    for resource in {*old.configs, *new.configs}:
        if resource not in delta.configs:
            assert old.config(*resource) == new.config(*resource)
    for name in {*old.features, *new.features}:
        level = Change(old.features.get(name), new.features.get(name))
        assert delta.features.get(name, Change(level.old, level.old)) == level
    changed = {
        each
        for each in {*old.acls.by_id, *new.acls.by_id}
        if old.acls.by_id.get(each) != new.acls.by_id.get(each)
    }
    assert changed <= set(delta.acls)
    assert difference(old, new).acls == tuple(sorted(changed))
    if delta.next_producer_id is None:
        assert old.next_producer_id == new.next_producer_id
    if not delta:
        assert old._replace(last=new.last, last_timestamp_ms=new.last_timestamp_ms) == new

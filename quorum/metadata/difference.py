"""What changed between two images that no run of records connects: before and after a snapshot.

Costs as much as the images are large; what is the same object in both is skipped. Everything comes
in order of its key, so it is the same on every node.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.delta import Change, ImageDelta, TopicChange
from quorate.quorum.metadata.image import MetadataImage, Partition, Topic
from quorate.quorum.metadata.persistent import PersistentMap

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def difference(old: MetadataImage, new: MetadataImage) -> ImageDelta:
    topics = {}
    for topic_id in _ids_by_name(new):
        topic, before = new.topics[topic_id], old.topics.get(topic_id)
        partitions = _changes(_partitions_of(before), topic.partitions)
        if before is None or partitions:
            topics[topic_id] = TopicChange(
                topic=topic, created=before is None, partitions=partitions
            )
    return ImageDelta(
        brokers=_changes(old.brokers, new.brokers),
        controllers=_changes(old.controllers, new.controllers),
        topics=topics,
        deleted={
            topic_id: old.topics[topic_id]
            for topic_id in _ids_by_name(old)
            if topic_id not in new.topics
        },
        configs=tuple(_changes(old.configs, new.configs)),
        features=_changes(old.features, new.features),
        next_producer_id=(
            new.next_producer_id if new.next_producer_id != old.next_producer_id else None
        ),
    )


def _ids_by_name(image: MetadataImage) -> list[Uuid]:
    return [image.topic_ids[name] for name in image.topic_names()]


def _partitions_of(topic: Topic | None) -> PersistentMap[int, Partition]:
    return PersistentMap() if topic is None else topic.partitions


def _changes(old: PersistentMap[K, V], new: PersistentMap[K, V]) -> dict[K, Change[V]]:
    if old is new:
        return {}
    keys: list[Any] = sorted({*old, *new})  # all our keys have an order
    changes = {key: Change(old.get(key), new.get(key)) for key in keys}
    return {key: each for key, each in changes.items() if each.old != each.new}

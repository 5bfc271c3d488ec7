"""The delta between two images that no run of records connects.

Two such images are those before and after a snapshot load. The work grows with the size of the
images, so it can be done in steps. Parts that both images share are skipped. Topics are sorted by
name and all other entries by key, so the delta is the same on every node. Unlike after a replay,
the old and new values of an entry differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.metadata.delta import Change, ImageDelta, TopicChange
from quorate.quorum.metadata.image import (
    ClientQuotaEntity,
    MetadataImage,
    Partition,
    Topic,
    quota_order,
)
from quorate.quorum.metadata.pace import Pace, in_order
from quorate.quorum.metadata.persistent_map import PersistentMap

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Concerns = Callable[[Partition], bool]
"""Returns True if the partition matters to the node that the delta is for."""
NO_PARTITIONS: PersistentMap[int, Partition] = PersistentMap()


def difference(old: MetadataImage, new: MetadataImage) -> ImageDelta:
    """Return the delta without pauses."""
    return finished(differing(old, new))


def differing(
    old: MetadataImage, new: MetadataImage, concerns: Concerns | None = None
) -> IncrementalWork[ImageDelta]:
    """Compute the delta in steps.

    With `concerns`, the delta contains only the partitions for which it returns True, before or
    after. Acting on the delta then grows with the partitions of one node and not with the cluster.
    A created or changed topic without such a partition is left out. A deleted topic is always in
    the delta, with only such partitions. A partition that is missing in the new image, although its
    topic exists, is also always in the delta.
    """
    pace = Pace()
    topics, deleted = {}, {}
    for name in (yield from in_order(new.topic_ids)):
        topic_id = new.topic_ids[name]
        topic, before = new.topics[topic_id], old.topics.get(topic_id)
        if pace.is_time():
            yield
        if topic is before:
            continue
        was = NO_PARTITIONS if before is None else before.partitions
        partitions = yield from _partitions(was, topic.partitions, concerns, pace)
        if partitions or (before is None and concerns is None):
            topics[topic_id] = TopicChange(
                topic=topic, created=before is None, partitions=partitions
            )
    for name in (yield from in_order(old.topic_ids)):
        topic_id = old.topic_ids[name]
        if pace.is_time():
            yield
        if topic_id not in new.topics:
            deleted[topic_id] = yield from _of_concern(old.topics[topic_id], concerns, pace)
    return ImageDelta(
        brokers=_changes(old.brokers, new.brokers),
        controllers=_changes(old.controllers, new.controllers),
        topics=topics,
        deleted=deleted,
        configs=(yield from _configs(old, new, pace)),
        features=_changes(old.features, new.features),
        client_quotas=_client_quotas(old, new),
        scram_credentials=_changes(old.scram_credentials, new.scram_credentials),
        acls=_acls(old, new),
        next_producer_id=(
            new.next_producer_id if new.next_producer_id != old.next_producer_id else None
        ),
    )


def _partitions(
    old: PersistentMap[int, Partition],
    new: PersistentMap[int, Partition],
    concerns: Concerns | None,
    pace: Pace,
) -> IncrementalWork[dict[int, Change[Partition]]]:
    changes: dict[int, Change[Partition]] = {}
    kept = 0
    for partition_id in (yield from in_order(new)):
        if pace.is_time():
            yield
        was, now = old.get(partition_id), new[partition_id]
        kept += was is not None
        if was is now or was == now:
            continue
        if concerns is None or concerns(now) or (was is not None and concerns(was)):
            changes[partition_id] = Change(was, now)
    if kept < len(old):  # only if another history replaced the old one
        for partition_id in (yield from in_order(old)):
            if partition_id not in new:
                changes[partition_id] = Change(old[partition_id], None)
    return changes


def _of_concern(topic: Topic, concerns: Concerns | None, pace: Pace) -> IncrementalWork[Topic]:
    if concerns is None:
        return topic
    partitions = {}
    for partition_id in topic.partitions:
        if pace.is_time():
            yield
        partition = topic.partitions[partition_id]
        if concerns(partition):
            partitions[partition_id] = partition
    return Topic(id=topic.id, name=topic.name, partitions=PersistentMap(partitions))


def _configs(
    old: MetadataImage, new: MetadataImage, pace: Pace
) -> IncrementalWork[tuple[tuple[int, str], ...]]:
    changed = []
    for resource in (yield from in_order(new.configs)):
        if pace.is_time():
            yield
        if old.configs.get(resource) != new.configs[resource]:
            changed.append(resource)
    for resource in (yield from in_order(old.configs)):
        if pace.is_time():
            yield
        if resource not in new.configs:
            changed.append(resource)
    return tuple(changed)


def _client_quotas(old: MetadataImage, new: MetadataImage) -> tuple[ClientQuotaEntity, ...]:
    was, now = old.client_quotas, new.client_quotas
    if was is now:
        return ()
    changed = [entity for entity, quotas in now.items() if was.get(entity) != quotas]
    changed += [entity for entity in was if entity not in now]
    return tuple(sorted(changed, key=quota_order))


def _acls(old: MetadataImage, new: MetadataImage) -> tuple[Uuid, ...]:
    if old.acls is new.acls:
        return ()
    was, now = old.acls.by_id, new.acls.by_id
    return tuple(sorted(each for each in {*was, *now} if was.get(each) != now.get(each)))


def _changes(old: PersistentMap[K, V], new: PersistentMap[K, V]) -> dict[K, Change[V]]:
    """Return the changes between two small maps."""
    if old is new:
        return {}
    keys: list[Any] = sorted({*old, *new})  # all our keys have an order
    changes = {key: Change(old.get(key), new.get(key)) for key in keys}
    return {key: each for key, each in changes.items() if each.old != each.new}

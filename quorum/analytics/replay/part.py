"""The part of a moment that a user asks for: some topics, partitions and brokers. Pure.

The replay is that of the whole cluster, because a filter must not hide a contradiction in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from quorate.quorum.analytics.log.errors import BadOption, OutOfHistory
from quorate.quorum.analytics.replay.moment import WHOLE, Moment, Part
from quorate.quorum.metadata.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
    MetadataImage,
    Topic,
)
from quorate.quorum.metadata.persistent_map import PersistentMap


def part_of(at: Moment, part: Part) -> Moment:
    """Return the moment with only the topics, partitions and brokers of `part`.

    A partition is in the part if one of the brokers has a replica of it. Without named brokers, the
    brokers are those with a replica of these partitions. The configs are those of these topics and
    brokers, and the defaults of all brokers. The quorum, features and controllers are always there.
    Quotas, credentials, ACLs and producer ids are not in a part.

    Raise OutOfHistory if a named topic, partition or broker does not exist at the moment, and
    BadOption if partitions are named without a topic."""
    if part == WHOLE:
        return at
    if part.partitions and not part.topics:
        raise BadOption("partitions can only be named with their topic")
    image = at.image
    _refuse_unknown(image, part)
    names = part.topics or image.topic_names()
    topics = [each for name in dict.fromkeys(names) for each in _kept(image, name, part)]
    hosts = part.brokers or {
        broker for topic in topics for each in topic.partitions.values() for broker in each.replicas
    }
    brokers = {each: image.brokers[each] for each in hosts if each in image.brokers}
    kept_names = {topic.name for topic in topics}
    configs = {
        resource: image.configs[resource]
        for resource in image.configs
        if _is_about(resource, kept_names, brokers)
    }
    narrowed = MetadataImage(
        last=image.last,
        last_timestamp_ms=image.last_timestamp_ms,
        features=image.features,
        controllers=image.controllers,
        brokers=PersistentMap(brokers),
        topics=PersistentMap({topic.id: topic for topic in topics}),
        topic_ids=PersistentMap({topic.name: topic.id for topic in topics}),
        configs=PersistentMap(configs),
    )
    return replace(at, image=narrowed, part=part)


def _kept(image: MetadataImage, name: str, part: Part) -> Iterator[Topic]:
    """Yield the topic with its partitions in the part, or nothing if it has none."""
    topic = image.topic(name)
    assert topic is not None
    if not part.partitions and not part.brokers:
        yield topic
        return
    wanted = frozenset(part.brokers)
    partitions = {
        each: state
        for each, state in topic.partitions.items()
        if (not part.partitions or each in part.partitions)
        and (not wanted or not wanted.isdisjoint(state.replicas))
    }
    if partitions:
        yield replace(topic, partitions=PersistentMap(partitions))


def _is_about(resource: ConfigResource, topics: Iterable[str], brokers: Iterable[int]) -> bool:
    kind, name = resource
    if kind == BROKER_RESOURCE:
        return name == "" or name in map(str, brokers)
    return kind == TOPIC_RESOURCE and name in topics


def _refuse_unknown(image: MetadataImage, part: Part) -> None:
    for name in part.topics:
        topic = image.topic(name)
        if topic is None:
            raise OutOfHistory(f"there is no topic {name} at this point of the history")
        for each in part.partitions:
            if each not in topic.partitions:
                raise OutOfHistory(f"there is no partition {name}-{each} at this point")
    for broker in part.brokers:
        if broker not in image.brokers and not any(
            broker in state.replicas for _, _, state in image.all_partitions()
        ):
            known = ", ".join(map(str, image.broker_ids())) or "none"
            raise OutOfHistory(
                f"broker {broker} is not registered at this point of the history and has no "
                f"replica; there are {known}"
            )

"""The next image during a replay: the changes of a run of records over the previous image.

Changes are collected in dicts and applied to each persistent map once per run instead of once per
record. A builder belongs to one call of `replay`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, Generic, TypeVar

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.metadata.acls import Acl
from quorate.quorum.metadata.delta import NOTHING, Change, ImageDelta, TopicChange
from quorate.quorum.metadata.errors import ReplayError
from quorate.quorum.metadata.image import (
    TOPIC_RESOURCE,
    Broker,
    ClientQuotaEntity,
    ConfigResource,
    ControllerRegistration,
    MetadataImage,
    Partition,
    ScramCredential,
    ScramKey,
    Topic,
)
from quorate.quorum.metadata.persistent_map import PersistentMap

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Overlay(Generic[K, V]):
    """A persistent map and the changes to it. A changed value of None removes the key."""

    __slots__ = ("base", "changed")

    def __init__(self, base: PersistentMap[K, V]) -> None:
        self.base: Final = base
        self.changed: Final[dict[K, V | None]] = {}

    def get(self, key: K) -> V | None:
        """Return the changed or the original value, or None."""
        if key in self.changed:
            return self.changed[key]
        return self.base.get(key)

    def clear(self) -> None:
        """Remove all keys. They appear in `changes` in sorted order, which is the same on every
        node."""
        for key in sorted(self.base):  # type: ignore[type-var]  # all our keys have an order
            self.changed[key] = None
        for key in self.changed:
            self.changed[key] = None

    def fold(self) -> PersistentMap[K, V]:
        """Return the persistent map with the changes applied."""
        return folded(self.base, self.changed) if self.changed else self.base

    def changes(self) -> Mapping[K, Change[V]]:
        """Return the old and new values of the changed keys. A key that was added and removed again
        is left out."""
        if not self.changed:
            return NOTHING
        found = {}
        for key, new in self.changed.items():
            old = self.base.get(key)
            if old is not None or new is not None:
                found[key] = Change(old, new)
        return found


class TopicBuilder:
    """The changes of one topic. `created` is True if the topic does not exist in the previous
    image."""

    __slots__ = ("created", "id", "name", "partitions")

    def __init__(self, topic: Topic, created: bool) -> None:
        self.id = topic.id
        self.name = topic.name
        self.created = created
        self.partitions: Overlay[int, Partition] = Overlay(topic.partitions)

    def fold(self) -> Topic:
        """Return the topic with its changes applied."""
        return Topic(id=self.id, name=self.name, partitions=self.partitions.fold())


class ImageBuilder:
    """The changes of one run of records. `replay` applies each record to it and calls `finish`
    once.

    `topics` holds every topic that a record of the run named. The value None marks a deleted topic.
    """

    __slots__ = (
        "_brokers",
        "_controllers",
        "_features",
        "_names",
        "_scram_credentials",
        "acls",
        "changed_acls",
        "client_quotas",
        "configs",
        "image",
        "next_producer_id",
        "topics",
    )

    def __init__(self, image: MetadataImage) -> None:
        self.image: Final = image
        # Most runs change none of these five. Their overlays are therefore made at the first use.
        self._features: Overlay[str, int] | None = None
        self._brokers: Overlay[int, Broker] | None = None
        self._controllers: Overlay[int, ControllerRegistration] | None = None
        self._names: Overlay[str, Uuid] | None = None
        self._scram_credentials: Overlay[ScramKey, ScramCredential] | None = None
        self.topics: dict[Uuid, TopicBuilder | None] = {}
        self.configs: dict[ConfigResource, Overlay[str, str]] = {}
        self.client_quotas: dict[ClientQuotaEntity, Overlay[str, float]] = {}
        self.acls = image.acls
        self.changed_acls: dict[Uuid, None] = {}
        self.next_producer_id = image.next_producer_id

    @property
    def features(self) -> Overlay[str, int]:
        """Return the changes of the levels by feature."""
        if self._features is None:
            self._features = Overlay(self.image.features)
        return self._features

    @property
    def brokers(self) -> Overlay[int, Broker]:
        """Return the changes of the registered brokers by id."""
        if self._brokers is None:
            self._brokers = Overlay(self.image.brokers)
        return self._brokers

    @property
    def controllers(self) -> Overlay[int, ControllerRegistration]:
        """Return the changes of the registered controllers by id."""
        if self._controllers is None:
            self._controllers = Overlay(self.image.controllers)
        return self._controllers

    @property
    def scram_credentials(self) -> Overlay[ScramKey, ScramCredential]:
        """Return the changes of the SCRAM credentials by user and mechanism."""
        if self._scram_credentials is None:
            self._scram_credentials = Overlay(self.image.scram_credentials)
        return self._scram_credentials

    @property
    def names(self) -> Overlay[str, Uuid]:
        """Return the changes of the topic ids by name."""
        if self._names is None:
            self._names = Overlay(self.image.topic_ids)
        return self._names

    def topic(self, topic_id: Uuid) -> TopicBuilder:
        """Return the topic's builder. Raise ReplayError if there is no such topic.

        The topic is then in the delta, even if no partition changes."""
        try:
            builder = self.topics[topic_id]
        except KeyError:
            base = self.image.topics.get(topic_id)
            builder = self.topics[topic_id] = None if base is None else TopicBuilder(base, False)
        if builder is None:
            raise ReplayError("there is no such topic")
        return builder

    def create_topic(self, topic_id: Uuid, name: str) -> None:
        """Add a topic. Raise ReplayError if its name or id is in use, or if the same run deleted a
        topic with this id."""
        if self.names.get(name) is not None:
            raise ReplayError(f"there is already a topic named {name!r}")
        if topic_id in self.topics or topic_id in self.image.topics:
            raise ReplayError("there is already a topic with this id")
        self.topics[topic_id] = TopicBuilder(Topic(id=topic_id, name=name), True)
        self.names.changed[name] = topic_id

    def delete_topic(self, topic_id: Uuid) -> None:
        """Delete the topic and its configs; no separate records delete these. Raise ReplayError if
        there is no such topic."""
        name = self.topic(topic_id).name
        self.topics[topic_id] = None
        self.names.changed[name] = None
        resource = (TOPIC_RESOURCE, name)
        if resource in self.configs or resource in self.image.configs:
            self.config(resource).clear()

    def config(self, resource: ConfigResource) -> Overlay[str, str]:
        """Return the config changes of the resource. The resource is then in the delta."""
        overlay = self.configs.get(resource)
        if overlay is None:
            base = self.image.configs.get(resource)
            overlay = self.configs[resource] = Overlay(PersistentMap() if base is None else base)
        return overlay

    def client_quota(self, entity: ClientQuotaEntity) -> Overlay[str, float]:
        """Return the quota changes of the entity. The entity is then in the delta."""
        overlay = self.client_quotas.get(entity)
        if overlay is None:
            base = self.image.client_quotas.get(entity)
            overlay = Overlay(PersistentMap() if base is None else base)
            self.client_quotas[entity] = overlay
        return overlay

    def add_acl(self, acl_id: Uuid, acl: Acl) -> None:
        """Add an ACL. Raise ReplayError if the id or the ACL exists."""
        self.acls = self.acls.with_acl(acl_id, acl)
        self.changed_acls[acl_id] = None

    def remove_acl(self, acl_id: Uuid) -> None:
        """Remove an ACL. Raise ReplayError if there is none with this id."""
        self.acls = self.acls.without(acl_id)
        self.changed_acls[acl_id] = None

    def finish(self, last: EpochOffset, timestamp_ms: int) -> tuple[MetadataImage, ImageDelta]:
        """Return the next image, which ends at `last`, and the delta."""
        image = self.image
        topics: dict[Uuid, Topic | None] = {}
        for topic_id, builder in self.topics.items():
            topics[topic_id] = None if builder is None else builder.fold()
        configs: dict[ConfigResource, PersistentMap[str, str] | None] = {}
        for resource, overlay in self.configs.items():
            configs[resource] = overlay.fold() or None
        client_quotas: dict[ClientQuotaEntity, PersistentMap[str, float] | None] = {}
        for entity, quotas in self.client_quotas.items():
            client_quotas[entity] = quotas.fold() or None
        successor = MetadataImage(
            last,
            timestamp_ms,
            features=image.features if self._features is None else self._features.fold(),
            brokers=image.brokers if self._brokers is None else self._brokers.fold(),
            controllers=(
                image.controllers if self._controllers is None else self._controllers.fold()
            ),
            topics=folded(image.topics, topics) if topics else image.topics,
            topic_ids=image.topic_ids if self._names is None else self._names.fold(),
            configs=folded(image.configs, configs) if configs else image.configs,
            client_quotas=(
                folded(image.client_quotas, client_quotas) if client_quotas else image.client_quotas
            ),
            scram_credentials=(
                image.scram_credentials
                if self._scram_credentials is None
                else self._scram_credentials.fold()
            ),
            acls=self.acls,
            next_producer_id=self.next_producer_id,
        )
        return successor, self._delta(successor)

    def _delta(self, successor: MetadataImage) -> ImageDelta:
        topics: Mapping[Uuid, TopicChange] = NOTHING
        deleted: Mapping[Uuid, Topic] = NOTHING
        if self.topics:
            topics, deleted = self._topic_changes(successor)
        producer_ids_moved = self.next_producer_id != self.image.next_producer_id
        return ImageDelta(
            brokers=NOTHING if self._brokers is None else self._brokers.changes(),
            controllers=NOTHING if self._controllers is None else self._controllers.changes(),
            topics=topics,
            deleted=deleted,
            configs=tuple(self.configs),
            features=NOTHING if self._features is None else self._features.changes(),
            client_quotas=tuple(self.client_quotas),
            scram_credentials=(
                NOTHING if self._scram_credentials is None else self._scram_credentials.changes()
            ),
            acls=tuple(self.changed_acls),
            next_producer_id=self.next_producer_id if producer_ids_moved else None,
        )

    def _topic_changes(
        self, successor: MetadataImage
    ) -> tuple[dict[Uuid, TopicChange], dict[Uuid, Topic]]:
        topics, deleted = {}, {}
        for topic_id, builder in self.topics.items():
            if builder is not None:
                topics[topic_id] = TopicChange(
                    topic=successor.topics[topic_id],
                    created=builder.created,
                    partitions=builder.partitions.changes(),
                )
            elif topic_id in self.image.topics:
                deleted[topic_id] = self.image.topics[topic_id]
        return topics, deleted


def folded(base: PersistentMap[K, V], changed: dict[K, V | None]) -> PersistentMap[K, V]:
    """Return the map with the changes applied; None removes a key."""
    if not changed:
        return base
    if len(changed) == 1:  # most runs change one entry
        ((key, value),) = changed.items()
        return base.discard(key) if value is None else base.insert(key, value)
    kept = {key: value for key, value in changed.items() if value is not None}
    if len(kept) != len(changed):
        for key, value in changed.items():
            if value is None:
                base = base.discard(key)
    return base.update(kept) if kept else base

"""What changed between two images, for brokers to act on and for the controller's indexes.

Work that follows a delta grows with the change, never with the cluster. Mappings keep the order of
first touch, which is the log's order: the same on every node. An entry's old and new value may be
equal when a record changed something back or nothing; consumers compare what they care for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import (
    Broker,
    ConfigResource,
    ControllerRegistration,
    Partition,
    Topic,
)
from quorate.quorum.metadata.persistent import PersistentMap

T = TypeVar("T")
NOTHING: Mapping[Any, Any] = PersistentMap()


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """`old` is None for what was created, `new` for what is gone."""

    old: T | None
    new: T | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """One topic that lives in the new image. `created` topics list all their partitions."""

    topic: Topic
    created: bool
    partitions: Mapping[int, Change[Partition]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDelta:
    """`deleted` holds the topics as they were in the old image; one both created and deleted in
    between is in neither mapping. `configs` lists the resources with any changed key, also those of
    deleted topics."""

    brokers: Mapping[int, Change[Broker]] = NOTHING
    controllers: Mapping[int, Change[ControllerRegistration]] = NOTHING
    topics: Mapping[Uuid, TopicChange] = NOTHING
    deleted: Mapping[Uuid, Topic] = NOTHING
    configs: tuple[ConfigResource, ...] = ()
    features: Mapping[str, Change[int]] = NOTHING
    next_producer_id: int | None = None

    def __bool__(self) -> bool:
        """False when only the offset moved on (NoOp and control records)."""
        return bool(
            self.brokers
            or self.controllers
            or self.topics
            or self.deleted
            or self.configs
            or self.features
            or self.next_producer_id is not None
        )

    def partitions(self) -> Iterator[tuple[Topic, int, Change[Partition]]]:
        """Every changed or created partition of topics that live; see also `deleted`."""
        for change in self.topics.values():
            for partition_id, partition in change.partitions.items():
                yield change.topic, partition_id, partition


EMPTY_DELTA = ImageDelta()

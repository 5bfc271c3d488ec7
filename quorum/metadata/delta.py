"""The changes between two images, for brokers and for the controller's indexes.

Work that follows a delta grows with the change and not with the cluster. The order of the mappings
is the same on every node. After a replay, it is the order in which the log first named each entry.
After a snapshot load, the entries are sorted (`difference.py`). An entry's old and new values may
be equal, for example after a change and its reversal. Consumers compare the fields that they need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import (
    Broker,
    ClientQuotaEntity,
    ConfigResource,
    ControllerRegistration,
    Partition,
    ScramCredential,
    ScramKey,
    Topic,
)
from quorate.quorum.metadata.persistent_map import PersistentMap

T = TypeVar("T")
NOTHING: Mapping[Any, Any] = PersistentMap()
"""The mapping of a delta that has no changes of one sort."""


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """The old and the new value of one entry. `old` is None if the entry was created, and `new` is
    None if it was removed."""

    old: T | None
    new: T | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """The changes of one topic that exists in the new image.

    If `created`, `partitions` contains all of its partitions, or all that concern the node if the
    delta was computed for one node (`difference.differing`). `partitions` is empty if records named
    the topic but changed no partition."""

    topic: Topic
    created: bool
    partitions: Mapping[int, Change[Partition]]


class ImageDelta(NamedTuple):
    """All changes from one image to another.

    `topics` holds those topics of the new image that records created, changed or named. `deleted`
    holds deleted topics as they were in the old image. A topic that was both created and deleted is
    in neither. `configs` lists each resource with a key that was set or deleted, even if the value
    is the same as before. It includes those of deleted topics. `client_quotas` likewise
    lists each entity with a quota that was set or removed, and `acls` the id of each ACL that was
    added or removed. `next_producer_id` is None if it did
    not change.
    """

    brokers: Mapping[int, Change[Broker]] = NOTHING
    controllers: Mapping[int, Change[ControllerRegistration]] = NOTHING
    topics: Mapping[Uuid, TopicChange] = NOTHING
    deleted: Mapping[Uuid, Topic] = NOTHING
    configs: tuple[ConfigResource, ...] = ()
    features: Mapping[str, Change[int]] = NOTHING
    client_quotas: tuple[ClientQuotaEntity, ...] = ()
    scram_credentials: Mapping[ScramKey, Change[ScramCredential]] = NOTHING
    acls: tuple[Uuid, ...] = ()
    next_producer_id: int | None = None

    def __bool__(self) -> bool:
        """Return False if only the offset advanced, for example over NoOp and control records."""
        return bool(
            self.brokers
            or self.controllers
            or self.topics
            or self.deleted
            or self.configs
            or self.features
            or self.client_quotas
            or self.scram_credentials
            or self.acls
            or self.next_producer_id is not None
        )

    def partitions(self) -> Iterator[tuple[Topic, int, Change[Partition]]]:
        """Yield every changed or created partition of topics that exist. Deleted topics are only in
        `deleted`.

        A partition is missing in the new image (`new` is None) only if a snapshot was loaded."""
        for change in self.topics.values():
            for partition_id, partition in change.partitions.items():
                yield change.topic, partition_id, partition


EMPTY_DELTA = ImageDelta()
"""The delta between equal images."""

"""The immutable image of the cluster's metadata: what all records up to one offset add up to.

A value, never changed in place: `replay.py` makes the next one, sharing all that stayed the same.
The leader's latest image (appended) and the committed image are two such values.

Invariants: `topic_ids` and `topics` hold the same topics; a partition's leader is in its ISR or
NO_LEADER; every epoch only grows from one image to its successors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from quorate.quorum.ids import ZERO_UUID, EpochOffset, Uuid
from quorate.quorum.metadata.persistent import PersistentMap
from quorate.quorum.metadata.records import NO_LEADER, RECOVERED, Endpoint, FeatureRange

METADATA_VERSION = "metadata.version"
BROKER_RESOURCE = 4
TOPIC_RESOURCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """One registration. `epoch` is the offset of its RegisterBrokerRecord."""

    id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[Uuid, ...] = ()

    @property
    def active(self) -> bool:
        """May lead and join an ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((each for each in self.endpoints if each.name == listener), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistration:
    id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """`replicas` in assignment order (the first is the preferred leader), `isr` in the log's
    order."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int = NO_LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED
    directories: tuple[Uuid, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def reassigning(self) -> bool:
        return bool(self.removing or self.adding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    id: Uuid
    name: str
    partitions: PersistentMap[int, Partition] = field(default_factory=PersistentMap)

    def partition_ids(self) -> list[int]:
        return sorted(self.partitions)


ConfigResource = tuple[int, str]
"""(resource type, resource name); the name "" is the cluster-wide default of the type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    """State after every record up to and including `last`; `last.offset` is -1 before any."""

    last: EpochOffset = EpochOffset(-1, -1)
    last_timestamp_ms: int = -1
    features: PersistentMap[str, int] = field(default_factory=PersistentMap)
    brokers: PersistentMap[int, Broker] = field(default_factory=PersistentMap)
    controllers: PersistentMap[int, ControllerRegistration] = field(default_factory=PersistentMap)
    topics: PersistentMap[Uuid, Topic] = field(default_factory=PersistentMap)
    topic_ids: PersistentMap[str, Uuid] = field(default_factory=PersistentMap)
    configs: PersistentMap[ConfigResource, PersistentMap[str, str]] = field(
        default_factory=PersistentMap
    )
    next_producer_id: int = 0

    def topic(self, name: str) -> Topic | None:
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def topic_id(self, name: str) -> Uuid:
        """ZERO_UUID when there is no such topic."""
        return self.topic_ids.get(name, ZERO_UUID)

    def partition(self, topic_id: Uuid, partition_id: int) -> Partition | None:
        topic = self.topics.get(topic_id)
        return None if topic is None else topic.partitions.get(partition_id)

    def config(self, resource_type: int, name: str) -> dict[str, str]:
        """The overrides set on one resource, as a plain dict."""
        return dict(self.configs.get((resource_type, name), PersistentMap()))

    def topic_names(self) -> list[str]:
        return sorted(self.topic_ids)

    def broker_ids(self) -> list[int]:
        return sorted(self.brokers)

    def all_partitions(self) -> Iterator[tuple[Topic, int, Partition]]:
        """In order of topic name and partition id."""
        for name in self.topic_names():
            topic = self.topics[self.topic_ids[name]]
            for partition_id in topic.partition_ids():
                yield topic, partition_id, topic.partitions[partition_id]

"""The immutable image of the cluster metadata: the state after all records up to one offset.

An image never changes. `replay.py` computes the next one, which shares all unchanged parts with it.
The active controller's latest image, which includes uncommitted records, and the committed image
are two such values.

Invariants:

- `topic_ids` and `topics` contain the same topics.
- The leader of a partition is a member of its ISR, or NO_LEADER. The active controller writes only
  such records. Replay does not check it.
- The ISR of a partition is empty only if the partition has no leader and ELR is or was on.
- No epoch of a partition or of a registered broker decreases from one image to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.quorum.ids import ZERO_UUID, EpochOffset, Uuid
from quorate.quorum.metadata.acls import EMPTY, AclSet
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.metadata.records import NO_LEADER, RECOVERED, Endpoint, FeatureRange

METADATA_VERSION = "metadata.version"
"""The feature whose level says which records may be written."""
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
"""The feature with which the controller maintains eligible leader replicas (KIP-966)."""
BROKER_RESOURCE = 4
"""Kafka's resource type of a broker's configs."""
TOPIC_RESOURCE = 2
"""Kafka's resource type of a topic's configs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """One registration. `epoch` is the offset of the first RegisterBrokerRecord of this
    incarnation.

    `endpoints` and `features` are sorted by name. Their texts and the rack are cut to the bounds of
    `registration_bounds.py`."""

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
        """Return True if the broker may lead partitions and join an ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of the named listener, or None."""
        return next((each for each in self.endpoints if each.name == listener), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistration:
    """One registration of a controller. `endpoints` and `features` are as those of `Broker`."""

    id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: tuple[FeatureRange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The state of one partition.

    `replicas` is in assignment order, and the first one is the preferred leader. `isr` has the
    order in which the last record listed it. `removing` and `adding` are the replicas of a running
    reassignment. `directories` has one directory id per replica. It is empty if the record was
    written in version 0, which has no directories. `elr` are the eligible leader replicas
    (KIP-966). `last_known_elr` has at most one member: the last leader, while the ISR is empty.
    """

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
        """Return the first replica of the assignment, or NO_LEADER without replicas."""
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def reassigning(self) -> bool:
        """Return True if a reassignment is running."""
        return bool(self.removing or self.adding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic and its partitions by id."""

    id: Uuid
    name: str
    partitions: PersistentMap[int, Partition] = field(default_factory=PersistentMap)

    def partition_ids(self) -> list[int]:
        """Return the sorted partition ids."""
        return sorted(self.partitions)


ClientQuotaEntity = tuple[tuple[str, str | None], ...]
"""The (entity type, entity name) pairs of a client quota, sorted by type. A name of None is the
default entity of the type."""


def quota_order(entity: ClientQuotaEntity) -> tuple[tuple[str, bool, str], ...]:
    """Return the sort key of an entity. A default entity precedes the named ones of its type."""
    return tuple((kind, name is not None, name or "") for kind, name in entity)


ConfigResource = tuple[int, str]
"""(resource type, resource name). The name "" is the cluster-wide default of the type."""


ScramKey = tuple[str, int]
"""(name of the user, Kafka's number of the mechanism: 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """The credential of a user for one SCRAM mechanism (RFC 5802). Its repr shows no secret."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


class MetadataImage(NamedTuple):
    """The state after every record up to and including `last`.

    `last.offset` is -1 before any record. `last_timestamp_ms` is the wall time of the batch of
    `last`. `next_producer_id` is the first producer id that is not reserved. An entity without
    quotas is not in `client_quotas`.
    """

    last: EpochOffset = EpochOffset(-1, -1)
    last_timestamp_ms: int = -1
    features: PersistentMap[str, int] = PersistentMap()
    brokers: PersistentMap[int, Broker] = PersistentMap()
    controllers: PersistentMap[int, ControllerRegistration] = PersistentMap()
    topics: PersistentMap[Uuid, Topic] = PersistentMap()
    topic_ids: PersistentMap[str, Uuid] = PersistentMap()
    configs: PersistentMap[ConfigResource, PersistentMap[str, str]] = PersistentMap()
    client_quotas: PersistentMap[ClientQuotaEntity, PersistentMap[str, float]] = PersistentMap()
    scram_credentials: PersistentMap[ScramKey, ScramCredential] = PersistentMap()
    acls: AclSet = EMPTY
    next_producer_id: int = 0

    def topic(self, name: str) -> Topic | None:
        """Return the topic of this name, or None."""
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def topic_id(self, name: str) -> Uuid:
        """Return the topic's id, or ZERO_UUID if there is no such topic."""
        return self.topic_ids.get(name, ZERO_UUID)

    def partition(self, topic_id: Uuid, partition_id: int) -> Partition | None:
        """Return the partition, or None if the topic or the partition does not exist."""
        topic = self.topics.get(topic_id)
        return None if topic is None else topic.partitions.get(partition_id)

    def config(self, resource_type: int, name: str) -> dict[str, str]:
        """Return the configs that are set on one resource, as a plain dict."""
        return dict(self.configs.get((resource_type, name), PersistentMap()))

    def topic_names(self) -> list[str]:
        """Return the sorted topic names."""
        return sorted(self.topic_ids)

    def broker_ids(self) -> list[int]:
        """Return the sorted broker ids."""
        return sorted(self.brokers)

    def all_partitions(self) -> Iterator[tuple[Topic, int, Partition]]:
        """Yield all partitions, ordered by topic name and partition id."""
        for name in self.topic_names():
            topic = self.topics[self.topic_ids[name]]
            for partition_id in topic.partition_ids():
                yield topic, partition_id, topic.partitions[partition_id]

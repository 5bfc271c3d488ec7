"""Reverse indexes over the latest image, as Kafka's BrokersToIsrs.

With them, work for one broker grows with that broker's partitions and not with the cluster. They
are derived from the image: `PartitionIndex.of` builds them, and each delta updates them.

The iteration order of the sets is not defined. A rule that writes records from a set sorts it
first, so that the records depend only on the image.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import NewType

from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage, Partition, Topic
from quorate.quorum.metadata.pace import Pace, in_order
from quorate.quorum.metadata.records import NO_LEADER, RECOVERING

PartitionKey = tuple[Uuid, int]
"""The topic id and the partition id."""
Packed = NewType("Packed", bytes)
"""A partition key as 20 bytes, topic id before partition id. It sorts like the key."""

PARTS = 64
"""The number of dicts in one `Keys`."""
TOPIC_LOW, PARTITION_MID = 15, 18
"""The positions, in a packed key, of the two bytes that choose the part: the last byte of the topic
id, and the second lowest byte of the partition id."""
MIDS_OF_BLOCK = 4
"""The number of values of byte PARTITION_MID that share a part. This byte changes every 256
partitions, so 1,024 consecutive partitions of a topic share a part."""


def packed(key: PartitionKey) -> Packed:
    """Return the key as 20 bytes."""
    topic_id, partition_id = key
    return Packed(topic_id + partition_id.to_bytes(4, "big"))


class Keys:
    """A set of partitions whose operations stay short with a million partitions.

    It stores bytes, so no dict holds a container and CPython's cycle collector does not scan these
    dicts. With a set, or with a dict of tuples, one scan of a million partitions takes 0.25 s.
    (Python 3.14 scans every dict: 13 ms for a million partitions, until `gc.freeze` ends that.)

    It consists of PARTS dicts, because a single dict of half a million keys takes 20 ms to grow.
    Neighbouring partitions share a part, so the parts grow at different times.
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: tuple[dict[Packed, None], ...] = tuple({} for _ in range(PARTS))

    def add(self, key: Packed) -> None:
        """Add the key. Do nothing if it is present."""
        self._part(key)[key] = None

    def discard(self, key: Packed) -> None:
        """Remove the key. Do nothing if it is absent."""
        self._part(key).pop(key, None)

    def __contains__(self, key: Packed) -> bool:
        return key in self._part(key)

    def __iter__(self) -> Iterator[PartitionKey]:
        for key in chain.from_iterable(self._parts):
            yield Uuid(key[:16]), int.from_bytes(key[16:], "big")

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def emptied(self) -> IncrementalWork[None]:
        """Remove all keys, in steps."""
        pace = Pace()
        for part in self._parts:
            while part:
                part.popitem()
                if pace.is_time():
                    yield
            part.clear()  # popitem keeps the table at its full size; clear frees it

    def _part(self, key: Packed) -> dict[Packed, None]:
        return self._parts[(key[TOPIC_LOW] + key[PARTITION_MID] // MIDS_OF_BLOCK) % PARTS]


NO_KEYS = Keys()


def has_collision_characters(name: str) -> bool:
    """Return True if the topic name contains a period or an underscore."""
    return "." in name or "_" in name


def unified_name(name: str) -> str:
    """Return the name with periods as underscores. Kafka gives topics with the same unified name
    the same metric names, so only one such topic may exist."""
    return name.replace(".", "_")


class PartitionIndex:
    """The reverse indexes over one image. The controller owns it.

    - `in_isr`: by broker id, the partitions whose ISR contains the broker
    - `in_elr`: by broker id, the partitions whose ELR, or last known ELR, contains the broker
    - `led_by`: by broker id, the partitions that the broker leads
    - `leaderless`: the partitions without a leader
    - `imbalanced`: the partitions whose leader is not the preferred replica, and those without one
    - `preferred`: by broker id, the number of partitions whose preferred leader is the broker
    - `replicas`: by broker id, the number of partitions that have a replica on the broker
    - `reassigning`: the partitions with a running reassignment

    Invariant: all of them describe the same image.
    """

    def __init__(self) -> None:
        self.in_isr: defaultdict[int, Keys] = defaultdict(Keys)
        self.in_elr: defaultdict[int, Keys] = defaultdict(Keys)
        self.led_by: defaultdict[int, Keys] = defaultdict(Keys)
        self.leaderless = Keys()
        self.imbalanced = Keys()
        self.preferred: Counter[int] = Counter()
        self.replicas: Counter[int] = Counter()
        self.reassigning = Keys()
        self.unclean_elections = 0
        """The number of replayed changes that made a replica outside the previous ISR and ELR the
        leader, and the partition RECOVERING, since the process started (KAFKA-19212). Changes in a
        loaded snapshot are not counted."""
        self.elr_elections = 0
        """The number of replayed changes that made a member of the previous ELR the leader."""
        self._names: defaultdict[str, dict[str, None]] = defaultdict(dict)

    @classmethod
    def of(cls, image: MetadataImage) -> IncrementalWork[PartitionIndex]:
        """Build the index of an image in steps. A million partitions take seconds."""
        index, pace = cls(), Pace()
        for name in (yield from in_order(image.topic_ids)):
            topic = image.topics[image.topic_ids[name]]
            index._add_name(name)
            for partition_id in (yield from in_order(topic.partitions)):
                index._move((topic.id, partition_id), None, topic.partitions[partition_id])
                if pace.is_time():
                    yield
        return index

    def emptied(self) -> IncrementalWork[None]:
        """Free an index that is no longer used, in steps. Freeing a million keys in one step would
        block the loop."""
        of_brokers = (*self.in_isr.values(), *self.in_elr.values(), *self.led_by.values())
        for keys in (*of_brokers, self.leaderless, self.imbalanced, self.reassigning):
            yield from keys.emptied()

    def apply(self, delta: ImageDelta) -> None:
        """Update the index by the changes of one delta."""
        for topic in delta.deleted.values():
            self._remove_topic(topic)
        for topic_id, change in delta.topics.items():
            if change.created:
                self._add_name(change.topic.name)
            for partition_id, partition in change.partitions.items():
                self._move((topic_id, partition_id), partition.old, partition.new)

    def in_isr_of(self, broker_id: int) -> Keys:
        """Return the partitions whose ISR contains the broker. The set changes with the index."""
        return self.in_isr.get(broker_id, NO_KEYS)

    def in_elr_of(self, broker_id: int) -> Keys:
        """Return the partitions whose ELR, or last known ELR, contains the broker. The set changes
        with the index."""
        return self.in_elr.get(broker_id, NO_KEYS)

    def partitions_in_isr(self, broker_id: int) -> list[PartitionKey]:
        """Return the sorted keys of the partitions whose ISR contains the broker."""
        return sorted(self.in_isr.get(broker_id, NO_KEYS))

    def partitions_in_elr(self, broker_id: int) -> list[PartitionKey]:
        """Return the sorted keys of the partitions whose ELR, or last known ELR, contains the
        broker."""
        return sorted(self.in_elr.get(broker_id, NO_KEYS))

    def partitions_with_elr(self) -> list[PartitionKey]:
        """Return the sorted keys of the partitions that have an ELR or a last known leader."""
        return sorted({key for keys in self.in_elr.values() for key in keys})

    def topics_with_elr(self) -> frozenset[Uuid]:
        """Return the ids of the topics that have an ELR or a last known leader."""
        return frozenset(topic_id for keys in self.in_elr.values() for topic_id, _ in keys)

    def has_leaderships(self, broker_id: int) -> bool:
        """Return True if the broker leads at least one partition."""
        return bool(self.led_by.get(broker_id))

    def colliding_name(self, name: str) -> str | None:
        """Return the first existing topic whose metric names would equal those of topic `name`, or
        None."""
        if not has_collision_characters(name):
            return None
        return min(self._names.get(unified_name(name), ()), default=None)

    def _add_name(self, name: str) -> None:
        if has_collision_characters(name):
            self._names[unified_name(name)][name] = None

    def _remove_topic(self, topic: Topic) -> None:
        for partition_id in topic.partition_ids():
            self._move((topic.id, partition_id), topic.partitions[partition_id], None)
        same = self._names.get(unified_name(topic.name))
        if same is not None:
            same.pop(topic.name, None)

    def _move(self, moved: PartitionKey, old: Partition | None, new: Partition | None) -> None:
        key = packed(moved)
        if old is None or new is None or old.replicas is not new.replicas:
            self._count_replicas(old, -1)
            self._count_replicas(new, 1)
        if old is not None:
            for broker_id in old.isr:
                self.in_isr[broker_id].discard(key)
            for broker_id in (*old.elr, *old.last_known_elr):
                self.in_elr[broker_id].discard(key)
            self.led_by[old.leader].discard(key)
            self.leaderless.discard(key)
            self.imbalanced.discard(key)
            self.preferred[old.preferred_leader] -= 1
            self.reassigning.discard(key)
        if new is None:
            return
        self.preferred[new.preferred_leader] += 1
        for broker_id in new.isr:
            self.in_isr[broker_id].add(key)
        for broker_id in (*new.elr, *new.last_known_elr):
            self.in_elr[broker_id].add(key)
        if new.leader == NO_LEADER:
            self.leaderless.add(key)
        else:
            self.led_by[new.leader].add(key)
            if old is not None and new.leader != old.leader:
                from_elr = new.leader in old.elr
                self.elr_elections += from_elr
                self.unclean_elections += (
                    new.leader_recovery_state == RECOVERING
                    and not from_elr
                    and new.leader not in old.isr
                )
        if new.leader != new.preferred_leader:
            self.imbalanced.add(key)
        if new.reassigning:
            self.reassigning.add(key)

    def _count_replicas(self, partition: Partition | None, by: int) -> None:
        for broker_id in () if partition is None else partition.replicas:
            self.replicas[broker_id] += by
            if not self.replicas[broker_id]:
                del self.replicas[broker_id]

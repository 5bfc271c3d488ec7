"""Reverse indexes over the latest image, so that work grows with one broker's partitions and not
with the cluster (design idea 10; Kafka's BrokersToIsrs).

Derived, never authoritative: rebuilt from an image at activation, moved on by each delta. The
order in the sets is no one's to rely on; whoever writes records from one sorts it first, so that
the records depend on the image alone and not on how it came about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import NewType

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage, Partition, Topic
from quorate.quorum.metadata.records import NO_LEADER
from quorate.quorum.metadata.steps import Pace, in_order
from quorate.quorum.steps import Steps

PartitionKey = tuple[Uuid, int]
Packed = NewType("Packed", bytes)
"""A key as bytes, in the same order: topic id and partition, 20 bytes."""

PARTS = 64
TOPIC_LOW, PARTITION_MID = 15, 18
MIDS_OF_BLOCK = 4
"""The byte in the middle changes every 256 partitions: neighbours are 1,024 of a topic."""


def packed(key: PartitionKey) -> Packed:
    topic_id, partition_id = key
    return Packed(topic_id + partition_id.to_bytes(4, "big"))


class Keys:
    """A set of partitions that stops nobody when there are a million.

    Of bytes: no container holds another, so CPython's collector of cycles looks at none of these
    dicts (a set, or a dict of tuples, it does: 0.25 s for the index of a million partitions).

    In parts: one dict of half a million keys takes 20 ms to grow. Neighbours are in the same part,
    so that it is the turn of one part after the other and not of all of them at once.
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: tuple[dict[Packed, None], ...] = tuple({} for _ in range(PARTS))

    def add(self, key: Packed) -> None:
        self._part(key)[key] = None

    def discard(self, key: Packed) -> None:
        self._part(key).pop(key, None)

    def __contains__(self, key: Packed) -> bool:
        return key in self._part(key)

    def __iter__(self) -> Iterator[PartitionKey]:
        for key in chain.from_iterable(self._parts):
            yield Uuid(key[:16]), int.from_bytes(key[16:], "big")

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def emptied(self) -> Steps[None]:
        pace = Pace()
        for part in self._parts:
            while part:
                part.popitem()
                if pace.is_time():
                    yield
            part.clear()  # its table, which is as large as ever

    def _part(self, key: Packed) -> dict[Packed, None]:
        return self._parts[(key[TOPIC_LOW] + key[PARTITION_MID] // MIDS_OF_BLOCK) % PARTS]


NO_KEYS = Keys()


def has_collision_characters(name: str) -> bool:
    return "." in name or "_" in name


def unified_name(name: str) -> str:
    """Names that are equal here would share a metric name in Kafka, so only one may exist."""
    return name.replace(".", "_")


class PartitionIndex:
    def __init__(self) -> None:
        self.in_isr: defaultdict[int, Keys] = defaultdict(Keys)
        self.led_by: defaultdict[int, Keys] = defaultdict(Keys)
        self.leaderless = Keys()
        self.imbalanced = Keys()
        self.reassigning = Keys()
        self.unclean_elections = 0
        """Seen since the beginning: leaders from outside of the ISR and the ELR before."""
        self._names: defaultdict[str, dict[str, None]] = defaultdict(dict)

    @classmethod
    def of(cls, image: MetadataImage) -> Steps[PartitionIndex]:
        """In steps: of a million partitions it takes seconds."""
        index, pace = cls(), Pace()
        for name in (yield from in_order(image.topic_ids)):
            topic = image.topics[image.topic_ids[name]]
            index._add_name(name)
            for partition_id in (yield from in_order(topic.partitions)):
                index._move((topic.id, partition_id), None, topic.partitions[partition_id])
                if pace.is_time():
                    yield
        return index

    def emptied(self) -> Steps[None]:
        """Nobody needs it any more: what it holds is let go of in steps, too."""
        of_brokers = (*self.in_isr.values(), *self.led_by.values())
        for keys in (*of_brokers, self.leaderless, self.imbalanced, self.reassigning):
            yield from keys.emptied()

    def apply(self, delta: ImageDelta) -> None:
        for topic in delta.deleted.values():
            self._remove_topic(topic)
        for topic_id, change in delta.topics.items():
            if change.created:
                self._add_name(change.topic.name)
            for partition_id, partition in change.partitions.items():
                self._move((topic_id, partition_id), partition.old, partition.new)

    def partitions_in_isr(self, broker_id: int) -> list[PartitionKey]:
        return sorted(self.in_isr.get(broker_id, NO_KEYS))

    def has_leaderships(self, broker_id: int) -> bool:
        return bool(self.led_by.get(broker_id))

    def colliding_name(self, name: str) -> str | None:
        """An existing topic whose metric name would be the same as this new one's."""
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
        if old is not None:
            for broker_id in old.isr:
                self.in_isr[broker_id].discard(key)
            self.led_by[old.leader].discard(key)
            self.leaderless.discard(key)
            self.imbalanced.discard(key)
            self.reassigning.discard(key)
        if new is None:
            return
        for broker_id in new.isr:
            self.in_isr[broker_id].add(key)
        if new.leader == NO_LEADER:
            self.leaderless.add(key)
        else:
            self.led_by[new.leader].add(key)
            if old is not None and new.leader != old.leader:
                self.unclean_elections += new.leader not in (*old.isr, *old.elr)
        if new.leader != new.preferred_leader:
            self.imbalanced.add(key)
        if new.reassigning:
            self.reassigning.add(key)

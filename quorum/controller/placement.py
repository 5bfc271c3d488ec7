"""Replica placement of new partitions: Kafka's StripedReplicaPlacer.

The goals in order are: spread over racks, spread over brokers, prefer unfenced brokers. The hard
limits are: no two replicas on one broker, and the first replica, which leads, on an unfenced
broker. Load, disk space and existing partitions have no influence.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.controller.result import RequestRefused
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Random

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A broker that may get replicas."""

    id: int
    rack: str | None
    fenced: bool


def usable_brokers(image: MetadataImage) -> list[UsableBroker]:
    """Return the registered brokers that are not in controlled shutdown, ordered by id."""
    brokers = [image.brokers[broker_id] for broker_id in image.broker_ids()]
    return [UsableBroker(b.id, b.rack, b.fenced) for b in brokers if not b.in_controlled_shutdown]


class Placer:
    """Places the partitions of many topics.

    It groups the brokers by rack once, so that the work of a request does not grow with topics
    times brokers.
    """

    def __init__(self, brokers: list[UsableBroker]) -> None:
        self._brokers = brokers
        by_rack: dict[str | None, list[UsableBroker]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda rack: (rack is not None, rack or ""))
        self._racks = [RackBrokers.of(by_rack[name]) for name in names]
        self._unfenced = sum(not broker.fenced for broker in brokers)

    def place(self, partitions: int, replication_factor: int, random: Random) -> list[Replicas]:
        """Return the replicas of each of `partitions` new partitions.

        Raise RequestRefused if the replication factor is not positive or exceeds the number of
        brokers, or if all brokers are fenced.
        """
        check_factor(self._brokers, self._unfenced, replication_factor)
        racks = RackCircle(self._racks, self._unfenced, random)
        return [racks.place(replication_factor) for _ in range(partitions)]


@dataclass(frozen=True, slots=True)
class RackBrokers:
    """The sorted ids of one rack's brokers."""

    fenced: tuple[int, ...]
    unfenced: tuple[int, ...]

    @classmethod
    def of(cls, brokers: list[UsableBroker]) -> RackBrokers:
        """Return the ids of `brokers`, which are all in one rack."""
        return cls(
            tuple(sorted(each.id for each in brokers if each.fenced)),
            tuple(sorted(each.id for each in brokers if not each.fenced)),
        )


def check_factor(brokers: list[UsableBroker], unfenced: int, replication_factor: int) -> None:
    """Raise RequestRefused if the replication factor cannot be reached. `unfenced` is the number of
    unfenced brokers."""
    if replication_factor <= 0:
        raise factor_refused(
            f"Invalid replication factor {replication_factor}: the replication factor must be "
            "positive."
        )
    if not unfenced:
        raise factor_refused("All brokers are currently fenced.")
    if replication_factor > len(brokers):
        raise factor_refused(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered."
        )


def factor_refused(message: str) -> RequestRefused:
    """Return a RequestRefused with INVALID_REPLICATION_FACTOR."""
    return RequestRefused(ErrorCode.INVALID_REPLICATION_FACTOR, message)


class BrokerCircle:
    """The brokers of one rack, fenced or unfenced, as a circle.

    Each partition is one epoch: this is Kafka's word in the placer, not a leader epoch. The start
    moves by one with each epoch that uses the circle. A broker is returned at most once per epoch.
    """

    def __init__(self, brokers: tuple[int, ...], random: Random) -> None:
        self._brokers = list(brokers)
        self._offset = random.randrange(0, len(brokers)) if brokers else 0
        self._given = 0
        self._epoch = 0

    def next(self, epoch: int) -> int | None:
        """Return the next broker for the partition of this epoch, or None if all were used."""
        if not self._brokers:
            return None
        if epoch != self._epoch:
            self._epoch, self._given = epoch, 0
            self._offset = (self._offset + 1) % len(self._brokers)
        if self._given == len(self._brokers):
            return None
        broker = self._brokers[(self._given + self._offset) % len(self._brokers)]
        self._given += 1
        return broker

    def shuffle(self, random: Random) -> None:
        """Shuffle the order of the brokers."""
        random.shuffle(self._brokers)


class Rack:
    """One rack: the circle of its unfenced brokers and that of its fenced ones."""

    def __init__(self, brokers: RackBrokers, random: Random) -> None:
        self.fenced = BrokerCircle(brokers.fenced, random)
        self.unfenced = BrokerCircle(brokers.unfenced, random)

    def next(self, epoch: int) -> int | None:
        """Return the next broker, unfenced ones first, or None if all were used in this epoch."""
        broker = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker


class RackCircle:
    """The racks as a circle whose start moves by one per partition."""

    def __init__(self, racks: list[RackBrokers], unfenced: int, random: Random) -> None:
        self._racks = [Rack(each, random) for each in racks]
        self._unfenced = unfenced
        self._random = random
        self._offset = random.randrange(0, len(racks))
        self._epoch = 0
        self._since_shuffle = 0

    def place(self, replication_factor: int) -> Replicas:
        """Return the replicas of the next partition, the leader first."""
        if self._since_shuffle == self._unfenced and self._unfenced > 1:
            # From here on the replica sets would repeat, which correlates failures.
            self._shuffle()
        self._offset %= len(self._racks)
        leader, leader_rack = self._place_leader()
        replicas = [leader]
        index = self._offset
        skip: int | None = leader_rack
        while len(replicas) < replication_factor:
            if index == skip:
                skip = None  # the leader used this rack's turn in the first round
            else:
                replica = self._racks[index].next(self._epoch)
                if replica is not None:
                    replicas.append(replica)
            index = (index + 1) % len(self._racks)
        self._epoch += 1
        self._since_shuffle += 1
        self._offset += 1
        return tuple(replicas)

    def _place_leader(self) -> tuple[int, int]:
        for step in range(len(self._racks)):
            index = (self._offset + step) % len(self._racks)
            leader = self._racks[index].unfenced.next(self._epoch)
            if leader is not None:
                return leader, index
        raise AssertionError("no unfenced broker: check_factor lets none through")

    def _shuffle(self) -> None:
        self._random.shuffle(self._racks)
        for rack in self._racks:
            rack.unfenced.shuffle(self._random)
            rack.fenced.shuffle(self._random)
        self._since_shuffle = 0

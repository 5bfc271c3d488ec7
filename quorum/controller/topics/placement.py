"""Replica placement of new partitions: the rules of Kafka's StripedReplicaPlacer, with balance.

The goals in order are: spread each partition over the racks, keep the brokers balanced, prefer
unfenced brokers. The hard limits are: no two replicas on one broker, and the first replica, which
leads, on an unfenced broker.

Kafka starts each topic at a random broker, so many small topics drift away from balance. This
placer counts the replicas and the preferred leaders of each broker. A new partition goes to the
brokers that have the fewest (`placement_balance.py`). Load and disk space have no influence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quorate.quorum.controller.state.decision_steps import STEP_RECORDS
from quorate.quorum.controller.state.partition_index import PartitionIndex
from quorate.quorum.controller.state.result import RequestRefused
from quorate.quorum.controller.topics.placement_balance import Balance, BrokerCounts
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Random

Replicas = tuple[int, ...]
NO_COUNTS: Mapping[int, int] = {}
PARTITIONS_PER_BROKER = 1 / 8
"""The number of placed partitions for each broker after which a topic makes a new `Balance` from
the counts. It bounds the cost of a request that creates many small topics."""


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
    """Places the partitions of the topics of one request.

    It counts the replicas that it places, so that later topics of the request take them into
    account. `replicas` and `leaders` are the numbers of partitions of each broker before the
    request, by broker id: those that it stores, and those whose preferred leader it is.
    """

    def __init__(
        self,
        brokers: Sequence[UsableBroker],
        replicas: Mapping[int, int] = NO_COUNTS,
        leaders: Mapping[int, int] = NO_COUNTS,
    ) -> None:
        self._counts = {
            each.id: BrokerCounts(
                id=each.id,
                rack=each.rack,
                fenced=each.fenced,
                replicas=replicas.get(each.id, 0),
                leaders=leaders.get(each.id, 0),
            )
            for each in brokers
        }
        self._unfenced = sum(not broker.fenced for broker in brokers)
        self._balance: Balance | None = None
        self._placed = 0

    @classmethod
    def of(cls, image: MetadataImage, index: PartitionIndex) -> Placer:
        """Return a placer for the usable brokers of the image, which `index` describes."""
        return cls(usable_brokers(image), index.replicas, index.preferred)

    def place(
        self, partitions: int, replication_factor: int, random: Random
    ) -> IncrementalWork[list[Replicas]]:
        """Return the replicas of each of `partitions` new partitions of one topic. Pause after each
        STEP_RECORDS partitions.

        Raise RequestRefused if the replication factor is not positive or exceeds the number of
        brokers, or if all brokers are fenced.
        """
        check_factor(len(self._counts), self._unfenced, replication_factor)
        balance = self._balance
        stale = self._placed >= PARTITIONS_PER_BROKER * len(self._counts)
        if balance is None or (stale and not balance.exact):
            balance = self._balance = Balance(list(self._counts.values()), random)
            self._placed = 0
        self._placed += partitions
        placed: list[Replicas] = []
        while len(placed) < partitions:
            if placed:
                yield
            count = min(STEP_RECORDS, partitions - len(placed))
            placed += [balance.place(replication_factor) for _ in range(count)]
        return placed

    def count(self, assignments: Iterable[Sequence[int]]) -> None:
        """Count the partitions of a manual assignment. Brokers that are not usable do not count."""
        for replicas in assignments:
            for position, broker_id in enumerate(replicas):
                counts = self._counts.get(broker_id)
                if counts is not None:
                    counts.replicas += 1
                    counts.leaders += position == 0
        self._balance = None


def check_factor(brokers: int, unfenced: int, replication_factor: int) -> None:
    """Raise RequestRefused if the replication factor cannot be reached with this number of brokers,
    of which `unfenced` are unfenced."""
    if replication_factor <= 0:
        raise factor_refused(
            f"Invalid replication factor {replication_factor}: the replication factor must be "
            "positive."
        )
    if not unfenced:
        raise factor_refused("All brokers are currently fenced.")
    if replication_factor > brokers:
        raise factor_refused(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{brokers} broker(s) are registered."
        )


def factor_refused(message: str) -> RequestRefused:
    """Return a RequestRefused with INVALID_REPLICATION_FACTOR."""
    return RequestRefused(ErrorCode.INVALID_REPLICATION_FACTOR, message)

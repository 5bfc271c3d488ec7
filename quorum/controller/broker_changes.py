"""What happens to leaders and ISRs when a broker comes, goes, or shuts down (Kafka's
generateLeaderAndIsrUpdates and its callers, kafka-rules 3.9).

Work grows with the partitions of that one broker. Rules beyond Kafka: an unclean election that a
hint would lead to waits until the session would have timed out (`Hints.holds`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorate.quorum.controller.context import Context
from quorate.quorum.controller.elections import Election
from quorate.quorum.controller.index import PartitionKey
from quorate.quorum.controller.partition_change import Target, partition_change
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Broker, Partition
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
)

FENCE = 1
UNFENCE = -1
ENTER_CONTROLLED_SHUTDOWN = 1
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Move:
    """`remove` leaves ISRs and leads nothing; `add` may lead although the image still shows it as
    fenced."""

    cause: Cause
    remove: int = NOBODY
    add: int = NOBODY


def leader_and_isr_changes(
    context: Context, move: Move, keys: Iterable[PartitionKey]
) -> list[MetadataRecord]:
    def acceptable(replica: int) -> bool:
        return replica != move.remove and (replica == move.add or context.is_active(replica))

    records: list[MetadataRecord] = []
    unclean = UncleanElections(context)
    for key in keys:
        topic, partition = context.located(*key)
        target = Target.of(partition)
        target.isr = tuple(replica for replica in partition.isr if replica != move.remove)
        if unclean.allowed(topic.name, partition):
            target.election = Election.UNCLEAN
        record = partition_change(context.image, key, partition, target, acceptable, move.cause)
        if record is not None:
            records.append(record)
    return records


class UncleanElections:
    """Whether a partition may elect uncleanly now; each topic's config is looked up once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._enabled: dict[str, bool] = {}

    def allowed(self, topic_name: str, partition: Partition) -> bool:
        enabled = self._enabled.get(topic_name)
        if enabled is None:
            enabled = self._context.unclean_election_enabled(topic_name)
            self._enabled[topic_name] = enabled
        return enabled and not self._context.hints.holds_any(partition.isr)


def fence(context: Context, broker: Broker, cause: Cause) -> list[MetadataRecord]:
    """First it leaves every ISR, then it is fenced, in one batch."""
    move = Move(cause, remove=broker.id)
    return [
        *leader_and_isr_changes(context, move, context.index.partitions_in_isr(broker.id)),
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE, cause=cause
        ),
    ]


def unfence(context: Context, broker: Broker) -> list[MetadataRecord]:
    """Leaderless partitions may get this broker as their leader."""
    cause = Cause.BROKER_UNFENCED
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE, cause=cause
        ),
        *leader_and_isr_changes(
            context, Move(cause, add=broker.id), sorted(context.index.leaderless)
        ),
    ]


def enter_controlled_shutdown(context: Context, broker: Broker) -> list[MetadataRecord]:
    move = Move(Cause.CONTROLLED_SHUTDOWN, remove=broker.id)
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            in_controlled_shutdown=ENTER_CONTROLLED_SHUTDOWN,
            cause=Cause.CONTROLLED_SHUTDOWN,
        ),
        *leader_and_isr_changes(context, move, context.index.partitions_in_isr(broker.id)),
    ]


def replace_incarnation(context: Context, broker: Broker, cause: Cause) -> list[MetadataRecord]:
    """The old incarnation leaves every ISR before the new one registers, whether it stopped cleanly
    or not. As in Kafka with eligible.leader.replicas off, the last member of an ISR stays in it
    even after an unclean shutdown: without an ELR nothing else would remember where the data is,
    and the partition could never come back without an unclean election (KIP-966)."""
    move = Move(cause, remove=broker.id)
    return leader_and_isr_changes(context, move, context.index.partitions_in_isr(broker.id))

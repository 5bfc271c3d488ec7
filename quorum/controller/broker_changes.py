"""Leader and ISR changes that follow when a broker changes its state.

A broker is fenced, unfenced, unregistered, replaced by a new incarnation, or it begins a controlled
shutdown. This is Kafka's generateLeaderAndIsrUpdates with its callers. The work grows with the
partitions of one broker, or, at an unfencing, with the partitions without a leader. One rule
departs from Kafka: an unclean election that follows from a hint waits until the session would have
expired (`Hints.hold`). `elections.py` chooses the leader of each affected partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorate.quorum.controller.broker_states import BrokerState, check_transition
from quorate.quorum.controller.context import Context
from quorate.quorum.controller.eligible_leaders import MinIsrs
from quorate.quorum.controller.partition_change import (
    NO_BROKER,
    Target,
    leader_after,
    partition_change,
)
from quorate.quorum.controller.partition_index import PartitionKey
from quorate.quorum.controller.unclean_elections import UncleanElections
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Broker
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
)

FENCE = 1
UNFENCE = -1
ENTER_CONTROLLED_SHUTDOWN = 1
"""Kafka's values of the fields of a BrokerRegistrationChangeRecord, where 0 means no change."""


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """A broker's change of state, as the partitions see it.

    The broker `remove` leads nothing and leaves all ISRs. Without ELR it stays in an ISR of which
    it is the last member. If it `stopped_uncleanly`, it leaves all ELRs as well. The broker `add`
    may lead although the image still shows it as fenced. NO_BROKER means that there is none.
    """

    cause: Cause
    remove: int = NO_BROKER
    stopped_uncleanly: bool = False
    add: int = NO_BROKER


def leader_and_isr_changes(
    context: Context, change: BrokerChange, keys: Iterable[PartitionKey]
) -> list[MetadataRecord]:
    """Return the records for those of the partitions `keys` that the change affects."""

    def acceptable(replica: int) -> bool:
        return replica != change.remove and (replica == change.add or context.is_active(replica))

    records: list[MetadataRecord] = []
    unclean, min_isrs = UncleanElections(context), MinIsrs(context)
    for key in keys:
        topic, partition = context.located(*key)
        target = Target.of(partition, min_isrs.of(topic))
        if change.stopped_uncleanly:
            target.stopped_uncleanly = change.remove
        target.isr = tuple(replica for replica in partition.isr if replica != change.remove)
        target.use_last_known = unclean.last_known_may_lead(topic.name)
        record = partition_change(context.image, key, partition, target, acceptable, change.cause)
        unclean.prepare(topic.name, key, leader_after(partition, record))
        if record is not None:
            records.append(record)
    return records


def fence(context: Context, broker: Broker, cause: Cause) -> list[MetadataRecord]:
    """Return the records by which the broker leaves its ISRs and is then fenced.

    Without ELR it stays in an ISR of which it is the last member, until an unclean election
    replaces that ISR."""
    check_transition(broker, BrokerState.FENCED)
    change = BrokerChange(cause, remove=broker.id)
    return [
        *leader_and_isr_changes(context, change, context.index.partitions_in_isr(broker.id)),
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE, cause=cause
        ),
    ]


def unfence(context: Context, broker: Broker) -> list[MetadataRecord]:
    """Return the records that unfence the broker, then those that elect leaders for the leaderless
    partitions of which a replica may lead now."""
    check_transition(broker, BrokerState.UNFENCED)
    cause = Cause.BROKER_UNFENCED
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE, cause=cause
        ),
        *leader_and_isr_changes(
            context, BrokerChange(cause, add=broker.id), sorted(context.index.leaderless)
        ),
    ]


def enter_controlled_shutdown(context: Context, broker: Broker) -> list[MetadataRecord]:
    """Return the records that start the controlled shutdown and move the broker's leaderships
    away."""
    check_transition(broker, BrokerState.CONTROLLED_SHUTDOWN)
    change = BrokerChange(Cause.CONTROLLED_SHUTDOWN, remove=broker.id)
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            in_controlled_shutdown=ENTER_CONTROLLED_SHUTDOWN,
            cause=Cause.CONTROLLED_SHUTDOWN,
        ),
        *leader_and_isr_changes(context, change, context.index.partitions_in_isr(broker.id)),
    ]


def replace_incarnation(
    context: Context, broker_id: int, cause: Cause, *, clean: bool
) -> list[MetadataRecord]:
    """Return the records by which the old incarnation of a broker leaves every ISR before the new
    one registers.

    If it stopped uncleanly, it also leaves every ELR, because its replicas may have lost records
    that were not flushed (KIP-966). `clean` is False for a broker that was not registered before.
    Without ELR, the last member of an ISR stays in it, even after an unclean stop. No other field
    would record which replica has the data, and the partition could only return through an unclean
    election.
    """
    index = context.index
    keys = index.partitions_in_isr(broker_id)
    if not clean:
        keys = sorted({*keys, *index.partitions_in_elr(broker_id)})
    change = BrokerChange(cause, remove=broker_id, stopped_uncleanly=not clean)
    return leader_and_isr_changes(context, change, keys)

"""Leader and ISR changes that follow when a broker changes its state.

A broker is fenced, unfenced, unregistered, replaced by a new incarnation, or it begins a controlled
shutdown. This is Kafka's generateLeaderAndIsrUpdates with its callers. The work grows with the
partitions of one broker, or, at an unfencing, with the partitions without a leader. It is therefore
done in steps (`decision_steps.py`). One rule departs from Kafka: an unclean election that follows
from a hint waits until the session would have expired (`Hints.hold`). `elections.py` chooses the
leader of each affected partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from quorate.quorum.controller.brokers.broker_states import BrokerState, check_transition
from quorate.quorum.controller.partitions.eligible_leaders import MinIsrs
from quorate.quorum.controller.partitions.partition_change import (
    NO_BROKER,
    Target,
    leader_after,
    partition_change,
)
from quorate.quorum.controller.partitions.unclean_elections import UncleanElections
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import STEP_RECORDS, RecordSteps
from quorate.quorum.controller.state.partition_index import PartitionKey, packed
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Broker
from quorate.quorum.metadata.pace import in_order
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
    context: Context,
    change: BrokerChange,
    keys: Iterable[PartitionKey],
    first: Sequence[MetadataRecord] = (),
) -> RecordSteps:
    """Return the records `first`, and those for the partitions that the change affects, in the
    order of their keys and in batches of about STEP_RECORDS. `keys` are in any order."""

    def acceptable(replica: int) -> bool:
        return replica != change.remove and (replica == change.add or context.is_active(replica))

    records = [*first]
    unclean, min_isrs = UncleanElections(context), MinIsrs(context)
    for number, key in enumerate((yield from in_order(keys)), 1):
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
        if number % STEP_RECORDS == 0:
            yield records
            records = []
    return records


def fence(context: Context, broker: Broker, cause: Cause) -> RecordSteps:
    """Return the records by which the broker leaves its ISRs and is then fenced.

    Without ELR it stays in an ISR of which it is the last member, until an unclean election
    replaces that ISR."""
    check_transition(broker, BrokerState.FENCED)
    change = BrokerChange(cause, remove=broker.id)
    keys = context.index.in_isr_of(broker.id)
    records = yield from leader_and_isr_changes(context, change, keys)
    fenced = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCE, cause=cause
    )
    return [*records, fenced]


def unfence(context: Context, broker: Broker) -> RecordSteps:
    """Return the records that unfence the broker, then those that elect leaders for the leaderless
    partitions of which a replica may lead now."""
    check_transition(broker, BrokerState.UNFENCED)
    cause = Cause.BROKER_UNFENCED
    unfenced = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCE, cause=cause
    )
    change = BrokerChange(cause, add=broker.id)
    keys = context.index.leaderless
    return (yield from leader_and_isr_changes(context, change, keys, [unfenced]))


def enter_controlled_shutdown(context: Context, broker: Broker) -> RecordSteps:
    """Return the records that start the controlled shutdown and move the broker's leaderships
    away."""
    check_transition(broker, BrokerState.CONTROLLED_SHUTDOWN)
    change = BrokerChange(Cause.CONTROLLED_SHUTDOWN, remove=broker.id)
    shutting_down = BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        in_controlled_shutdown=ENTER_CONTROLLED_SHUTDOWN,
        cause=Cause.CONTROLLED_SHUTDOWN,
    )
    keys = context.index.in_isr_of(broker.id)
    return (yield from leader_and_isr_changes(context, change, keys, [shutting_down]))


def replace_incarnation(
    context: Context, broker_id: int, cause: Cause, *, clean: bool
) -> RecordSteps:
    """Return the records by which the old incarnation of a broker leaves every ISR before the new
    one registers.

    If it stopped uncleanly, it also leaves every ELR, because its replicas may have lost records
    that were not flushed (KIP-966). `clean` is False for a broker that was not registered before.
    Without ELR, the last member of an ISR stays in it, even after an unclean stop. No other field
    would record which replica has the data, and the partition could only return through an unclean
    election.
    """
    index = context.index
    in_isr = index.in_isr_of(broker_id)
    keys: Iterable[PartitionKey] = in_isr
    if not clean:
        in_elr = index.in_elr_of(broker_id)
        keys = chain(in_isr, (key for key in in_elr if packed(key) not in in_isr))
    change = BrokerChange(cause, remove=broker_id, stopped_uncleanly=not clean)
    return (yield from leader_and_isr_changes(context, change, keys))

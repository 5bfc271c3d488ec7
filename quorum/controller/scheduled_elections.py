"""Elections that the active controller starts on a schedule, as Kafka's periodic tasks do.

One run writes at most `max_elections_per_run` records. If a run reaches this bound,
`Controller.tick` schedules the next run soon.

An unclean election waits while a hold applies. A hold belongs to a broker that may have been
fenced early, on a hint that its process is dead (`hints.py`). It delays the unclean elections of
each partition whose ISR contains the broker.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.controller.context import Context
from quorate.quorum.controller.elections import Election
from quorate.quorum.controller.partition_change import Target, partition_change
from quorate.quorum.controller.partition_index import PartitionKey, packed
from quorate.quorum.controller.unclean_elections import UncleanElections
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import MetadataRecord


def balance_leaders(context: Context) -> list[MetadataRecord]:
    """Return records that move leadership to the preferred replicas.

    A partition is left out if its preferred replica is not in the ISR or not active. As in KRaft,
    no percentage of imbalance is needed."""
    records: list[MetadataRecord] = []
    for key in sorted(context.index.imbalanced):
        if len(records) == context.settings.max_elections_per_run:
            break
        _, partition = context.located(*key)
        target = Target.of(partition)
        target.election = Election.PREFERRED
        record = partition_change(
            context.image, key, partition, target, context.is_active, Cause.LEADER_IMBALANCE
        )
        if record is not None:
            records.append(record)
    return records


def elect_uncleanly(context: Context, keys: Iterable[PartitionKey]) -> list[MetadataRecord]:
    """Return records that elect a leader for some of the leaderless partitions `keys`.

    A partition is included if its topic's unclean.leader.election.enable is true, no member of its
    ISR has a hold, and one of its replicas is active.
    """
    records: list[MetadataRecord] = []
    unclean = UncleanElections(context)
    for key in keys:
        if len(records) == context.settings.max_elections_per_run:
            break
        topic, partition = context.located(*key)
        if not unclean.allowed(topic.name, partition):
            continue
        target = Target.of(partition)
        target.election = Election.UNCLEAN
        record = partition_change(
            context.image, key, partition, target, context.is_active, Cause.UNCLEAN_ELECTION
        )
        if record is not None:
            records.append(record)
    return records


def leaderless_of(context: Context, broker_id: int) -> list[PartitionKey]:
    """Return the leaderless partitions whose ISR contains the broker.

    `Controller.tick` asks for them when the broker's hold ends."""
    leaderless = context.index.leaderless
    return [key for key in context.index.partitions_in_isr(broker_id) if packed(key) in leaderless]

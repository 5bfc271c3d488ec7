"""Elections that the active controller starts on a schedule, as Kafka's periodic tasks do.

One run writes at most `max_elections_per_run` records. If a run reaches this bound,
`Controller.tick` schedules the next run soon.

An unclean election waits while a hold applies. A hold belongs to a broker that may have been
fenced early, on a hint that its process is dead (`hints.py`). It delays the unclean elections of
each partition of which the broker may have all data: it is in the ISR or the ELR, or it was the
last leader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quorate.quorum.controller.partitions.elections import Election
from quorate.quorum.controller.partitions.eligible_leaders import MinIsrs
from quorate.quorum.controller.partitions.partition_change import Target, partition_change
from quorate.quorum.controller.partitions.unclean_elections import UncleanElections
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.partition_index import PartitionKey, packed
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import MetadataRecord


def balance_leaders(context: Context) -> list[MetadataRecord]:
    """Return records that move leadership to the preferred replicas.

    A partition is left out if its preferred replica is not in the ISR or not active. So are the
    partitions with a preferred leader that leads enough of its partitions
    (`imbalanced_brokers`)."""
    records: list[MetadataRecord] = []
    min_isrs, unclean = MinIsrs(context), UncleanElections(context)
    brokers = imbalanced_brokers(context)
    for key in sorted(context.index.imbalanced):
        if context.located(*key)[1].preferred_leader not in brokers:
            continue
        if len(records) == context.settings.max_elections_per_run:
            break
        topic, partition = context.located(*key)
        target = Target.of(partition, min_isrs.of(topic))
        target.election = Election.PREFERRED
        target.use_last_known = unclean.last_known_may_lead(topic.name)
        record = partition_change(
            context.image, key, partition, target, context.is_active, Cause.LEADER_IMBALANCE
        )
        if record is not None:
            records.append(record)
    return records


def imbalanced_brokers(context: Context) -> frozenset[int]:
    """Return the brokers that are the preferred leaders of partitions and do not lead more than
    leader.imbalance.per.broker.percentage of them (Kafka before 4.0).

    With 0 percent, one such partition is sufficient. Each run looks at the share again, so a run
    that reaches its bound may be the last one although some partitions are left."""
    index = context.index
    away = Counter(context.located(*key)[1].preferred_leader for key in index.imbalanced)
    percentage = context.settings.imbalance_percentage
    return frozenset(
        broker_id
        for broker_id, count in away.items()
        if 100 * count > percentage * index.preferred[broker_id]
    )


def prepare_unclean_elections(context: Context, keys: Iterable[PartitionKey]) -> None:
    """Note those of the leaderless partitions `keys` whose topic may allow an unclean election."""
    unclean = UncleanElections(context)
    for key in keys:
        topic, partition = context.located(*key)
        unclean.prepare(topic.name, key, partition.leader)


def leaderless_of(context: Context, broker_id: int) -> list[PartitionKey]:
    """Return the leaderless partitions whose ISR or ELR contains the broker, or whose last known
    leader is the broker.

    `Controller.tick` asks for them when the broker's hold ends."""
    index = context.index
    keys = {*index.partitions_in_isr(broker_id), *index.partitions_in_elr(broker_id)}
    return [key for key in sorted(keys) if packed(key) in index.leaderless]

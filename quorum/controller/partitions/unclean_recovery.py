"""Unclean elections of the longest log (KIP-966, part 2).

`questions` opens the queries for partitions without a leader, and `elections` returns the records
for those whose queries are complete or overdue. Between the two a clean election may have become
possible; it then takes precedence. `uncleanly_elected` is also the election of an administrator's
request.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from quorate.quorum.controller.partitions.elections import Election
from quorate.quorum.controller.partitions.eligible_leaders import MinIsrs
from quorate.quorum.controller.partitions.partition_change import Target, partition_change
from quorate.quorum.controller.partitions.unclean_elections import Strategy, UncleanElections
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.controller.state.replica_log_queries import Logs, longest
from quorate.quorum.controller.state.result import AskReplicaLogs
from quorate.quorum.metadata.causes import Cause, with_ends
from quorate.quorum.metadata.image import Partition, Topic
from quorate.quorum.metadata.records import NO_LEADER, MetadataRecord, PartitionChangeRecord


def leaderless(context: Context, key: PartitionKey) -> tuple[Topic, Partition] | None:
    """Return the topic and the partition, or None if it does not exist or has a leader."""
    topic = context.image.topics.get(key[0])
    partition = None if topic is None else topic.partitions.get(key[1])
    if topic is None or partition is None or partition.leader != NO_LEADER:
        return None
    return topic, partition


def questions(
    context: Context, keys: Iterable[PartitionKey], *, administrator: bool = False
) -> list[AskReplicaLogs]:
    """Open queries and return the questions to the brokers.

    A partition is left out if it has a leader, no active replica, or an open query. Unless an
    `administrator` asks, it is also left out if its topic does not allow an unclean election now.
    """
    unclean = UncleanElections(context)
    candidates = {}
    for key in keys:
        found = leaderless(context, key)
        if found is None or not (administrator or unclean.allowed(found[0].name, found[1])):
            continue
        active = [each for each in found[1].replicas if context.is_active(each)]
        if active:
            candidates[key] = [context.image.brokers[each] for each in active]
    return context.replica_logs.open(candidates, context.now_ms, administrator=administrator)


def elections(context: Context, keys: Iterable[PartitionKey]) -> list[MetadataRecord]:
    """Close the queries of the partitions and return the records of their elections.

    With the strategy BALANCED there is no election without the answer of the last known leader. The
    periodic search for leaderless partitions then asks again.
    """
    unclean, min_isrs = UncleanElections(context), MinIsrs(context)
    records: list[MetadataRecord] = []
    for key in keys:
        logs = context.replica_logs.close(key, context.now_ms)
        found = leaderless(context, key)
        if logs is None or found is None or not unclean.allowed(found[0].name, found[1]):
            continue
        topic, partition = found
        balanced = unclean.strategy(topic.name) is Strategy.BALANCED
        if balanced and partition.last_known_elr[0] not in logs:
            continue
        record = uncleanly_elected(context, unclean, min_isrs, topic, key, logs)
        if record is not None:
            records.append(record)
    return records


def uncleanly_elected(
    context: Context,
    unclean: UncleanElections,
    min_isrs: MinIsrs,
    topic: Topic,
    key: PartitionKey,
    logs: Logs,
) -> PartitionChangeRecord | None:
    """Return the record that elects a leader for the partition, or None if no replica is active.

    `logs` are the answers by broker id. If they are empty, an active last known leader precedes the
    other replicas, as in Kafka 4.1. The cause of an unclean election carries the end of the new
    leader's log and the largest end that a replica has reported.
    """
    partition = topic.partitions[key[1]]
    found = longest(logs, [each for each in partition.replicas if context.is_active(each)])
    target = Target.of(partition, min_isrs.of(topic))
    target.election = Election.UNCLEAN
    target.use_last_known = found.leader is None or unclean.last_known_may_lead(topic.name)
    target.longest = NO_LEADER if found.leader is None else found.leader
    # A clean election is possible here only because a broker has returned.
    record = partition_change(
        context.image, key, partition, target, context.is_active, Cause.BROKER_UNFENCED
    )
    if record is None or record.cause not in (Cause.UNCLEAN_ELECTION, Cause.LAST_KNOWN_LEADER):
        return record
    elected = logs.get(record.leader)
    cause = with_ends(
        record.cause,
        found.old_end_offset if elected is not None else None,
        None if elected is None else elected.end_offset,
    )
    return replace(record, cause=cause)

"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455).

A reassignment starts here. It completes with the first change of the partition that finds all
remaining replicas in the ISR (`reassignment_completion.py`). That may be the change that starts it.
Until then the assignment contains the original and the new replicas, so that a cancellation can
restore the original ones.

Two rules depart from Kafka. Kafka computes a new target for a running reassignment from the current
replicas; Quorate computes it from the original ones. Kafka sorts the replicas that leave; Quorate
keeps their order. A cancellation thus restores the preferred leader if the target contains none of
the original replicas.
"""

from __future__ import annotations

from quorate.quorum.clipped import clipped
from quorate.quorum.controller.partitions.elections import Election
from quorate.quorum.controller.partitions.eligible_leaders import MinIsrs
from quorate.quorum.controller.partitions.partition_change import (
    Ids,
    Target,
    leader_after,
    partition_change,
)
from quorate.quorum.controller.partitions.unclean_elections import Strategy, UncleanElections
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import STEP_RECORDS, DecisionSteps
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.controller.state.result import (
    RequestRefused,
    Result,
    TooManyRecords,
    check_items,
    check_room,
)
from quorate.quorum.controller.topics.assignments import check_assignment
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Partition, Topic
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def alter_partition_reassignments(
    context: Context, request: AlterPartitionReassignmentsRequest
) -> DecisionSteps:
    """Start, replace or cancel reassignments in one atomic batch, which is prepared in steps.

    An error of one partition does not fail the others. A request that names more than
    MAX_RECORDS_PER_USER_OP partitions fails as a whole with POLICY_VIOLATION.
    """
    records: dict[PartitionKey, MetadataRecord | None] = {}
    responses: list[ReassignableTopicResponse] = []
    resizable = request.allow_replication_factor_change
    decided = 0
    try:
        check_items(sum(len(topic.partitions) for topic in request.topics))
        for number, topic in enumerate(request.topics, 1):
            if not number % STEP_RECORDS:  # also if no topic has partitions
                yield None
            partitions = []
            for asked in topic.partitions:
                error, text = ErrorCode.NONE, None
                try:
                    reassign_one(context, topic.name, asked, records, resizable=resizable)
                except RequestRefused as refused:
                    error, text = refused.error, refused.message
                partitions.append(
                    ReassignablePartitionResponse(
                        partition_index=asked.partition_index, error_code=error, error_message=text
                    )
                )
                decided += 1
                if decided % STEP_RECORDS == 0:
                    yield None
            responses.append(
                ReassignableTopicResponse(name=topic.name, partitions=tuple(partitions))
            )
    except TooManyRecords as refused:
        return Result(
            response=AlterPartitionReassignmentsResponse(
                error_code=refused.error, error_message=refused.message, responses=()
            )
        )
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=resizable, responses=tuple(responses)
    )
    return Result([record for record in records.values() if record is not None], response)


def reassign_one(
    context: Context,
    name: str,
    asked: ReassignablePartition,
    records: dict[PartitionKey, MetadataRecord | None],
    *,
    resizable: bool,
) -> None:
    """Add the change record of one partition to `records`; None if nothing changes.

    `resizable` is True if the request allows another replication factor (KIP-860). Raise
    RequestRefused or TooManyRecords.
    """
    topic, partition = found(context, name, asked.partition_index)
    key = (topic.id, asked.partition_index)
    if key in records:
        raise RequestRefused(
            ErrorCode.INVALID_REQUEST, f"{name}-{asked.partition_index} is named more than once."
        )
    check_room(len(records) + 1)
    unclean = UncleanElections(context)
    if asked.replicas is None:
        target = cancelled(context, unclean, topic, asked, partition)
        cause = Cause.REASSIGNMENT_CANCEL
    else:
        check_assignment(context, asked.replicas, None)
        if not resizable:
            check_same_size(partition, asked.replicas)
        target = started(partition, asked.replicas, MinIsrs(context).of(topic))
        cause = Cause.REASSIGNMENT_START
    target.use_last_known = unclean.last_known_may_lead(topic.name)
    record = partition_change(context.image, key, partition, target, context.is_active, cause)
    unclean.prepare(topic.name, key, leader_after(partition, record))
    records[key] = record


def found(context: Context, name: str, partition_id: int) -> tuple[Topic, Partition]:
    """Return the topic and the partition. Raise RequestRefused if one is unknown."""
    topic = context.image.topic(name)
    if topic is None:
        raise RequestRefused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {clipped(name)}."
        )
    partition = topic.partitions.get(partition_id)
    if partition is None:
        raise RequestRefused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {name}:{partition_id}.",
        )
    return topic, partition


def check_same_size(partition: Partition, replicas: Ids) -> None:
    """Raise RequestRefused if the new replicas change the replication factor (KIP-860). For a
    running reassignment its target's factor counts."""
    before = len(set(partition.replicas) - set(partition.removing))
    if before != len(replicas):
        raise RequestRefused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {before} to {len(replicas)}",
        )


def original_replicas(partition: Partition) -> Ids:
    """Return the replicas without those that a running reassignment adds."""
    adding = frozenset(partition.adding)
    return tuple(each for each in partition.replicas if each not in adding)


def started(partition: Partition, replicas: Ids, min_isr: int | None) -> Target:
    """Return the target state of a new reassignment: the new replicas in their order, then those
    that leave when it completes. `min_isr` is that of `Target`.

    A replica that a replaced reassignment was adding, and that is not wanted any more, leaves
    immediately. If no other replica may have all data, that replica also stays until the new
    reassignment completes.
    """
    original, wanted = original_replicas(partition), frozenset(replicas)
    present = frozenset(original)
    dropped = {each for each in partition.adding if each not in wanted}
    isr = tuple(each for each in partition.isr if each not in dropped)
    leaving = [each for each in original if each not in wanted]
    if dropped.issuperset(partition.isr or partition.elr or partition.last_known_elr):
        isr = partition.isr
        leaving += [each for each in partition.adding if each in dropped]
    target = Target.of(partition, min_isr)
    target.isr = isr
    target.replicas = (*replicas, *leaving)
    target.removing = tuple(sorted(leaving))
    target.adding = tuple(sorted(each for each in replicas if each not in present))
    return target


def cancelled(
    context: Context,
    unclean: UncleanElections,
    topic: Topic,
    asked: ReassignablePartition,
    partition: Partition,
) -> Target:
    """Return the target state that a cancellation restores.

    If the ISR contains only replicas that were being added, the ELR may have others that can lead.
    Without them only an unclean election can restore the partition. With ELR the partition then
    has no leader until the controller has asked the original replicas for the ends of their logs.
    Without ELR an ISR cannot be empty, so the first active original replica leads immediately.
    Raise RequestRefused if an unclean election is not allowed or no reassignment is running.
    """
    if not partition.reassigning:
        raise RequestRefused(
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS.message
        )
    min_isr = MinIsrs(context).of(topic)
    target = Target.of(partition, min_isr)
    target.replicas = original_replicas(partition)
    adding = frozenset(partition.adding)
    target.isr = tuple(each for each in partition.isr if each not in adding)
    target.adding = target.removing = ()
    elr = () if min_isr is None else set(partition.elr) - adding
    if not target.isr and not elr:
        if not may_lose_records(unclean, topic, partition, target):
            raise RequestRefused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{asked.partition_index} "
                "because it would require an unclean leader election.",
            )
        if min_isr is None:
            target.election = Election.UNCLEAN
            if not any(map(context.is_active, target.replicas)):
                target.isr = target.replicas[:1]
    return target


def may_lose_records(
    unclean: UncleanElections, topic: Topic, partition: Partition, target: Target
) -> bool:
    """Return True if the topic allows an unclean election now, and also in the target state. There,
    BALANCED needs a last known leader among the replicas that stay."""
    if not unclean.allowed(topic.name, partition):
        return False
    balanced = unclean.strategy(topic.name) is Strategy.BALANCED
    return not balanced or partition.last_known_elr[0] in target.replicas


def list_partition_reassignments(
    context: Context, request: ListPartitionReassignmentsRequest
) -> Result:
    """Return the running reassignments of the named partitions, or all of them if the request's
    `topics` is null.

    Unknown partitions, and partitions without a running reassignment, are left out.
    """
    if request.topics is None:
        wanted = {
            (context.image.topics[topic_id].name, partition_id)
            for topic_id, partition_id in context.index.reassigning
        }
    else:
        wanted = {
            (each.name, index)
            for each in request.topics
            if (topic := context.image.topic(each.name)) is not None
            for index in each.partition_indexes
            if (asked := topic.partitions.get(index)) is not None and asked.reassigning
        }
    ongoing: dict[str, list[OngoingPartitionReassignment]] = {}
    for name, partition_id in sorted(wanted):
        _, partition = found(context, name, partition_id)
        ongoing.setdefault(name, []).append(
            OngoingPartitionReassignment(
                partition_index=partition_id,
                replicas=partition.replicas,
                adding_replicas=partition.adding,
                removing_replicas=partition.removing,
            )
        )
    topics = tuple(
        OngoingTopicReassignment(name=name, partitions=tuple(partitions))
        for name, partitions in ongoing.items()
    )
    return Result(response=ListPartitionReassignmentsResponse(topics=topics))

"""CreatePartitions: more partitions for existing topics.

A running reassignment does not prevent the request, as in Kafka. Afterwards, producers may send
records with an old key to another partition than before.
"""

from __future__ import annotations

from collections import Counter

from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import DecisionSteps
from quorate.quorum.controller.state.result import (
    ControllerError,
    RequestRefused,
    Result,
    TooManyRecords,
    check_items,
    check_room,
)
from quorate.quorum.controller.topics.assignments import (
    check_active,
    check_assignment,
    new_partitions,
)
from quorate.quorum.controller.topics.placement import Placer
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Topic
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(context: Context, request: CreatePartitionsRequest) -> DecisionSteps:
    """Add partitions to topics in one atomic batch, which is prepared in steps.

    An error of one topic does not fail the others. A request that would write more than
    MAX_RECORDS_PER_USER_OP records fails as a whole with POLICY_VIOLATION. A request with
    `validate_only` gets its response but writes nothing.
    """
    records: list[MetadataRecord] = []
    results: list[CreatePartitionsTopicResult] = []
    times = Counter(topic.name for topic in request.topics)
    twice = RequestRefused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += (failed(name, twice) for name, count in times.items() if count > 1)
    placer = Placer.of(context.image, context.index)
    try:
        check_items(len(request.topics))
        for asked in request.topics:
            if times[asked.name] > 1:
                continue
            try:
                records += yield from grow(context, asked, len(records), placer)
            except RequestRefused as refused:
                results.append(failed(asked.name, refused))
            else:
                results.append(CreatePartitionsTopicResult(name=asked.name, error_code=0))
    except TooManyRecords as refused:
        all_failed = tuple(failed(name, refused) for name in times)
        return Result(response=CreatePartitionsResponse(results=all_failed))
    response = CreatePartitionsResponse(results=tuple(results))
    return Result(() if request.validate_only else records, response)


def grow(
    context: Context, asked: CreatePartitionsTopic, before: int, placer: Placer
) -> IncrementalWork[list[MetadataRecord]]:
    """Return the records of one topic's new partitions, with pauses. `before` is the number of
    records that the same request already writes. Raise RequestRefused or TooManyRecords."""
    topic = context.image.topic(asked.name)
    if topic is None:
        raise RequestRefused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )
    count = len(topic.partitions)
    check_count(asked, count)
    check_room(before + asked.count - count)
    if asked.assignments is not None:
        check_assignment_count(asked, asked.count - count)
    context.charge(asked.count - count)
    replicas = yield from new_assignments(context, topic, asked, count, placer)
    cause = Cause.PARTITION_GROWTH
    return (yield from new_partitions(context, topic.id, count, replicas, cause))


def check_count(asked: CreatePartitionsTopic, count: int) -> None:
    """Raise RequestRefused unless the requested number of partitions is larger than `count`."""
    if asked.count == count:
        raise RequestRefused(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s)."
        )
    if asked.count < count:
        raise RequestRefused(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {asked.name} currently has {count} partition(s); {asked.count} would not "
            "be an increase.",
        )


def check_assignment_count(asked: CreatePartitionsTopic, additional: int) -> None:
    """Raise RequestRefused unless the request has one assignment for each additional partition."""
    assigned = len(asked.assignments or ())
    if assigned != additional:
        raise RequestRefused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{assigned} assignment(s) were specified.",
        )


def new_assignments(
    context: Context, topic: Topic, asked: CreatePartitionsTopic, count: int, placer: Placer
) -> IncrementalWork[list[tuple[int, ...]]]:
    """Return the replicas of each new partition, from the request's assignments or from the placer.

    The replication factor is that of the topic's first partition, without replicas that a
    reassignment removes.
    """
    first = topic.partitions[0]
    additional, factor = asked.count - count, len(set(first.replicas) - set(first.removing))
    if asked.assignments is None:
        return (yield from placer.place(additional, factor, context.random))
    assignments = [
        checked(context, assignment, factor, count + index)
        for index, assignment in enumerate(asked.assignments)
    ]
    placer.count(assignments)
    return assignments


def checked(
    context: Context, assignment: CreatePartitionsAssignment, factor: int, partition_id: int
) -> tuple[int, ...]:
    """Return the replicas of one manual assignment. Raise RequestRefused if it is not valid."""
    check_assignment(context, assignment.broker_ids, factor)
    check_active(context, assignment.broker_ids, partition_id)
    return tuple(assignment.broker_ids)


def failed(name: str, refused: ControllerError) -> CreatePartitionsTopicResult:
    """Return the error response of one topic."""
    return CreatePartitionsTopicResult(
        name=name, error_code=refused.error, error_message=refused.message or None
    )

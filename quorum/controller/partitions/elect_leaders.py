"""ElectLeaders: an administrator elects preferred replicas, or leaders outside the ISR (KIP-460).

A requested unclean election ignores the topic's config and any hold, as in Kafka, because the
administrator has decided to accept data loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from quorate.quorum.clipped import clipped
from quorate.quorum.controller.partitions.elections import Election
from quorate.quorum.controller.partitions.eligible_leaders import MinIsrs
from quorate.quorum.controller.partitions.partition_change import Target, partition_change
from quorate.quorum.controller.partitions.unclean_elections import UncleanElections
from quorate.quorum.controller.partitions.unclean_recovery import leaderless, uncleanly_elected
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import STEP_RECORDS, DecisionSteps
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.controller.state.replica_log_queries import MAX_QUERIES
from quorate.quorum.controller.state.result import (
    RequestRefused,
    Result,
    TooManyRecords,
    check_room,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Partition, Topic
from quorate.quorum.metadata.records import NO_LEADER, MetadataRecord
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from quorate.quorum.protocol.schemas.error_responses import ERROR_RESPONSES


@dataclass(frozen=True, slots=True)
class Kind:
    """One election type of the request: the election, the cause of its records, and the error if no
    replica qualifies."""

    election: Election
    cause: Cause
    unavailable: ErrorCode

    def needed(self, partition: Partition) -> bool:
        """Return True if the partition has no leader (unclean), or not its preferred one
        (preferred)."""
        if self.election is Election.PREFERRED:
            return partition.leader != partition.preferred_leader
        return partition.leader == NO_LEADER


KINDS = {
    0: Kind(Election.PREFERRED, Cause.PREFERRED_ELECTION, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    1: Kind(Election.UNCLEAN, Cause.UNCLEAN_ELECTION, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
}
"""The election types of the request, by Kafka's code."""
UNNEEDED = ErrorCode.ELECTION_NOT_NEEDED


def elect_leaders(context: Context, request: ElectLeadersRequest) -> DecisionSteps:
    """Elect leaders for the named partitions, or for all that need it if the request names none, in
    steps.

    An error of one partition does not fail the others. The whole request fails with INVALID_REQUEST
    for an unknown election type. It fails with POLICY_VIOLATION if it would write more than
    MAX_RECORDS_PER_USER_OP records.
    """
    kind = KINDS.get(request.election_type)
    if kind is None:
        text = f"Unknown election type {request.election_type}"
        return failed(request, ErrorCode.INVALID_REQUEST, text)
    if request.topic_partitions is None:
        asked = all_that_need(context, kind)
    else:
        asked = request.topic_partitions
    records: dict[PartitionKey, MetadataRecord] = {}
    topics: list[ReplicaElectionResult] = []
    decided = 0
    try:
        for topic in asked:
            results = []
            for result in results_of(context, kind, topic, records):
                results.append(result)
                decided += 1
                if decided % STEP_RECORDS == 0:
                    yield None
            topics.append(ReplicaElectionResult(topic=topic.topic, partition_result=tuple(results)))
    except TooManyRecords as refused:
        return failed(request, refused.error, refused.message)
    response = ElectLeadersResponse(replica_election_results=tuple(topics))
    return Result(tuple(records.values()), response)


def all_that_need(context: Context, kind: Kind) -> tuple[TopicPartitions, ...]:
    """Return every topic, each with the partitions that need an election of this kind.

    The index holds these partitions, so the work does not grow with the partitions of the cluster.
    As in Kafka, the response contains only partitions that need an election. A topic without such a
    partition is returned with no partitions.
    """
    image, index = context.image, context.index
    needing: dict[Uuid, list[int]] = {}
    keys = index.imbalanced if kind.election is Election.PREFERRED else index.leaderless
    for topic_id, partition_id in keys:
        needing.setdefault(topic_id, []).append(partition_id)
    return tuple(
        TopicPartitions(
            topic=name, partitions=tuple(sorted(needing.get(image.topic_ids[name], ())))
        )
        for name in image.topic_names()
    )


def results_of(
    context: Context,
    kind: Kind,
    topic: TopicPartitions,
    records: dict[PartitionKey, MetadataRecord],
) -> Iterator[PartitionResult]:
    """Yield the result of each partition of one topic and add its change record to `records`."""
    for partition_id in topic.partitions:
        try:
            elect_one(context, kind, topic.topic, partition_id, records)
        except RequestRefused as refused:
            yield PartitionResult(
                partition_id=partition_id,
                error_code=refused.error,
                error_message=refused.message,
            )
        else:
            yield PartitionResult(partition_id=partition_id)


def elect_one(
    context: Context,
    kind: Kind,
    name: str,
    partition_id: int,
    records: dict[PartitionKey, MetadataRecord],
) -> None:
    """Add the change record of one partition to `records`.

    Raise RequestRefused if the partition is unknown, needs no election, is already in `records`, or
    has no replica that qualifies. Raise TooManyRecords if the batch is full.
    """
    topic = context.image.topic(name)
    if topic is None:
        raise RequestRefused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {clipped(name)}"
        )
    partition = topic.partitions.get(partition_id)
    if partition is None:
        raise RequestRefused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{partition_id}"
        )
    key = (topic.id, partition_id)
    if key in records or not kind.needed(partition):
        raise RequestRefused(UNNEEDED, UNNEEDED.message)
    record = elected(context, kind, topic, key)
    if record is None:
        raise RequestRefused(kind.unavailable, kind.unavailable.message)
    check_room(len(records) + 1)
    records[key] = record


def elected(context: Context, kind: Kind, topic: Topic, key: PartitionKey) -> MetadataRecord | None:
    """Return the record of the election, or None if no replica qualifies. An unclean election uses
    the answers of the live replicas, if the controller has them."""
    min_isrs, unclean = MinIsrs(context), UncleanElections(context)
    if kind.election is Election.UNCLEAN:
        logs = context.replica_logs.known(key, context.now_ms)
        return uncleanly_elected(context, unclean, min_isrs, topic, key, logs)
    partition = topic.partitions[key[1]]
    target = Target.of(partition, min_isrs.of(topic))
    target.election = kind.election
    target.use_last_known = unclean.last_known_may_lead(topic.name)
    return partition_change(context.image, key, partition, target, context.is_active, kind.cause)


def unclean_keys(context: Context, request: object) -> list[PartitionKey]:
    """Return the partitions for which the request wants an unclean election, at most MAX_QUERIES.
    Any other request than such an ElectLeaders has none. Unknown partitions and those with a leader
    are left out."""
    if not isinstance(request, ElectLeadersRequest):
        return []
    kind = KINDS.get(request.election_type)
    if kind is None or kind.election is not Election.UNCLEAN:
        return []
    if request.topic_partitions is None:
        return list(islice(context.index.leaderless, MAX_QUERIES))
    keys = (
        (context.image.topic_id(topic.topic), partition_id)
        for topic in request.topic_partitions
        for partition_id in topic.partitions
    )
    return list(islice((each for each in keys if leaderless(context, each)), MAX_QUERIES))


def failed(request: ElectLeadersRequest, error: ErrorCode, text: str) -> Result:
    """Return a result that fails the whole request with `error`."""
    return Result(response=ERROR_RESPONSES[ApiKey.ELECT_LEADERS](request, error, text))

"""The log directories of brokers as the controller sees them (KIP-858).

A broker reports the directory of a replica that the metadata does not name (AssignReplicasToDirs),
and, in each heartbeat, the directories that have failed. Kafka's ReplicationControlManager has the
same rules (`handleAssignReplicasToDirs`, `handleDirectoriesOffline`).

| event                                      | records                                           |
|--------------------------------------------|---------------------------------------------------|
| a replica is in an online directory        | the directory; leaders where none was online      |
| a replica is in a directory that is not    | the directory; the broker leaves the ISR and      |
| registered, so that it has failed          | leads no more                                     |
| a registered directory has failed          | the broker leaves the ISRs of its partitions and  |
|                                            | leads them no more; then the registration loses   |
|                                            | the directory                                     |

A replica in a directory that is not registered is offline: it may neither lead nor join an ISR,
while other replicas of its broker may (`partition_change.py`, `alter_partition.py`).
"""

from __future__ import annotations

from collections.abc import Collection

from quorate.quorum.controller.brokers.broker_changes import BrokerChange, leader_and_isr_changes
from quorate.quorum.controller.partitions.eligible_leaders import MinIsrs
from quorate.quorum.controller.partitions.partition_change import (
    Target,
    leader_after,
    partition_change,
)
from quorate.quorum.controller.partitions.unclean_elections import UncleanElections
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import (
    STEP_RECORDS,
    DecisionSteps,
    Outcome,
    RecordSteps,
)
from quorate.quorum.controller.state.messages import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.controller.state.result import Result
from quorate.quorum.directory_ids import LOST, is_online, is_reserved
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Broker
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
)
from quorate.quorum.metadata.replica_directories import replica_directory
from quorate.quorum.protocol.errors import ErrorCode


def directory_failures(
    context: Context, broker: Broker, offline: Collection[Uuid]
) -> RecordSteps | None:
    """Return the records that take the directories `offline` of a broker offline, or None if no
    registered directory is among them.

    Directories that are not registered, perhaps because an earlier heartbeat named them, are
    ignored. A broker without another directory keeps its registration; it stops by itself."""
    failed = [each for each in broker.log_dirs if each in offline]
    return taken_offline(context, broker, failed) if failed else None


def taken_offline(context: Context, broker: Broker, failed: Collection[Uuid]) -> RecordSteps:
    """Return the records for the registered directories `failed`, of which there is at least
    one."""
    keys = (
        key
        for key in context.index.in_isr_of(broker.id)
        if replica_directory(context.located(*key)[1], broker.id) in failed
    )
    change = BrokerChange(Cause.DIRECTORY_FAILED, remove=broker.id)
    records = yield from leader_and_isr_changes(context, change, keys)
    left = tuple(each for each in broker.log_dirs if each not in failed)
    if left:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.id,
                broker_epoch=broker.epoch,
                log_dirs=left,
                cause=Cause.DIRECTORY_FAILED,
            )
        )
    return records


def assign_replicas_to_dirs(context: Context, request: AssignReplicasToDirsRequest) -> Outcome:
    """Return the records of the accepted assignments, and one error code for each assignment.

    The whole request fails with BROKER_ID_NOT_REGISTERED or STALE_BROKER_EPOCH. An assignment fails
    with UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER if the broker has no
    replica, and INVALID_REQUEST for a reserved id or a partition that is named twice."""
    broker = context.image.brokers.get(request.broker_id)
    if broker is None:
        return refusal(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if broker.epoch != request.broker_epoch:
        return refusal(ErrorCode.STALE_BROKER_EPOCH)
    return assigned(context, broker, request)


def assigned(
    context: Context, broker: Broker, request: AssignReplicasToDirsRequest
) -> DecisionSteps:
    """Return the records of the request's accepted assignments, in steps."""
    records: list[MetadataRecord] = []
    errors: list[ErrorCode] = []
    unclean, min_isrs = UncleanElections(context), MinIsrs(context)
    seen: dict[PartitionKey, None] = {}
    for number, (topic_id, partition_id, directory) in enumerate(request.assignments, 1):
        key = (topic_id, partition_id)
        error = assignment_error(context, broker.id, key, directory)
        if key in seen:
            error = ErrorCode.INVALID_REQUEST
        seen[key] = None
        errors.append(error)
        if error is ErrorCode.NONE:
            record = assign(context, broker, key, directory, unclean, min_isrs)
            if record is not None:
                records.append(record)
        if number % STEP_RECORDS == 0:
            yield records
            records = []
    response = AssignReplicasToDirsResponse(error=ErrorCode.NONE, errors=tuple(errors))
    return Result(records, response, atomic=False)


def refusal(error: ErrorCode) -> Result:
    """Return a result that answers `error` and changes nothing."""
    return Result(response=AssignReplicasToDirsResponse(error=error))


def assignment_error(
    context: Context, broker_id: int, key: PartitionKey, directory: Uuid
) -> ErrorCode:
    """Return the error of one assignment, or NONE."""
    topic = context.image.topics.get(key[0])
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(key[1])
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    refused = is_reserved(directory) and directory != LOST
    return ErrorCode.INVALID_REQUEST if refused else ErrorCode.NONE


def is_failed(broker: Broker, directory: Uuid) -> bool:
    """Return True if a directory that the broker reports is not online."""
    return not is_online(directory, broker.log_dirs)


def assign(
    context: Context,
    broker: Broker,
    key: PartitionKey,
    directory: Uuid,
    unclean: UncleanElections,
    min_isrs: MinIsrs,
) -> PartitionChangeRecord | None:
    """Return the record that assigns the replica of `broker` to a directory, or None if it is
    there. A leaderless partition may get a leader. If the directory is not registered, the broker
    leaves the ISR."""
    topic, partition = context.located(*key)
    target = Target.of(partition, min_isrs.of(topic))
    target.assigned = (broker.id, directory)
    target.use_last_known = unclean.last_known_may_lead(topic.name)
    cause = Cause.DIRECTORY_ASSIGNED
    if is_failed(broker, directory):
        cause = Cause.DIRECTORY_FAILED
        target.isr = tuple(each for each in partition.isr if each != broker.id)
    record = partition_change(context.image, key, partition, target, context.is_active, cause)
    unclean.prepare(topic.name, key, leader_after(partition, record))
    return record

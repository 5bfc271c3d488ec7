"""AlterPartition: a leader proposes the new ISR of a partition (KIP-497).

The functions read the image in `Context` and return records. The caller appends the records. The
checks are a table in the order of Kafka's validateAlterPartitionData. If a change succeeds, the
response holds the partition's new leader, epochs, ISR and recovery state.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.controller.partitions.eligible_leaders import MinIsrs
from quorate.quorum.controller.partitions.partition_change import (
    Target,
    leader_after,
    partition_change,
)
from quorate.quorum.controller.partitions.unclean_elections import UncleanElections
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrChange,
    IsrChangeResult,
)
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.controller.state.result import Result
from quorate.quorum.directory_ids import is_online
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    MetadataRecord,
    PartitionChangeRecord,
)
from quorate.quorum.metadata.replay import merge
from quorate.quorum.metadata.replica_directories import replica_directory
from quorate.quorum.protocol.errors import ErrorCode

Check = Callable[[Context, int, Partition, IsrChange], bool]


def is_invalid_isr(partition: Partition, isr: tuple[int, ...]) -> bool:
    """Return True if the ISR is empty, repeats a replica, or contains one that is not assigned."""
    return not isr or len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas)


def isr_ids(change: IsrChange) -> tuple[int, ...]:
    """Return the broker ids of the proposed ISR."""
    return tuple(broker_id for broker_id, _ in change.isr)


def is_outdated(partition: Partition, change: IsrChange) -> bool:
    """Return True if the change names an older partition epoch than the image has."""
    return change.partition_epoch < partition.partition_epoch


def is_ineligible(
    context: Context, partition: Partition, broker_id: int, broker_epoch: int
) -> bool:
    """Return True if the broker may not join the ISR of the partition.

    It must be active, and its epoch must be the registered one, because only the incarnation that
    caught up has the data. Epoch -1 skips this comparison. The log directory of its replica must be
    online.
    """
    broker = context.image.brokers.get(broker_id)
    if broker is None or not broker.active or broker_epoch not in (-1, broker.epoch):
        return True
    directory = replica_directory(partition, broker_id)
    return directory not in broker.log_dirs and not is_online(directory, broker.log_dirs)


# Each check gets (context, sender, partition, change). The first one that returns True refuses the
# change with its error. An epoch from the future means that this controller is the stale one, so
# the leader must ask another controller (KAFKA-14154).
CHECKS: tuple[tuple[ErrorCode, Check], ...] = (
    (ErrorCode.NOT_CONTROLLER, lambda _, __, p, c: c.leader_epoch > p.leader_epoch),
    (ErrorCode.NOT_CONTROLLER, lambda _, __, p, c: c.partition_epoch > p.partition_epoch),
    (ErrorCode.FENCED_LEADER_EPOCH, lambda _, __, p, c: c.leader_epoch < p.leader_epoch),
    (ErrorCode.INVALID_REQUEST, lambda _, sender, p, __: sender != p.leader),
    (ErrorCode.INVALID_UPDATE_VERSION, lambda _, __, p, c: is_outdated(p, c)),
    (ErrorCode.INVALID_REQUEST, lambda _, __, p, c: is_invalid_isr(p, isr_ids(c))),
    (ErrorCode.INVALID_REQUEST, lambda _, __, p, c: p.leader not in isr_ids(c)),
    (
        ErrorCode.INVALID_REQUEST,
        lambda _, __, p, c: c.leader_recovery_state == RECOVERING and len(c.isr) > 1,
    ),
    (
        ErrorCode.INVALID_REQUEST,
        lambda _, __, p, c: (
            p.leader_recovery_state == RECOVERED and c.leader_recovery_state == RECOVERING
        ),
    ),
    (
        ErrorCode.INELIGIBLE_REPLICA,
        lambda context, _, p, c: any(is_ineligible(context, p, *member) for member in c.isr),
    ),
)


def alter_partition(context: Context, request: AlterPartitionRequest) -> Result:
    """Return the records of the accepted changes, and the response with one result for each change.

    Each change is accepted or refused separately. A stale broker epoch fails the whole request with
    STALE_BROKER_EPOCH. If the request names a partition twice and the first change has a record,
    the second change gets INVALID_UPDATE_VERSION.
    """
    if not context.has_epoch(request.broker_id, request.broker_epoch):
        return Result(response=AlterPartitionResponse(error=ErrorCode.STALE_BROKER_EPOCH))
    unclean, min_isrs = UncleanElections(context), MinIsrs(context)
    records: dict[PartitionKey, MetadataRecord] = {}
    results = []
    for change in request.changes:
        key = (change.topic_id, change.partition_id)
        if key in records:  # the first change has raised the partition epoch
            error, record = ErrorCode.INVALID_UPDATE_VERSION, None
        else:
            error, record = alter_one(context, unclean, min_isrs, request.broker_id, change)
        if record is not None:
            records[key] = record
        results.append(result_of(context, change, error, record))
    response = AlterPartitionResponse(error=ErrorCode.NONE, results=tuple(results))
    return Result(tuple(records.values()), response, atomic=False)


def alter_one(
    context: Context,
    unclean: UncleanElections,
    min_isrs: MinIsrs,
    sender: int,
    change: IsrChange,
) -> tuple[ErrorCode, PartitionChangeRecord | None]:
    """Return the error code and the record of one change.

    The record is None if the change is refused or changes nothing. The only error
    that comes with a record is NEW_LEADER_ELECTED. The change is then valid, but it moves the
    leadership away from `sender`."""
    topic = context.image.topics.get(change.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID, None
    partition = topic.partitions.get(change.partition_id)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    for error, refused in CHECKS:
        if refused(context, sender, partition, change):
            return error, None
    target = Target.of(partition, elr_min_isr(min_isrs.of(topic), change.min_insync_replicas))
    target.isr = isr_ids(change)
    target.leader_recovery_state = change.leader_recovery_state
    target.use_last_known = unclean.last_known_may_lead(topic.name)
    key = (change.topic_id, change.partition_id)
    record = partition_change(
        context.image, key, partition, target, context.is_active, cause_of(partition, change)
    )
    unclean.prepare(topic.name, key, leader_after(partition, record))
    if record is not None and record.leader not in (NO_LEADER_CHANGE, sender):
        # The change completed a reassignment that moves leadership away from the sender. The record
        # is written and the sender still gets an error, so that it waits for the new metadata.
        return ErrorCode.NEW_LEADER_ELECTED, record
    return ErrorCode.NONE, record


def elr_min_isr(controllers: int | None, leaders: int) -> int | None:
    """Return the min.insync.replicas that decides about the ELR, or None if ELR is off: the lower
    one of the controller's value and the leader's.

    The leader applies the answer before it replays the metadata. While it has not replayed a higher
    value, its high watermark may advance with fewer members of the ISR. A replica that leaves may
    then lack committed records.
    """
    return None if controllers is None else min(controllers, leaders)


def cause_of(partition: Partition, change: IsrChange) -> str:
    """Return the cause of the record: REASSIGNMENT_STEP if a replica that a reassignment adds has
    joined, else the leader's reason.

    The leader cannot distinguish a replica that is being added from one that returned.
    """
    joined = set(isr_ids(change)) - set(partition.isr)
    return Cause.REASSIGNMENT_STEP if joined & set(partition.adding) else change.cause


def result_of(
    context: Context, change: IsrChange, error: ErrorCode, record: PartitionChangeRecord | None
) -> IsrChangeResult:
    """Return the response for one change. Without an error it holds the partition's state after
    `record`."""
    if error is not ErrorCode.NONE:
        return IsrChangeResult(
            topic_id=change.topic_id, partition_id=change.partition_id, error=error
        )
    partition = context.located(change.topic_id, change.partition_id)[1]
    if record is not None:
        partition = merge(partition, record)
    return IsrChangeResult(
        topic_id=change.topic_id,
        partition_id=change.partition_id,
        error=error,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
    )

"""Manual replica assignments and the first record of a partition.

The checks and their order are those of Kafka's ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import STEP_RECORDS
from quorate.quorum.controller.state.result import RequestRefused
from quorate.quorum.controller.topics.directories import default_directories
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import MetadataRecord, PartitionRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import CreatableReplicaAssignment


def check_assignment(
    context: Context, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Raise RequestRefused if one partition's assignment is empty, names an unknown broker, or
    names one twice.

    If `replication_factor` is not None, the assignment must have that many replicas.
    """
    if not replicas:
        raise refused("The manual partition assignment includes an empty replica list.")
    previous: int | None = None
    for broker_id in sorted(replicas):
        if broker_id not in context.image.brokers:
            raise refused(
                f"The manual partition assignment includes broker {broker_id}, but no such broker "
                "is registered."
            )
        if broker_id == previous:
            raise refused(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise refused(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )


def check_active(context: Context, replicas: Sequence[int], partition_id: int) -> None:
    """Raise RequestRefused unless one of the replicas is active."""
    if not any(map(context.is_active, replicas)):
        raise refused(
            "All brokers specified in the manual partition assignment for partition "
            f"{partition_id} are fenced or in controlled shutdown."
        )


def manual_topic(
    context: Context, assignments: Sequence[CreatableReplicaAssignment]
) -> list[tuple[int, ...]]:
    """Return the replicas of each partition of a new topic, in order of partition id. Raise
    RequestRefused if the assignments are not valid."""
    by_partition: dict[int, tuple[int, ...]] = {}
    replication_factor: int | None = None
    for assignment in assignments:
        partition_id = assignment.partition_index
        if partition_id in by_partition:
            raise refused(
                f"Found multiple manual partition assignments for partition {partition_id}"
            )
        check_assignment(context, assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
        check_active(context, assignment.broker_ids, partition_id)
        by_partition[partition_id] = tuple(assignment.broker_ids)
    if sorted(by_partition) != list(range(len(by_partition))):
        raise refused("partitions should be a consecutive 0-based integer sequence")
    return [by_partition[partition_id] for partition_id in range(len(by_partition))]


def refused(message: str) -> RequestRefused:
    """Return a RequestRefused with INVALID_REPLICA_ASSIGNMENT."""
    return RequestRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def new_partitions(
    context: Context,
    topic_id: Uuid,
    first: int,
    assignments: Sequence[tuple[int, ...]],
    cause: Cause,
) -> IncrementalWork[list[MetadataRecord]]:
    """Return the records of new partitions from id `first` on, one for each of `assignments`. Pause
    after each STEP_RECORDS. Raise RequestRefused if a partition has no active replica."""
    records: list[MetadataRecord] = []
    for index, replicas in enumerate(assignments):
        if index % STEP_RECORDS == 0 and index:
            yield
        records.append(new_partition(context, topic_id, first + index, replicas, cause))
    return records


def new_partition(
    context: Context, topic_id: Uuid, partition_id: int, replicas: tuple[int, ...], cause: Cause
) -> PartitionRecord:
    """Return the record of a new partition. Its ISR consists of the active replicas, and the first
    of them leads.

    Raise RequestRefused if no replica is active.
    """
    isr = tuple(replica for replica in replicas if context.is_active(replica))
    if not isr:  # all replicas are shutting down: use the placer's error
        raise RequestRefused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {len(replicas)} time(s): All brokers are currently "
            "fenced or in controlled shutdown.",
        )
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=default_directories(context.image, replicas),
        cause=cause,
    )

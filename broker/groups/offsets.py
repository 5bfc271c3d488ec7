"""The committed offsets of the groups in one shard, and the rules of OffsetCommit.

The offsets are those appended to the log. A response that depends on one of them must wait until
the record is committed. Deletions are tombstones. Only `replay` changes the offsets.
"""

from __future__ import annotations

from quorate.broker.groups.group import Group
from quorate.broker.groups.records import (
    NO_TIMESTAMP,
    GroupRecord,
    OffsetKey,
    OffsetValue,
)
from quorate.broker.groups.state import State
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
)

MAX_TIMESTAMP = 2**63 - 1
"""The greatest int64, which bounds the expiry time of an offset."""
Place = tuple[str, int]
"""Topic and partition."""


class Offsets:
    """The last appended offset of each partition, by group. It belongs to one shard.

    Invariant: a group without offsets has no entry."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Place, OffsetValue]] = {}

    def of(self, group_id: str) -> dict[Place, OffsetValue]:
        """Return the offsets of a group, empty if it has none. The caller must not change the
        mapping.
        """
        return self._groups.get(group_id, {})

    @property
    def count(self) -> int:
        """Return the number of offsets of all groups."""
        return sum(map(len, self._groups.values()))

    def replay(self, key: OffsetKey, value: OffsetValue | None) -> None:
        """Apply one record. Without a value, remove the offset."""
        place = (key.topic, key.partition)
        if value is not None:
            self._groups.setdefault(key.group, {})[place] = value
            return
        held = self._groups.get(key.group)
        if held is not None:
            held.pop(place, None)
            if not held:
                del self._groups[key.group]


def offset_tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    """Return the record that deletes the offset of one partition."""
    return GroupRecord(OffsetKey(group=group_id, topic=topic, partition=partition), None)


def check_commit(group: Group, request: OffsetCommitRequest) -> None:
    """Raise KafkaError if the sender may not commit now.

    A member must name the present generation. A request without a generation (a negative one) may
    commit if the group is empty. Tools and consumers that assign partitions themselves send such
    requests. The error codes are UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, and
    REBALANCE_IN_PROGRESS in the sync phase. In the join phase members may still commit."""
    generation = request.generation_id_or_member_epoch
    member_id, instance_id = request.member_id, request.group_instance_id
    if generation < 0 and group.state is State.EMPTY:
        return
    if generation < 0 and not member_id and instance_id is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.check_member(member_id, instance_id)
    if generation != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if group.state is State.COMPLETING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def offset_record(
    request: OffsetCommitRequest,
    topic: str,
    partition: OffsetCommitRequestPartition,
    wall_ms: int,
) -> GroupRecord:
    """Return the record of a committed offset. `wall_ms` is the commit time, in ms since 1970.

    The record has an expiry time only if the request names a retention time (before v5)."""
    retention_ms = min(request.retention_time_ms, MAX_TIMESTAMP - wall_ms)
    return GroupRecord(
        OffsetKey(group=request.group_id, topic=topic, partition=partition.partition_index),
        OffsetValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
            commit_timestamp=wall_ms,
            expire_timestamp=NO_TIMESTAMP if retention_ms < 0 else wall_ms + retention_ms,
        ),
    )

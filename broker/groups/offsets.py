"""The committed offsets of the groups in one shard, with the rules of OffsetCommit and of
expiration.

The offsets are those appended to the log. A response that depends on one of them must wait until
the record is committed. Deletions are tombstones. Only `replay` changes the offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quorate.broker.groups.group import Group
from quorate.broker.groups.records import (
    NO_TIMESTAMP,
    GroupRecord,
    OffsetKey,
    OffsetValue,
)
from quorate.broker.groups.state import State
from quorate.broker.groups.subscription import CONSUMER_PROTOCOL
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
)

MAX_TIMESTAMP = 2**63 - 1
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

    def groups(self) -> Iterator[str]:
        """Iterate over the ids of the groups that have offsets."""
        return iter(self._groups)

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

    def tombstones(
        self, group_id: str, wanted: Callable[[str, int], bool] = lambda topic, partition: True
    ) -> list[GroupRecord]:
        """Return tombstones for those offsets of a group for which `wanted(topic, partition)` is
        true.
        """
        return [
            tombstone(group_id, topic, partition)
            for topic, partition in self.of(group_id)
            if wanted(topic, partition)
        ]

    def of_topics(self, topics: Iterable[str]) -> list[GroupRecord]:
        """Return tombstones for all offsets of these topics, which were deleted."""
        gone = frozenset(topics)
        return [
            record
            for group_id in self._groups
            for record in self.tombstones(group_id, lambda topic, partition: topic in gone)
        ]

    def expired(self, group: Group, wall_ms: int, retention_ms: int) -> list[GroupRecord]:
        """Return tombstones for the expired offsets of a group (KIP-211).

        Offsets of topics that the group consumes do not expire.
        """
        since = expiry_base(group)
        if since is None:
            return []
        return [
            tombstone(group.id, *place)
            for place, value in self.of(group.id).items()
            if not group.subscribes_to(place[0])
            and has_expired(value, since, wall_ms, retention_ms)
        ]


def tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    """Return the record that deletes the offset of one partition."""
    return GroupRecord(OffsetKey(group=group_id, topic=topic, partition=partition), None)


def expiry_base(group: Group) -> Callable[[OffsetValue], int] | None:
    """Return a function from an offset to the start of its retention, in wall-clock ms (KIP-211).

    The retention starts at the commit if the group is simple or no longer subscribes to the topic.
    It starts when the group became empty if it has no members. Return None if no offset can expire
    now."""
    if group.protocol_type is None:
        return lambda value: value.commit_timestamp
    if group.state is State.EMPTY:
        ended_ms = group.state_timestamp_ms
        return lambda value: value.commit_timestamp if ended_ms == NO_TIMESTAMP else ended_ms
    consumers = group.protocol_type == CONSUMER_PROTOCOL and group.topics is not None
    if consumers and group.state is State.STABLE:
        return lambda value: value.commit_timestamp
    return None


def has_expired(
    value: OffsetValue, since: Callable[[OffsetValue], int], wall_ms: int, retention_ms: int
) -> bool:
    """Return True if the retention of the offset has ended."""
    if value.expire_timestamp != NO_TIMESTAMP:
        return wall_ms >= value.expire_timestamp
    return wall_ms - since(value) >= retention_ms


def check_commit(group: Group, request: OffsetCommitRequest) -> None:
    """Raise KafkaError if the sender may not commit now.

    A member must name the present generation. A request without a generation may commit if the
    group is empty; tools and consumers that assign partitions themselves send such requests. The
    error codes are UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION and
    REBALANCE_IN_PROGRESS."""
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


def committed(
    request: OffsetCommitRequest,
    topic: str,
    partition: OffsetCommitRequestPartition,
    wall_ms: int,
) -> GroupRecord:
    """Return the record of a committed offset. `wall_ms` is the commit time, in ms since 1970."""
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

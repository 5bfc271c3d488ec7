"""The offsets that groups committed: commit, fetch, delete, expire.

What is here is what is appended; whoever is told of it waits until it is committed. Deletions are
tombstones. `replay` is the one way to change it.
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
from quorate.quorum.rpc.kafka.errors import ErrorCode, KafkaError
from quorate.quorum.rpc.kafka.schemas.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
)

MAX_TIMESTAMP = 2**63 - 1
Place = tuple[str, int]
"""Topic and partition."""


class Offsets:
    def __init__(self) -> None:
        self._groups: dict[str, dict[Place, OffsetValue]] = {}

    def of(self, group_id: str) -> dict[Place, OffsetValue]:
        return self._groups.get(group_id, {})

    def groups(self) -> Iterator[str]:
        return iter(self._groups)

    def replay(self, key: OffsetKey, value: OffsetValue | None) -> None:
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
        return [
            tombstone(group_id, topic, partition)
            for topic, partition in self.of(group_id)
            if wanted(topic, partition)
        ]

    def of_topics(self, topics: Iterable[str]) -> list[GroupRecord]:
        """Tombstones for all that any group committed for these topics: they were deleted."""
        gone = frozenset(topics)
        return [
            record
            for group_id in self._groups
            for record in self.tombstones(group_id, lambda topic, partition: topic in gone)
        ]

    def expired(self, group: Group, wall_ms: int, retention_ms: int) -> list[GroupRecord]:
        since = expiry_base(group)
        if since is None:
            return []
        return [
            tombstone(group.id, *place)
            for place, value in self.of(group.id).items()
            if not group.subscribes_to(place[0]) and is_over(value, since, wall_ms, retention_ms)
        ]


def tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    return GroupRecord(OffsetKey(group=group_id, topic=topic, partition=partition), None)


def expiry_base(group: Group) -> Callable[[OffsetValue], int] | None:
    """From when on an offset's retention counts: from the end of its group, or from its commit when
    the group is simple or has given up the topic (KIP-211). None: it does not count yet."""
    if group.protocol_type is None:
        return lambda value: value.commit_timestamp
    if group.state is State.EMPTY:
        ended_ms = group.state_timestamp_ms
        return lambda value: value.commit_timestamp if ended_ms == NO_TIMESTAMP else ended_ms
    consumers = group.protocol_type == CONSUMER_PROTOCOL and group.topics is not None
    if consumers and group.state is State.STABLE:
        return lambda value: value.commit_timestamp
    return None


def is_over(
    value: OffsetValue, since: Callable[[OffsetValue], int], wall_ms: int, retention_ms: int
) -> bool:
    if value.expire_timestamp != NO_TIMESTAMP:
        return wall_ms >= value.expire_timestamp
    return wall_ms - since(value) >= retention_ms


def check_commit(group: Group, request: OffsetCommitRequest) -> None:
    """Who may commit now: members of this generation; without a generation, whoever finds the
    group empty (tools, and consumers that assign themselves)."""
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

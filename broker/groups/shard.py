"""The coordinator of the groups in one partition of __consumer_offsets, and of their offsets.

Answers are return values, KafkaError, or messages sent through a `Reply`. Records go to the
journal, and an appended record is applied immediately. A response that depends on a record must
wait until the record is committed. `broker/kafka/group_requests.py` waits for responses that are
return values, and `Rebalance.answer` waits for all others.

When this broker loses leadership, the whole shard is dropped. The next leader rebuilds it from the
log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from quorate.broker.groups import descriptions
from quorate.broker.groups.group import Group, cancel, group_of
from quorate.broker.groups.joining import Join, Joining
from quorate.broker.groups.journal import Journal
from quorate.broker.groups.membership import Membership, leave_result
from quorate.broker.groups.offsets import Offsets, check_commit, committed, tombstone
from quorate.broker.groups.rebalance import NO_MEMBER, Rebalance, client_error
from quorate.broker.groups.records import (
    GroupKey,
    GroupRecord,
    GroupValue,
    OffsetKey,
    OffsetValue,
)
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.groups.state import State
from quorate.broker.groups.subscription import CONSUMER_PROTOCOL
from quorate.quorum.ids import Uuid
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas import group_offsets as schemas
from quorate.quorum.protocol.schemas.group_admin import DescribedGroup
from quorate.quorum.protocol.schemas.group_membership import (
    HeartbeatRequest,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
)
from quorate.quorum.seams import Clock

GROUP_ID_NOT_FOUND_SINCE = 9
"""The first OffsetCommit version that may answer GROUP_ID_NOT_FOUND. Before: ILLEGAL_GENERATION."""
MAX_UNRECORDED_GROUPS = 10_000
"""Maximum number of groups in one shard that have nothing in the log, only pending member ids."""
RECORDS_PER_BATCH = 500
"""Batch size for tombstones that need not be written atomically."""


class Shard:
    """The groups and offsets of one partition, owned by the broker's event loop.

    It receives each record of the log through `replay`, then `loaded`, and only then requests.
    After an unexpected exception the coordinator discards it.

    Invariant: `offsets` equals the result of replaying the log. `groups` may also hold state that
    is not in the log, such as pending member ids and a rebalance in progress."""

    def __init__(
        self,
        settings: GroupSettings,
        clock: Clock,
        journal: Journal,
        new_id: Callable[[str], str],
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        # Oldest first; may include groups that are recorded by now.
        self._unrecorded: dict[str, None] = {}
        self._settings = settings
        self._clock = clock
        self._journal = journal
        self._rebalance = Rebalance(settings, clock, journal)
        self._joining = Joining(settings, journal, self._rebalance, new_id)
        self._membership = Membership(self._rebalance)

    # --- lifecycle

    def replay(self, record: GroupRecord) -> None:
        """Apply one record, either from the log while loading or just after it was appended."""
        key, value = record
        if isinstance(key, OffsetKey):
            assert value is None or isinstance(value, OffsetValue)
            if value is not None:
                self.groups.setdefault(key.group, Group(key.group))
            self.offsets.replay(key, value)
        elif value is None:
            group = self.groups.pop(key.group, None)
            if group is not None:
                self._end(group)
        else:
            assert isinstance(key, GroupKey)
            assert isinstance(value, GroupValue)
            self.groups[key.group] = group_of(key, value)

    def loaded(self) -> None:
        """Start all sessions after the last record was replayed.

        A group with more members than `group.max.size` now allows rebalances (KIP-389).
        """
        for group in self.groups.values():
            for member in group.members.values():
                self._rebalance.start_session(group, member)
            if len(group.members) > self._settings.max_size:
                self._rebalance.prepare(group, "group.max.size was lowered")

    def close(self) -> None:
        """End all groups because leadership is lost. Waiting clients get NOT_COORDINATOR."""
        for group in self.groups.values():
            self._end(group)
        self.groups.clear()

    def _end(self, group: Group) -> None:
        group.enter(State.DEAD, self._clock.wall_ms())
        for timer in (group.join_timer, group.sync_timer, *group.pending.values()):
            cancel(timer)
        for member in group.members.values():
            cancel(member.session)
            for reply in (member.join, member.sync):
                if reply is not None:
                    reply.fail(ErrorCode.NOT_COORDINATOR)
            member.join = member.sync = None

    # --- members

    def join(self, join: Join) -> None:
        """Handle JoinGroup, and answer through `join.reply`.

        Create an unknown group if the client has no member id; otherwise answer UNKNOWN_MEMBER_ID.
        """
        request = join.request
        group = self.groups.get(request.group_id)
        if group is None and request.member_id != NO_MEMBER:
            join.reply.fail(ErrorCode.UNKNOWN_MEMBER_ID)
            return
        if group is None:
            group = self.groups[request.group_id] = Group(request.group_id)
        self._joining.join(group, join)
        if self._is_vacant(group):
            del self.groups[group.id]
        elif self._is_unrecorded(group):
            self._bound_unrecorded(group.id)

    def sync(self, request: SyncGroupRequest, reply: Reply) -> None:
        """Handle SyncGroup. Raise KafkaError if it is not valid (see `Membership.sync`)."""
        self._membership.sync(self._occupied(request.group_id), request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Handle Heartbeat and return its error code. Raise KafkaError if the member is unknown or
        fenced.
        """
        return self._membership.heartbeat(self._occupied(request.group_id), request)

    def leave(self, group_id: str, leaving: Sequence[MemberIdentity]) -> list[MemberResponse]:
        """Remove the named members and return one response for each. An unknown group has no
        members.
        """
        group = self.groups.get(group_id)
        if group is None:
            return [leave_result(each, ErrorCode.UNKNOWN_MEMBER_ID) for each in leaving]
        return self._membership.leave(group, leaving)

    def _occupied(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None or group.state is State.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    def _is_vacant(self, group: Group) -> bool:
        """Return True if nothing of the group is in the log and no client has an id in it."""
        return self._is_unrecorded(group) and not group.pending

    def _is_unrecorded(self, group: Group) -> bool:
        """Return True if nothing of the group is in the log."""
        unused = group.state is State.EMPTY and not group.generation
        return unused and not self.offsets.of(group.id)

    def _bound_unrecorded(self, group_id: str) -> None:
        """Drop the oldest unrecorded groups while there are more than MAX_UNRECORDED_GROUPS."""
        self._unrecorded.pop(group_id, None)
        self._unrecorded[group_id] = None
        while len(self._unrecorded) > MAX_UNRECORDED_GROUPS:
            oldest = next(iter(self._unrecorded))
            del self._unrecorded[oldest]
            group = self.groups.get(oldest)
            if group is not None and self._is_unrecorded(group):
                del self.groups[oldest]
                self._end(group)

    # --- offsets

    def commit(
        self,
        request: schemas.OffsetCommitRequest,
        version: int,
        refuse: Callable[[schemas.OffsetCommitRequestTopic, int], ErrorCode],
    ) -> schemas.OffsetCommitResponse:
        """Append the offsets that may be committed as one batch, and return the result of each
        partition.

        `refuse` returns the error of a partition that does not exist, or NONE. Raise KafkaError if
        the whole request fails: see `check_commit`, and the errors of the journal.
        """
        group = self._group_to_commit(request, version)
        check_commit(group, request)
        member = group.members.get(request.member_id)
        if member is not None and group.state in (State.STABLE, State.PREPARING_REBALANCE):
            self._rebalance.start_session(group, member)
        wall_ms = self._clock.wall_ms()
        records: list[GroupRecord] = []
        topics = []
        for topic in request.topics:
            answers = []
            for each in topic.partitions:
                error = refuse(topic, each.partition_index)
                metadata = each.committed_metadata or ""
                if not error and len(metadata) > self._settings.offset_metadata_max_bytes:
                    error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                if not error:
                    records.append(committed(request, topic.name, each, wall_ms))
                answers.append(
                    schemas.OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                )
            topics.append(
                schemas.OffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=tuple(answers)
                )
            )
        self._append(records)
        return schemas.OffsetCommitResponse(topics=tuple(topics))

    def _group_to_commit(self, request: schemas.OffsetCommitRequest, version: int) -> Group:
        group = self.groups.get(request.group_id)
        if group is not None:
            return group
        if request.generation_id_or_member_epoch >= 0:
            since = version >= GROUP_ID_NOT_FOUND_SINCE
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND if since else ErrorCode.ILLEGAL_GENERATION
            )
        return Group(request.group_id)  # `replay` creates the group if a record is appended.

    def fetch(self, wanted: schemas.OffsetFetchRequestGroup) -> schemas.OffsetFetchResponseGroup:
        """Return the offsets of the partitions that `wanted` names."""
        held = self.offsets.of(wanted.group_id)
        places: dict[tuple[str, Uuid], list[int]] = {}
        for topic in wanted.topics or ():
            places.setdefault((topic.name, topic.topic_id), []).extend(topic.partition_indexes)
        return schemas.OffsetFetchResponseGroup(
            group_id=wanted.group_id,
            topics=tuple(
                schemas.OffsetFetchResponseTopics(
                    name=name,
                    topic_id=topic_id,
                    partitions=tuple(fetched(each, held.get((name, each))) for each in partitions),
                )
                for (name, topic_id), partitions in places.items()
            ),
        )

    def delete_offsets(
        self,
        request: schemas.OffsetDeleteRequest,
        refuse: Callable[[str, int], ErrorCode],
    ) -> schemas.OffsetDeleteResponse:
        """Append tombstones for the named partitions, and return the result of each (KIP-496).

        A topic that the group consumes gets GROUP_SUBSCRIBED_TO_TOPIC. Raise KafkaError for the
        whole request: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP for an active group that uses another
        protocol than the consumer protocol, or the error of the append.
        """
        group = self.groups.get(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not State.EMPTY and group.protocol_type != CONSUMER_PROTOCOL:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        held = self.offsets.of(group.id)
        records = []
        topics = []
        for topic in request.topics:
            subscribed = group.subscribes_to(topic.name)
            errors = {
                each.partition_index: refuse(topic.name, each.partition_index)
                or (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE)
                for each in topic.partitions
            }
            records += [
                tombstone(group.id, topic.name, each)
                for each, error in errors.items()
                if not error and (topic.name, each) in held
            ]
            topics.append(
                schemas.OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        schemas.OffsetDeleteResponsePartition(
                            partition_index=each, error_code=error
                        )
                        for each, error in errors.items()
                    ),
                )
            )
        self._append(records)
        return schemas.OffsetDeleteResponse(
            error_code=ErrorCode.NONE, throttle_time_ms=0, topics=tuple(topics)
        )

    # --- groups as a whole

    def describe(self, group_id: str) -> DescribedGroup:
        """Return the description of the group, with GROUP_ID_NOT_FOUND if it does not exist."""
        group = self.groups.get(group_id)
        return descriptions.unknown(group_id) if group is None else descriptions.describe(group)

    def delete(self, group_id: str) -> None:
        """Append the tombstones of an empty group and its offsets.

        Raise KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or the error of the append.
        """
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not State.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        self._append([*self.offsets.tombstones(group_id), group_tombstone(group_id)])

    # --- expiration

    def topics_deleted(self, topics: Iterable[str]) -> None:
        """Append tombstones for the offsets of deleted topics."""
        self._append_in_batches(self.offsets.of_topics(topics))

    def expire(self) -> None:
        """Append tombstones for expired offsets, and for empty groups that have none left
        (KIP-211).
        """
        wall_ms = self._clock.wall_ms()
        records: list[GroupRecord] = []
        for group in self.groups.values():
            expired = self.offsets.expired(group, wall_ms, self._settings.offsets_retention_ms)
            records += expired
            left_over = len(self.offsets.of(group.id)) - len(expired)
            if not left_over and group.state is State.EMPTY and not group.pending:
                records.append(group_tombstone(group.id))
        self._append_in_batches(records)

    # --- the journal

    def _append_in_batches(self, records: Sequence[GroupRecord]) -> None:
        """Append and apply the records. If a batch fails, the rest is due again at the next
        scan.
        """
        for start in range(0, len(records), RECORDS_PER_BATCH):
            batch = records[start : start + RECORDS_PER_BATCH]
            if self._journal.append(batch):
                return
            for each in batch:
                self.replay(each)

    def _append(self, records: Sequence[GroupRecord]) -> None:
        if not records:
            return
        error = self._journal.append(records)
        if error:
            raise KafkaError(client_error(error))
        for each in records:
            self.replay(each)


def group_tombstone(group_id: str) -> GroupRecord:
    """Return the tombstone of a group."""
    return GroupRecord(GroupKey(group=group_id), None)


def fetched(partition: int, value: OffsetValue | None) -> schemas.OffsetFetchResponsePartitions:
    """Return the OffsetFetch result of one partition, with offset -1 if no offset is committed."""
    if value is None:
        return schemas.OffsetFetchResponsePartitions(
            partition_index=partition, committed_offset=-1, metadata=""
        )
    return schemas.OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )

"""The coordinator of the groups in one partition of __consumer_offsets, and of their offsets.

Answers are return values, KafkaError, or messages sent through a `Reply`. Records go to the
journal, and an appended record is applied immediately. A response that depends on a record must
wait until the record is committed. `broker/kafka/groups/group_requests.py` waits for responses that
are return values, and `Rebalance.answer` waits for messages through a `Reply`.

When this broker loses leadership, the whole shard is dropped. The next leader rebuilds it from the
log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from quorate.broker.groups import descriptions
from quorate.broker.groups.client_errors import client_error
from quorate.broker.groups.expiration import Expiration
from quorate.broker.groups.group import Group
from quorate.broker.groups.group_record import group_of, group_tombstone
from quorate.broker.groups.joining import Join, Joining
from quorate.broker.groups.journal import Journal
from quorate.broker.groups.member import cancel
from quorate.broker.groups.member_memory import MemberMemory
from quorate.broker.groups.membership import Membership
from quorate.broker.groups.offset_requests import OffsetRequests
from quorate.broker.groups.offsets import Offsets, offset_tombstone
from quorate.broker.groups.rebalance import Rebalance
from quorate.broker.groups.records import (
    GroupKey,
    GroupRecord,
    GroupValue,
    OffsetKey,
    OffsetValue,
)
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.responses import NO_MEMBER, leave_result
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.groups.state import State
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.group_admin import DescribedGroup
from quorate.quorum.protocol.schemas.group_membership import (
    HeartbeatRequest,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
)
from quorate.quorum.seams import Clock

MEMBER_ENTRIES = 4
"""The weight of a member whose session is started or ended, in entries of a step (`Pace`)."""
GROUP_END_ENTRIES = 3
"""The weight of a group that is ended, in entries of a step (`Pace`)."""
MAX_DELETED_BYTES = 256 << 10
"""Maximum size of the batch that deletes offsets of a group. It is below the smallest batch that a
sensible max.message.bytes allows, and takes a few milliseconds to append."""
TOMBSTONE_BYTES = 300
"""The size of an offset's tombstone without the group id: the longest topic name, and headers."""
MAX_UNRECORDED_GROUPS = 10_000
"""Maximum number of groups in one shard that have nothing in the log, only pending member ids."""


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
        memory: MemberMemory | None = None,
    ) -> None:
        """Create an empty shard. `memory` counts the members of all shards of the broker."""
        self._memory = memory or MemberMemory()
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
        self.offset_requests = OffsetRequests(
            settings, clock, self.groups, self.offsets, self._rebalance, self._append
        )
        self.expiration = Expiration(
            settings, clock, self.groups, self.offsets, self._append_if_possible
        )

    # --- lifecycle

    def replay(self, record: GroupRecord) -> None:
        """Apply one record, either from the log while loading or just after it was appended."""
        key, value = record
        if isinstance(key, OffsetKey):
            assert value is None or isinstance(value, OffsetValue)
            if value is not None:
                self._group(key.group)
            self.offsets.replay(key, value)
            if value is not None:
                self.expiration.committed(key)
        elif value is None:
            group = self.groups.pop(key.group, None)
            if group is not None:
                self._end(group)
        else:
            assert isinstance(key, GroupKey)
            assert isinstance(value, GroupValue)
            earlier = self.groups.get(key.group)
            if earlier is not None:
                earlier.release()
            self.groups[key.group] = group_of(key, value, self._memory)

    def _group(self, group_id: str) -> Group:
        """Return the group, which is created if it does not exist."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, memory=self._memory)
        return group

    def loaded(self) -> IncrementalWork[None]:
        """Start all sessions, in steps, after the last record was replayed.

        A group with more members than `group.max.size` now allows rebalances (KIP-389). No request
        may reach the shard before the steps have ended.
        """
        pace = Pace()
        for group in list(self.groups.values()):
            for member in group.members.values():
                self._rebalance.start_session(group, member)
                if pace.is_time(MEMBER_ENTRIES):
                    yield
            if len(group.members) > self._settings.max_size:
                self._rebalance.prepare(group, "group.max.size was lowered")
            if pace.is_time():
                yield

    def close(self) -> IncrementalWork[None]:
        """End all groups, in steps, because leadership is lost. Waiting clients get
        NOT_COORDINATOR. No request may reach the shard any more.
        """
        pace = Pace()
        while self.groups:
            _, group = self.groups.popitem()
            self._end(group)
            if pace.is_time(GROUP_END_ENTRIES + MEMBER_ENTRIES * len(group.members)):
                yield

    def release(self) -> None:
        """Count no memory any more for the groups, because the shard could not be closed."""
        for group in self.groups.values():
            group.release()

    def _end(self, group: Group) -> None:
        group.release()
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
        If the join is refused, the new group is removed. If more than MAX_UNRECORDED_GROUPS groups
        have only pending member ids, the oldest is removed.
        """
        request = join.request
        group = self.groups.get(request.group_id)
        if group is None and request.member_id != NO_MEMBER:
            join.reply.fail(ErrorCode.UNKNOWN_MEMBER_ID)
            return
        group = self._group(request.group_id)
        self._joining.join(group, join)
        if self._is_vacant(group):
            del self.groups[group.id]
        elif self._is_unrecorded(group):
            self._bound_unrecorded(group.id)

    def sync(self, request: SyncGroupRequest, reply: Reply) -> None:
        """Handle SyncGroup, and answer through `reply`.

        Raise KafkaError if the request is not valid: UNKNOWN_MEMBER_ID if the group does not exist
        or is empty, and the errors of `Membership.sync`. `reply` is then not used.
        """
        self._membership.sync(self._occupied(request.group_id), request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Handle Heartbeat and return its error code (see `Membership.heartbeat`).

        Raise KafkaError if the request is not valid: UNKNOWN_MEMBER_ID if the group does not exist
        or is empty, and the errors of `Membership.heartbeat`.
        """
        return self._membership.heartbeat(self._occupied(request.group_id), request)

    def leave(self, group_id: str, leaving: Sequence[MemberIdentity]) -> list[MemberResponse]:
        """Remove the named members and return one response for each, in the same order.

        A member that the group does not have, or any member of an unknown group, gets
        UNKNOWN_MEMBER_ID.
        """
        group = self.groups.get(group_id)
        if group is None:
            return [leave_result(each, ErrorCode.UNKNOWN_MEMBER_ID) for each in leaving]
        return self._membership.leave(group, leaving)

    def evict(self, group_id: str) -> None:
        """Remove all members of a group, because the groups of this broker hold too much memory.

        Requests that wait get UNKNOWN_MEMBER_ID. The group stays, with its offsets. Do nothing if
        it does not exist."""
        group = self.groups.get(group_id)
        if group is not None:
            for member_id in list(group.members):
                self._rebalance.remove(group, member_id)
            self._rebalance.after_removal(group)

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

    # --- groups as a whole

    def describe(self, group_id: str) -> DescribedGroup:
        """Return the description of the group, with GROUP_ID_NOT_FOUND if it does not exist."""
        group = self.groups.get(group_id)
        return descriptions.unknown(group_id) if group is None else descriptions.describe(group)

    def delete(self, group_id: str) -> bool:
        """Delete an empty group and its offsets, or the first of its offsets if the tombstones of
        all exceed MAX_DELETED_BYTES. Return True if the group is deleted, False if the caller must
        call again.

        The tombstones are appended as one batch, and applied. A group that gets a member between
        two calls keeps the offsets that are left. Raise KafkaError: GROUP_ID_NOT_FOUND,
        NON_EMPTY_GROUP, or the error of the append (`client_errors.py`).
        """
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not State.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        most = max(1, MAX_DELETED_BYTES // (TOMBSTONE_BYTES + len(group_id.encode())))
        places = list(islice(self.offsets.of(group_id), most + 1))
        is_last = len(places) <= most
        tombstones = [offset_tombstone(group_id, *place) for place in places[:most]]
        self._append([*tombstones, group_tombstone(group_id)] if is_last else tombstones)
        return is_last

    # --- the journal

    def _append(self, records: Sequence[GroupRecord]) -> None:
        """Append the records as one batch, and apply them. Raise KafkaError if that fails."""
        error = self._append_if_possible(records)
        if error:
            raise KafkaError(client_error(error))

    def _append_if_possible(self, records: Sequence[GroupRecord]) -> ErrorCode:
        """Append the records as one batch, and apply them. Return the error of the append."""
        if not records:
            return ErrorCode.NONE
        error = self._journal.append(records)
        if not error:
            for each in records:
                self.replay(each)
        return error

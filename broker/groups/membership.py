"""The rules of SyncGroup, Heartbeat and LeaveGroup, for members that have joined."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.broker.groups.group import Group
from quorate.broker.groups.rebalance import Rebalance
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.responses import NO_MEMBER, leave_result, synced
from quorate.broker.groups.state import State
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.group_membership import (
    HeartbeatRequest,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
)


class Membership:
    """Handles the requests of joined members. It holds no state except the groups that callers pass
    in."""

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def sync(self, group: Group, request: SyncGroupRequest, reply: Reply) -> None:
        """Send the member its assignment, or keep the reply until the leader provides the
        assignments. An assignment is sent when its record is committed.

        In the sync phase, the leader's request records the assignments and answers all waiting
        members. The group must not be empty. Of two waiting requests of a member, the earlier one
        gets REBALANCE_IN_PROGRESS.

        Raise KafkaError with one of these codes if the request is not valid: UNKNOWN_MEMBER_ID,
        FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL, and in the join phase
        REBALANCE_IN_PROGRESS.
        """
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        for said, known in (
            (request.protocol_type, group.protocol_type),
            (request.protocol_name, group.protocol),
        ):
            if said is not None and said != known:
                raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is State.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.pop(member.id, None)
        if group.state is State.STABLE:
            self._rebalance.answer(group, member, reply, synced(group, member))
            return
        if member.sync is not None:  # The member sent a second SyncGroup; the first one fails.
            member.sync.fail(ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync = reply
        if group.leader == member.id:
            chosen = {each.member_id: bytes(each.assignment) for each in request.assignments}
            self._rebalance.assign(group, chosen)

    def heartbeat(self, group: Group, request: HeartbeatRequest) -> ErrorCode:
        """Restart the member's session timer.

        Return REBALANCE_IN_PROGRESS if the member has to rejoin, otherwise NONE. Raise KafkaError
        (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION) if the heartbeat is not valid;
        the session timer then continues to run.
        """
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        self._rebalance.start_session(group, member)
        if group.state is State.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, group: Group, leaving: Sequence[MemberIdentity]) -> list[MemberResponse]:
        """Remove the named members and return one response for each of them, in the same order.

        If at least one member or pending member id was removed, the remaining members rebalance. In
        the join phase, that phase ends if it waited only for the removed ones
        (`Rebalance.maybe_complete_join`).
        """
        answers = []
        for each in leaving:
            try:
                self._remove(group, each)
                error = ErrorCode.NONE
            except KafkaError as refusal:
                error = refusal.code
            answers.append(leave_result(each, error))
        if any(not each.error_code for each in answers):
            if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
                self._rebalance.prepare(group, "members left")
            else:
                self._rebalance.maybe_complete_join(group)
        return answers

    def _remove(self, group: Group, leaving: MemberIdentity) -> None:
        """Remove one member or one pending member id. Raise KafkaError if the group does not have
        it.

        An administrator removes a static member by its instance id alone, without a member id.
        """
        if leaving.member_id == NO_MEMBER:
            member_id = group.static.get(leaving.group_instance_id or "")
            if member_id is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            self._rebalance.remove(group, member_id)
        elif leaving.member_id in group.pending:
            group.forget_pending(leaving.member_id)
        else:
            member = group.check_member(leaving.member_id, leaving.group_instance_id)
            self._rebalance.remove(group, member.id)

"""SyncGroup, Heartbeat and LeaveGroup of members that have joined."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.broker.groups.group import Group
from quorate.broker.groups.rebalance import NO_MEMBER, Rebalance, synced
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.state import State
from quorate.quorum.rpc.kafka.errors import ErrorCode, KafkaError
from quorate.quorum.rpc.kafka.schemas.group_membership import (
    HeartbeatRequest,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
)


class Membership:
    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def sync(self, group: Group, request: SyncGroupRequest, reply: Reply) -> None:
        """Raises KafkaError."""
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
            self._rebalance.answer(reply, synced(group, member))
            return
        if member.sync is not None:  # asked twice
            member.sync.fail(ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync = reply
        if group.leader == member.id:
            chosen = {each.member_id: bytes(each.assignment) for each in request.assignments}
            self._rebalance.assign(group, chosen)

    def heartbeat(self, group: Group, request: HeartbeatRequest) -> ErrorCode:
        """Raises KafkaError when it does not count as a sign of life."""
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        self._rebalance.start_session(group, member)
        if group.state is State.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, group: Group, leaving: Sequence[MemberIdentity]) -> list[MemberResponse]:
        answers = []
        for each in leaving:
            try:
                self._remove(group, each)
                error = ErrorCode.NONE
            except KafkaError as refusal:
                error = refusal.code
            answers.append(left(each, error))
        if any(not each.error_code for each in answers):
            if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
                self._rebalance.prepare(group, "members left")
            else:
                self._rebalance.maybe_complete_join(group)
        return answers

    def _remove(self, group: Group, leaving: MemberIdentity) -> None:
        """An administrator names static members by their instance id alone."""
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


def left(leaving: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=leaving.member_id,
        group_instance_id=leaving.group_instance_id,
        error_code=error,
    )

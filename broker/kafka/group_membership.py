"""JoinGroup (11), SyncGroup (14), Heartbeat (12) and LeaveGroup (13)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.joining import Join
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.responses import join_refused
from quorate.broker.groups.shard_context import ShardContext
from quorate.broker.kafka.group_requests import ask, check_group_id
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.group_membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.server import RequestContext

MEMBER_ID_REQUIRED_SINCE = 4
NULL_PROTOCOL_SINCE = 7
SKIP_ASSIGNMENT_SINCE = 9
PROTOCOL_NAMED_SINCE = 5  # of SyncGroup (KIP-559)
SEVERAL_LEAVE_SINCE = 3


@dataclass(frozen=True, slots=True)
class GroupMembershipHandler:
    coordinator: GroupCoordinator

    def join(self, context: RequestContext, request: JoinGroupRequest) -> None:
        def send(response: Message) -> None:
            assert isinstance(response, JoinGroupResponse)
            if context.version < NULL_PROTOCOL_SINCE and response.protocol_name is None:
                response = dataclasses.replace(response, protocol_name="")
            context.respond(response)

        reply = Reply(send, lambda error: join_refused(error, request.member_id))
        settings = self.coordinator.settings
        shortest, longest = settings.min_session_timeout_ms, settings.max_session_timeout_ms
        try:
            check_group_id(request.group_id)
            if not shortest <= request.session_timeout_ms <= longest:
                raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        except KafkaError as error:
            reply.fail(error.code)
            return
        rebalance_timeout_ms = request.rebalance_timeout_ms
        join = Join(
            request=request,
            reply=reply,
            client_id=context.client_id or "",
            client_host=f"/{context.peer.host}",
            rebalance_timeout_ms=request.session_timeout_ms
            if rebalance_timeout_ms < 0
            else rebalance_timeout_ms,
            member_id_required=context.version >= MEMBER_ID_REQUIRED_SINCE,
            can_skip_assignment=context.version >= SKIP_ASSIGNMENT_SINCE,
        )
        self.coordinator.find(
            request.group_id, lambda shard_context: shard_context.shard.join(join), reply.fail
        )

    def sync(self, context: RequestContext, request: SyncGroupRequest) -> None:
        reply = Reply(
            context.respond, lambda error: SyncGroupResponse(error_code=error, assignment=b"")
        )

        def found(shard_context: ShardContext) -> None:
            try:
                shard_context.shard.sync(request, reply)
            except KafkaError as error:
                reply.fail(error.code)

        check_group_id(request.group_id)
        nameless = not request.protocol_type or not request.protocol_name
        if context.version >= PROTOCOL_NAMED_SINCE and nameless:
            reply.fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        self.coordinator.find(request.group_id, found, reply.fail)

    def heartbeat(self, context: RequestContext, request: HeartbeatRequest) -> None:
        check_group_id(request.group_id)
        ask(
            self.coordinator,
            request.group_id,
            lambda shard: HeartbeatResponse(error_code=shard.heartbeat(request)),
            context.respond,
            lambda error: HeartbeatResponse(error_code=error),
        )

    def leave(self, context: RequestContext, request: LeaveGroupRequest) -> None:
        check_group_id(request.group_id)
        several = context.version >= SEVERAL_LEAVE_SINCE
        leaving = request.members if several else (MemberIdentity(member_id=request.member_id),)

        def answer(response: LeaveGroupResponse) -> None:
            if not several and response.members:
                response = LeaveGroupResponse(error_code=response.members[0].error_code)
            context.respond(response)

        ask(
            self.coordinator,
            request.group_id,
            lambda shard: LeaveGroupResponse(
                error_code=ErrorCode.NONE, members=tuple(shard.leave(request.group_id, leaving))
            ),
            answer,
            lambda error: LeaveGroupResponse(error_code=error),
        )

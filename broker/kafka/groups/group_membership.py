"""Handles JoinGroup (API key 11), SyncGroup (14), Heartbeat (12) and LeaveGroup (13)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.joining import Join
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.responses import join_refused
from quorate.broker.groups.shard_context import ShardContext
from quorate.broker.kafka.groups.group_requests import ask, check_group_id
from quorate.broker.kafka.shared.result_collector import ResultCollector
from quorate.quorum.incremental_work import IncrementalWork, begun
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
"""The first JoinGroup version that may be answered with MEMBER_ID_REQUIRED (KIP-394)."""
NULL_PROTOCOL_SINCE = 7
"""The first JoinGroup version whose response may have no protocol name (KIP-559)."""
SKIP_ASSIGNMENT_SINCE = 9
"""The first JoinGroup version with `skip_assignment` (KIP-814)."""
PROTOCOL_NAMED_SINCE = 5
"""The first SyncGroup version that must name the protocol (KIP-559)."""
SEVERAL_LEAVE_SINCE = 3
"""The first LeaveGroup version that names several members (KIP-345)."""
MEMBERS_PER_PART = 250
"""Maximum number of members that leave in one step."""


@dataclass(frozen=True, slots=True)
class GroupMembershipHandler:
    """Handles the requests of group members on one broker, on the broker's event loop."""

    coordinator: GroupCoordinator

    def join(self, context: RequestContext, request: JoinGroupRequest) -> None:
        """Pass the request to the group's shard, which responds when the join phase ends, or
        earlier with an error (`Joining.join`).

        Respond with INVALID_GROUP_ID or INVALID_SESSION_TIMEOUT if the request is invalid, and with
        an error of `GroupCoordinator.find` if there is no shard. A request without a rebalance
        timeout gets its session timeout as rebalance timeout.
        """

        def send(response: Message) -> None:
            assert isinstance(response, JoinGroupResponse)
            if context.version < NULL_PROTOCOL_SINCE and response.protocol_name is None:
                response = dataclasses.replace(response, protocol_name="")
            context.respond(response)

        member_id = request.member_id  # A reply must not keep the request and its frame.
        reply = Reply(send, lambda error: join_refused(error, member_id))
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
        """Pass the request to the group's shard, which responds when the assignment is committed in
        the log, or earlier with an error (`Membership.sync`).

        Respond with INCONSISTENT_GROUP_PROTOCOL if a request since v5 lacks the protocol. Raise
        KafkaError (INVALID_GROUP_ID) if the group id is empty.
        """
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
        """Restart the member's session, and respond with the result of `Membership.heartbeat`.

        Like all responses through `ask`, this one waits until everything that the shard has
        appended is committed. A heartbeat to a shard that is still loading succeeds, because the
        load starts all sessions anew, and because some clients give up after another answer. Raise
        KafkaError (INVALID_GROUP_ID) if the group id is empty.
        """

        def refusal(error: ErrorCode) -> HeartbeatResponse:
            loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error)

        check_group_id(request.group_id)
        ask(
            self.coordinator,
            request.group_id,
            lambda shard: HeartbeatResponse(error_code=shard.heartbeat(request)),
            context.respond,
            refusal,
        )

    def leave(
        self, context: RequestContext, request: LeaveGroupRequest
    ) -> IncrementalWork[None] | None:
        """Remove the named members, and respond with the result of each.

        A request with more than MEMBERS_PER_PART members is handled in parts. If a part fails as a
        whole, the response has only its error, although members of other parts may have left.
        Return the steps of such a request, or None. Raise KafkaError (INVALID_GROUP_ID) if the
        group id is empty.
        """
        check_group_id(request.group_id)
        several = context.version >= SEVERAL_LEAVE_SINCE
        leaving = request.members if several else (MemberIdentity(member_id=request.member_id),)
        if len(leaving) > MEMBERS_PER_PART:
            return begun(self._leave_in_parts(context, request.group_id, leaving))

        def answer(response: LeaveGroupResponse) -> None:
            if not several and response.members:
                response = LeaveGroupResponse(error_code=response.members[0].error_code)
            context.respond(response)

        self._leave(request.group_id, leaving, answer)
        return None

    def _leave_in_parts(
        self, context: RequestContext, group_id: str, leaving: Sequence[MemberIdentity]
    ) -> IncrementalWork[None]:
        """Handle each part like a request of its own: other requests may come in between."""

        def respond(answers: Sequence[LeaveGroupResponse]) -> None:
            failed = next((each for each in answers if each.error_code), None)
            members = tuple(chain.from_iterable(each.members for each in answers))
            response = failed or LeaveGroupResponse(error_code=ErrorCode.NONE, members=members)
            context.run(context.respond_steps(response))

        starts = range(0, len(leaving), MEMBERS_PER_PART)
        collector = ResultCollector(len(starts), context.callback(respond))
        for index, start in enumerate(starts):
            if index:
                yield
            part = leaving[start : start + MEMBERS_PER_PART]
            self._leave(group_id, part, collector.slot(index))

    def _leave(
        self,
        group_id: str,
        leaving: Sequence[MemberIdentity],
        done: Callable[[LeaveGroupResponse], None],
    ) -> None:
        ask(
            self.coordinator,
            group_id,
            lambda shard: LeaveGroupResponse(
                error_code=ErrorCode.NONE, members=tuple(shard.leave(group_id, leaving))
            ),
            done,
            lambda error: LeaveGroupResponse(error_code=error),
        )

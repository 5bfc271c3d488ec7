"""How a group gets from one generation to the next, and what ends a member's place in it.

    join phase   PreparingRebalance: everybody joins anew, until all have or the timeout ends it
    sync phase   CompletingRebalance: the leader sends the assignments, the others wait for theirs

Timeouts: a member's session; the join phase (the members' greatest rebalance timeout; those who did
not rejoin are out, unless static); the sync phase (those who did not ask for their assignment are
out). Order and outcomes are those of Kafka's classic protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from quorate.broker.groups.group import Group, Member, cancel
from quorate.broker.groups.journal import Journal
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.groups.state import State
from quorate.quorum.clipped import MAX_QUOTED_CHARS, shown
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.schemas.group_membership import JoinGroupResponse, SyncGroupResponse
from quorate.quorum.rpc.kafka.wire import Message
from quorate.quorum.seams import Clock

MAX_PENDING_MEMBERS = 1000
"""Of one group: members that got an id and have not joined with it yet."""
NO_MEMBER = ""

logger = logging.getLogger("quorate.broker.groups")


class Rebalance:
    def __init__(self, settings: GroupSettings, clock: Clock, journal: Journal) -> None:
        self._settings = settings
        self._clock = clock
        self._journal = journal

    def answer(self, reply: Reply, response: Message) -> None:
        """Not before all that it may rest on is committed."""
        self._journal.when_committed(
            lambda error: reply.fail(error) if error else reply.send(response)
        )

    # --- sessions

    def start_session(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        """Anew: until the next sign of life."""
        cancel(member.session)
        member.session = self._clock.call_later(
            member.session_timeout_ms if timeout_ms is None else timeout_ms,
            partial(self._session_expired, group, member.id),
        )

    def await_join(self, group: Group, member_id: str, timeout_ms: int) -> None:
        """Keep the id that a client got until it joins with it, at most `timeout_ms`.

        If MAX_PENDING_MEMBERS clients have not joined yet, the oldest id is dropped. Its client
        gets UNKNOWN_MEMBER_ID and asks for another."""
        while len(group.pending) >= MAX_PENDING_MEMBERS:
            group.forget_pending(next(iter(group.pending)))
        group.pending[member_id] = self._clock.call_later(
            timeout_ms, partial(self._pending_expired, group, member_id)
        )

    def _session_expired(self, group: Group, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None and not member.keeps_session:
            logger.info("group %s: the session of %s expired", shown(group.id), shown(member_id))
            self.remove(group, member_id)
            self.after_removal(group)

    def _pending_expired(self, group: Group, member_id: str) -> None:
        group.forget_pending(member_id)
        if group.state is State.PREPARING_REBALANCE and group.all_joined:
            self.complete_join(group)

    def remove(self, group: Group, member_id: str) -> None:
        """A join that waits is told to start over, should its sender still be alive."""
        member = group.members[member_id]
        if member.join is not None:
            member.join.send(refused(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member_id)

    def after_removal(self, group: Group) -> None:
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.prepare(group, "a member is gone")
        elif group.state is State.PREPARING_REBALANCE and group.all_joined:
            self.complete_join(group)

    # --- the join phase

    def prepare_or_complete(self, group: Group, reason: str) -> None:
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.maybe_complete_join(group)

    def prepare(self, group: Group, reason: str) -> None:
        logger.info(
            "group %s rebalances after generation %d: %s",
            shown(group.id),
            group.generation,
            shown(reason, 3 * MAX_QUOTED_CHARS),
        )
        if group.state is State.COMPLETING_REBALANCE:
            self.fail_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        cancel(group.sync_timer)
        initial = group.state is State.EMPTY
        group.enter(State.PREPARING_REBALANCE, self._clock.wall_ms())
        if initial:
            delay_ms = self._settings.initial_rebalance_delay_ms
            left_ms = max(group.rebalance_timeout_ms - delay_ms, 0) if delay_ms else 0
            self._wait_for_more(group, delay_ms, left_ms)
        elif group.all_joined:
            self.complete_join(group)
        else:
            self._await_joins(group)

    def maybe_complete_join(self, group: Group) -> None:
        """The first rebalance of a group is ended by its delay alone."""
        preparing = group.state is State.PREPARING_REBALANCE
        if preparing and group.previous is not State.EMPTY and group.all_joined:
            self.complete_join(group)

    def _await_joins(self, group: Group) -> None:
        cancel(group.join_timer)
        group.join_timer = self._clock.call_later(
            group.rebalance_timeout_ms, partial(self.complete_join, group)
        )

    def _wait_for_more(self, group: Group, delay_ms: int, left_ms: int) -> None:
        """Members of a new group tend to come together: each new one extends the wait."""

        def waited() -> None:
            if not group.new_member_added or not left_ms:
                self.complete_join(group)
                return
            group.new_member_added = False
            next_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
            self._wait_for_more(group, next_ms, max(left_ms - delay_ms, 0))

        cancel(group.join_timer)
        group.join_timer = self._clock.call_later(delay_ms, waited)

    def complete_join(self, group: Group) -> None:
        cancel(group.join_timer)
        for member in list(group.members.values()):
            if member.join is None and member.instance_id is None:
                group.remove(member.id)
        if not group.elect_joined_leader() and group.members:
            self._await_joins(group)  # static members alone: their sessions decide
            return
        group.next_generation(self._clock.wall_ms())
        if group.state is State.EMPTY:
            error = self._journal.append([group.record({})])
            if error:  # its last generation is found again, without members that live
                logger.warning("group %s: empty, and not recorded: %s", shown(group.id), error.name)
            return
        for member in group.members.values():
            self.start_session(group, member)
            member.new = False
            group.pending_sync[member.id] = None
            if member.join is not None:
                reply, member.join = member.join, None
                reply.send(group.joined(member))
        generation = group.generation
        cancel(group.sync_timer)
        group.sync_timer = self._clock.call_later(
            group.rebalance_timeout_ms, lambda: self._sync_expired(group, generation)
        )

    # --- the sync phase

    def assign(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """From the leader: everybody who waits gets theirs once it is committed."""
        chosen = {each: assignments.get(each, b"") for each in group.members}
        error = self._journal.append([group.record(chosen)])
        if error:
            self.fail_syncs(group, told(error))
            self.prepare(group, f"the assignment was not recorded: {error.name}")
            return
        group.enter(State.STABLE, self._clock.wall_ms())
        for member in group.members.values():
            member.assignment = chosen[member.id]
            if member.sync is not None:
                reply, member.sync = member.sync, None
                self.answer(reply, synced(group, member))
                self.start_session(group, member)

    def fail_syncs(self, group: Group, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.sync is not None:
                reply, member.sync = member.sync, None
                reply.fail(error)
                self.start_session(group, member)

    def _sync_expired(self, group: Group, generation: int) -> None:
        if generation == group.generation and group.pending_sync:
            for member_id in list(group.pending_sync):
                group.remove(member_id)
            self.prepare(group, "members did not ask for their assignment")


def synced(group: Group, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )


def refused(error: ErrorCode, member_id: str = NO_MEMBER) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, leader=NO_MEMBER, member_id=member_id, members=())


TOLD = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def told(error: ErrorCode) -> ErrorCode:
    """What a member hears when the coordinator could not append."""
    return TOLD.get(error, error)

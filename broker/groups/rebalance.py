"""The phases of a rebalance, and the timeouts that remove members.

    join phase   PreparingRebalance: all members rejoin, until all have or the timeout ends it
    sync phase   CompletingRebalance: the leader sends the assignments, the others wait for them

Four timeouts remove members:

- The session timeout of a member. Heartbeats, commits and responses to the member restart it. It
  does not remove a member whose request waits, because this member cannot heartbeat. For a new
  member it is NEW_MEMBER_JOIN_TIMEOUT_MS until its first join phase ends, even if its request
  waits.
- The timeout of a pending member id: the session timeout that the client asked for.
- The timeout of the join phase, the greatest rebalance timeout of the members. Members that did not
  rejoin are removed, except static members.
- The timeout of the sync phase, of the same length. Members that did not send SyncGroup are
  removed.

The order of events and their outcomes are those of Kafka's classic protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from quorate.broker.groups.client_errors import client_error
from quorate.broker.groups.group import Group
from quorate.broker.groups.group_record import group_record
from quorate.broker.groups.journal import Journal
from quorate.broker.groups.member import Member, cancel
from quorate.broker.groups.member_memory import MAX_GROUP_BYTES
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.responses import join_refused, joined, synced
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.groups.state import State
from quorate.quorum.clipped import MAX_QUOTED_CHARS, shown
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Clock

MAX_PENDING_MEMBERS = 1000
"""Maximum number of pending member ids in one group.

A pending id was returned to a client with MEMBER_ID_REQUIRED, and the client has not joined with it
yet.
"""

MIN_REPEATED_WAIT_MS = 1000
"""The least time after which a join phase that no member has joined looks at its members again.
Their rebalance timeout may be 0."""

logger = logging.getLogger("quorate.broker.groups")


class Rebalance:
    """Moves groups through the phases of a rebalance and owns the timers of their members.

    It belongs to one shard and runs on the broker's event loop."""

    def __init__(self, settings: GroupSettings, clock: Clock, journal: Journal) -> None:
        self._settings = settings
        self._clock = clock
        self._journal = journal

    def answer(self, group: Group, member: Member, reply: Reply, response: Message) -> None:
        """Send the response to a member when everything appended so far is committed, and restart
        its session then.

        The session does not run before, because the member cannot heartbeat while it waits. If
        leadership is lost first, send NOT_COORDINATOR instead.
        """

        def committed(error: ErrorCode) -> None:
            if error:
                reply.fail(error)
                return
            reply.send(response)
            if group.members.get(member.id) is member:
                self.start_session(group, member)

        cancel(member.session)
        self._journal.when_committed(committed)

    # --- sessions

    def start_session(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        """Restart the member's session timer, with its session timeout or with `timeout_ms`."""
        cancel(member.session)
        member.session = self._clock.call_later(
            member.session_timeout_ms if timeout_ms is None else timeout_ms,
            partial(self._session_expired, group, member.id),
        )

    def await_join(self, group: Group, member_id: str, timeout_ms: int) -> None:
        """Keep a pending member id until its client joins with it, for at most `timeout_ms`.

        If MAX_PENDING_MEMBERS clients have not joined yet, the oldest id is dropped. Its client
        gets UNKNOWN_MEMBER_ID and asks for another id.
        """
        while len(group.pending) >= MAX_PENDING_MEMBERS:
            group.forget_pending(next(iter(group.pending)))
        group.pending[member_id] = self._clock.call_later(
            timeout_ms, partial(self._pending_expired, group, member_id)
        )

    def _session_expired(self, group: Group, member_id: str) -> None:
        """Remove a member that sent no heartbeat in time, and rebalance the others."""
        member = group.members.get(member_id)
        if member is not None and not member.keeps_session:
            logger.info(
                "group %s: member %s is removed, because its session expired",
                shown(group.id),
                shown(member_id),
            )
            self.remove(group, member_id)
            self.after_removal(group)

    def _pending_expired(self, group: Group, member_id: str) -> None:
        """Remove a pending member id, and complete the join phase if it waited only for this id."""
        group.forget_pending(member_id)
        if group.state is State.PREPARING_REBALANCE and group.all_joined:
            self.complete_join(group)

    def remove(self, group: Group, member_id: str) -> None:
        """Remove a member. Answer its waiting JoinGroup or SyncGroup with UNKNOWN_MEMBER_ID.

        The client then joins again as a new member, if it is still alive.
        """
        member = group.members[member_id]
        if member.join is not None:
            member.join.send(join_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        if member.sync is not None:
            member.sync.fail(ErrorCode.UNKNOWN_MEMBER_ID)
        group.remove(member_id)

    def after_removal(self, group: Group) -> None:
        """Rebalance the remaining members, or complete the join phase if it waited only for the
        member.
        """
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.prepare(group, "a member was removed")
        elif group.state is State.PREPARING_REBALANCE and group.all_joined:
            self.complete_join(group)

    # --- the join phase

    def prepare_or_complete(self, group: Group, reason: str) -> None:
        """Start a rebalance if the state allows it. Otherwise complete the join phase if all have
        joined.
        """
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.maybe_complete_join(group)

    def prepare(self, group: Group, reason: str) -> None:
        """Enter the join phase, and complete it immediately if all have joined already.

        The state must allow it (`Group.can_rebalance`). `reason` appears in the node's log. Members
        that wait for an assignment get REBALANCE_IN_PROGRESS. A group that was empty waits for
        `group.initial.rebalance.delay.ms` (KIP-134).
        """
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
        """Complete the join phase if the group is in it and all members have joined.

        In the first rebalance of a group a join does not end the join phase, because more members
        may come. The delay ends it (KIP-134).
        """
        preparing = group.state is State.PREPARING_REBALANCE
        if preparing and group.previous is not State.EMPTY and group.all_joined:
            self.complete_join(group)

    def _await_joins(self, group: Group, at_least_ms: int = 0) -> None:
        cancel(group.join_timer)
        group.join_timer = self._clock.call_later(
            max(group.rebalance_timeout_ms, at_least_ms), partial(self.complete_join, group)
        )

    def _wait_for_more(self, group: Group, delay_ms: int, left_ms: int) -> None:
        """Wait `delay_ms` for more members of a new group, and again if one joined (KIP-134).

        `left_ms` bounds the sum of the further waits.
        """

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
        """End the join phase: remove the members that did not rejoin, and start the next
        generation.

        Members that rejoined get their JoinGroup responses. Static members stay although they did
        not rejoin, until their session expires (KIP-345). If only such members are left, the join
        phase continues. If no members are left, the group becomes Empty. If the record of this
        cannot be appended, the failure is only logged.
        """
        cancel(group.join_timer)
        for member in list(group.members.values()):
            if member.join is None and member.instance_id is None:
                group.remove(member.id)
        if not group.elect_joined_leader() and group.members:
            # Only static members that did not rejoin; their sessions decide.
            self._await_joins(group, at_least_ms=MIN_REPEATED_WAIT_MS)
            return
        group.next_generation(self._clock.wall_ms())
        if group.state is State.EMPTY:
            error = self._journal.append([group_record(group, {})])
            # The next coordinator loads the last recorded generation; its members' sessions then
            # expire.
            if error:
                logger.warning(
                    "group %s is empty, and its record could not be appended: %s; the next "
                    "coordinator loads its last generation",
                    shown(group.id),
                    error.name,
                )
            return
        for member in group.members.values():
            self.start_session(group, member)
            member.new = False
            group.pending_sync[member.id] = None
            if member.join is not None:
                reply, member.join = member.join, None
                reply.send(joined(group, member))
        generation = group.generation
        cancel(group.sync_timer)
        group.sync_timer = self._clock.call_later(
            group.rebalance_timeout_ms, lambda: self._sync_expired(group, generation)
        )

    # --- the sync phase

    def assign(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """Record the assignments that the leader sent, by member id, and enter Stable.

        A member without an assignment gets an empty one. A member that waits in SyncGroup gets its
        assignment when the record is committed. If the record cannot be appended, or if the group
        would hold more than MAX_GROUP_BYTES, the waiting members get an error and the group
        rebalances.
        """
        chosen = {each: assignments.get(each, b"") for each in group.members}
        error = ErrorCode.MESSAGE_TOO_LARGE
        replaced_bytes = sum(len(member.assignment) for member in group.members.values())
        chosen_bytes = sum(map(len, chosen.values()))
        if group.held_bytes - replaced_bytes + chosen_bytes <= MAX_GROUP_BYTES:
            error = self._journal.append([group_record(group, chosen)])
        if error:
            self.fail_syncs(group, client_error(error))
            self.prepare(group, f"the assignment was not recorded: {error.name}")
            return
        group.enter(State.STABLE, self._clock.wall_ms())
        for member in group.members.values():
            group.set_assignment(member, chosen[member.id])
            if member.sync is not None:
                reply, member.sync = member.sync, None
                self.answer(group, member, reply, synced(group, member))

    def fail_syncs(self, group: Group, error: ErrorCode) -> None:
        """Clear all assignments, and answer every waiting SyncGroup with the error."""
        for member in group.members.values():
            group.set_assignment(member, b"")
            if member.sync is not None:
                reply, member.sync = member.sync, None
                reply.fail(error)
                self.start_session(group, member)

    def _sync_expired(self, group: Group, generation: int) -> None:
        """Remove the members that did not send SyncGroup in this generation, and rebalance the
        others.
        """
        if generation == group.generation and group.pending_sync:
            for member_id in list(group.pending_sync):
                group.remove(member_id)
            self.prepare(group, "members did not send SyncGroup in time")

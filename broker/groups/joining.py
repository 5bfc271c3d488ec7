"""The rules of JoinGroup: admission to a group, member ids, and when a join starts a rebalance.

An admitted client takes part in the current join phase. If the group is not in the join phase, the
client starts a rebalance, except in two cases, in which nothing changes for the other members:

- A member joins again with the same protocols, and it is not the leader of a stable group. It gets
  the response to its last join again.
- A static client restarts while the group is stable, and the elected protocol stays the same. It
  gets a new member id, and the generation stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.broker.groups.client_errors import client_error
from quorate.broker.groups.group import Group
from quorate.broker.groups.group_record import group_record
from quorate.broker.groups.journal import Journal
from quorate.broker.groups.member import Member, protocols_of, size_of
from quorate.broker.groups.member_memory import MAX_GROUP_BYTES
from quorate.broker.groups.rebalance import Rebalance
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.responses import NO_MEMBER, join_refused, joined, joined_as_follower
from quorate.broker.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from quorate.broker.groups.state import State
from quorate.quorum.clipped import shown
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.group_membership import JoinGroupRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A JoinGroup request, with the facts that come from its connection and its API version."""

    request: JoinGroupRequest
    reply: Reply
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    """The client's value, or its session timeout if it sent none (v0)."""
    member_id_required: bool = True
    """True since v4: a client must know its member id before it becomes a member (KIP-394)."""
    can_skip_assignment: bool = True
    """True since v9: the leader understands `skip_assignment` (KIP-814)."""

    @property
    def protocols(self) -> dict[str, bytes]:
        """Return the client's protocols with their metadata, in order of preference."""
        return protocols_of(self.request)

    @property
    def why(self) -> str:
        """Return the client's reason for joining, for the node's log (KIP-800)."""
        return self.request.reason or "not provided"


class Joining:
    """Handles the JoinGroup requests of one shard, on the broker's event loop.

    The caller has checked the session timeout and the group id of each request."""

    def __init__(
        self,
        settings: GroupSettings,
        journal: Journal,
        rebalance: Rebalance,
        new_id: Callable[[str], str],
    ) -> None:
        """`new_id(prefix)` returns a member id that was never used before. The prefix is the
        instance id, or the client id of a dynamic client."""
        self._settings = settings
        self._journal = journal
        self._rebalance = rebalance
        self._new_id = new_id

    def join(self, group: Group, join: Join) -> None:
        """Answer the request, or keep its reply until the join phase ends. Raise no errors: send
        each one as a response.

        Since v4, a dynamic client without a member id receives one with MEMBER_ID_REQUIRED and has
        to join again with it (KIP-394). Before v4 it becomes a member immediately. A static client
        becomes a member immediately, or replaces the member with its instance id (KIP-345).
        Requests that wait under the replaced member id get FENCED_INSTANCE_ID. If a member sends a
        second JoinGroup while the first one waits, the first one gets REBALANCE_IN_PROGRESS.

        The request gets one of these errors if the client is not admitted:

        - GROUP_MAX_SIZE_REACHED: the group has `group.max.size` members, or its members hold
          MAX_GROUP_BYTES. If the client sent a member id, the group removes that member, and no
          longer waits for it.
        - INCONSISTENT_GROUP_PROTOCOL: the protocol type differs from the group's, or no protocol of
          the client is common to all members. An empty group demands a type and a protocol.
        - UNKNOWN_MEMBER_ID: the group has no member with this member id, or none with this instance
          id. A member id that MEMBER_ID_REQUIRED returned belongs to a dynamic member.
        - FENCED_INSTANCE_ID: another member uses the instance id now.
        - The error of `client_error`, if the journal could not append the record of a restarted
          static member. The old member stays.
        """
        request = join.request
        names = [each.name for each in request.protocols]
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            join.reply.send(join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
            self._rebalance.maybe_complete_join(group)
        elif not self._has_memory(group, join):
            self._refuse_memory(group, join)
        elif not group.supports(request.protocol_type, names):
            join.reply.fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif request.member_id == NO_MEMBER:
            self._join_new(group, join)
        elif request.member_id in group.pending and request.group_instance_id is None:
            self._add(group, join, request.member_id)
        else:
            try:
                member = group.check_member(request.member_id, request.group_instance_id)
            except KafkaError as error:
                join.reply.fail(error.code)
                return
            self._rejoin(group, member, join)

    def _has_room(self, group: Group, member_id: str) -> bool:
        """Return True if the group has room for this member (KIP-389).

        During the join phase only the members that have rejoined count. If `group.max.size` was
        lowered, the members that rejoin last are therefore rejected.
        """
        member = group.members.get(member_id)
        max_size = self._settings.max_size
        if group.state is State.EMPTY:
            return True
        if group.state is State.PREPARING_REBALANCE:
            waits = member is not None and member.join is not None
            return waits or group.awaiting_join < max_size
        return member is not None or len(group.members) < max_size

    def _has_memory(self, group: Group, join: Join) -> bool:
        """Return True if the group with this member holds at most MAX_GROUP_BYTES."""
        member = group.members.get(join.request.member_id)
        others_bytes = group.held_bytes - (0 if member is None else size_of(member.protocols))
        metadata_bytes = sum(len(each.name) + len(each.metadata) for each in join.request.protocols)
        return others_bytes + metadata_bytes <= MAX_GROUP_BYTES

    def _refuse_memory(self, group: Group, join: Join) -> None:
        """Refuse the join, and remove the member that sent it. Its waiting requests get
        UNKNOWN_MEMBER_ID, and the other members rebalance."""
        member_id = join.request.member_id
        join.reply.send(join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
        if member_id in group.members:
            self._rebalance.remove(group, member_id)
            self._rebalance.after_removal(group)
        else:
            group.remove(member_id)
            self._rebalance.maybe_complete_join(group)

    # --- without a member id

    def _join_new(self, group: Group, join: Join) -> None:
        """Handle a client without a member id (KIP-345, KIP-394)."""
        instance_id = join.request.group_instance_id
        member_id = self._new_id(instance_id or join.client_id)
        if instance_id is not None and instance_id in group.static:
            self._replace(group, group.members[group.static[instance_id]], member_id, join)
        elif instance_id is None and join.member_id_required:
            self._rebalance.await_join(group, member_id, join.request.session_timeout_ms)
            join.reply.send(join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(group, join, member_id)

    def _add(self, group: Group, join: Join, member_id: str) -> None:
        """Add a new member, and start or continue a rebalance."""
        request = join.request
        member = Member(
            id=member_id,
            instance_id=request.group_instance_id,
            client_id=join.client_id,
            client_host=join.client_host,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=join.protocols,
            new=True,
            join=join.reply,
        )
        if group.state is State.PREPARING_REBALANCE and group.previous is State.EMPTY:
            group.new_member_added = True
        group.add(member, request.protocol_type)
        # The member cannot heartbeat before it is answered, and its connection may be dead. The
        # timeout removes a member whose client gave up.
        self._rebalance.start_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance.prepare_or_complete(group, f"{member_id} joins ({join.why})")

    # --- static members that come back (KIP-345)

    def _replace(self, group: Group, old: Member, member_id: str, join: Join) -> None:
        """Replace a static member that restarted under a new member id."""
        leader = group.leader
        member = group.replace(old, member_id)
        self._rebalance.start_session(group, member)
        if group.state is State.STABLE:
            self._update(group, member, join)
            if group.elect_protocol() == group.protocol:
                self._replace_quietly(group, old, member, leader, join)
            else:
                self._rebalance.prepare(group, f"{shown(member_id)} changes the protocol")
            return
        self._update(group, member, join)
        if group.state is State.COMPLETING_REBALANCE:
            # The leader may have received the old id already, and would assign nothing to the new
            # one.
            self._rebalance.prepare(
                group, f"{shown(member_id)} replaces {shown(old.id)} ({shown(join.why)})"
            )
        else:
            self._rebalance.maybe_complete_join(group)

    def _replace_quietly(
        self, group: Group, old: Member, member: Member, leader: str | None, join: Join
    ) -> None:
        """Replace the member without a rebalance, because nothing changes for the others.

        The generation stays. If the record cannot be appended, the old member is restored.
        """
        error = self._journal.append([group_record(group, group.assignments)])
        member.join = None
        if error:
            reverted = group.replace(member, old.id)
            group.set_protocols(reverted, old.protocols)
            reverted.rebalance_timeout_ms = old.rebalance_timeout_ms
            reverted.session_timeout_ms = old.session_timeout_ms
            self._rebalance.start_session(group, reverted)
            join.reply.send(join_refused(client_error(error)))
            return
        leads = group.leader == member.id
        response = joined(group, member, skip_assignment=leads)
        if not join.can_skip_assignment:
            # A client that cannot skip the assignment must not be named the leader. It would
            # compute a new assignment that the other members never get. The response names the
            # previous leader, so the client only asks for its own assignment.
            response = joined_as_follower(group, member, leader or NO_MEMBER)
        self._rebalance.answer(group, member, join.reply, response)

    # --- with a member id

    def _rejoin(self, group: Group, member: Member, join: Join) -> None:
        """Handle a JoinGroup of a member. Rebalance if it changes the group, else repeat the last
        response.
        """
        same = list(member.protocols.items()) == list(join.protocols.items())
        if group.state is State.PREPARING_REBALANCE:
            rejoins = True
        elif group.state is State.COMPLETING_REBALANCE:
            # A member that rejoins unchanged did not get the response to its join.
            rejoins = not same
        elif group.state is State.STABLE:
            # The leader rejoins if topics or partitions changed, to request a rebalance.
            rejoins = not same or group.leader == member.id
        else:
            join.reply.fail(ErrorCode.UNKNOWN_MEMBER_ID)
            return
        if rejoins:
            self._update(group, member, join)
            self._rebalance.prepare_or_complete(group, f"{member.id} rejoins ({join.why})")
        else:
            join.reply.send(joined(group, member))

    def _update(self, group: Group, member: Member, join: Join) -> None:
        """Store what the member sent with its JoinGroup, and keep the reply until the join phase
        ends.
        """
        group.set_protocols(member, join.protocols)
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.request.session_timeout_ms
        # A second JoinGroup; only one response may carry the generation.
        if member.join is not None:
            member.join.fail(ErrorCode.REBALANCE_IN_PROGRESS)
        member.join = join.reply

"""JoinGroup: who may join, under which id, and whether that starts a rebalance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.broker.groups.group import Group, Member, protocols_of
from quorate.broker.groups.journal import Journal
from quorate.broker.groups.rebalance import NO_MEMBER, Rebalance, refused, told
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from quorate.broker.groups.state import State
from quorate.quorum.clipped import shown
from quorate.quorum.rpc.kafka.errors import ErrorCode, KafkaError
from quorate.quorum.rpc.kafka.schemas.group_membership import JoinGroupRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A request and what its connection and version say beyond it."""

    request: JoinGroupRequest
    reply: Reply
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    member_id_required: bool = True
    """Since v4: no member without an id that its client knows (KIP-394)."""
    can_skip_assignment: bool = True
    """Since v9 (KIP-814)."""

    @property
    def protocols(self) -> dict[str, bytes]:
        return protocols_of(self.request)

    @property
    def why(self) -> str:
        return self.request.reason or "not provided"


class Joining:
    def __init__(
        self,
        settings: GroupSettings,
        journal: Journal,
        rebalance: Rebalance,
        new_id: Callable[[str], str],
    ) -> None:
        """`new_id(prefix)` is a member id that nobody had before."""
        self._settings = settings
        self._journal = journal
        self._rebalance = rebalance
        self._new_id = new_id

    def join(self, group: Group, join: Join) -> None:
        request = join.request
        names = [each.name for each in request.protocols]
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            join.reply.send(refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not group.supports(request.protocol_type, names):
            join.reply.fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif request.member_id == NO_MEMBER:
            self._join_new(group, join)
        elif request.member_id in group.pending:
            self._add(group, join, request.member_id)
        else:
            try:
                member = group.check_member(request.member_id, request.group_instance_id)
            except KafkaError as error:
                join.reply.fail(error.code)
                return
            self._rejoin(group, member, join)

    def _has_room(self, group: Group, member_id: str) -> bool:
        """While members join anew, those who did count: so the last ones are out when the limit was
        lowered."""
        member = group.members.get(member_id)
        max_size = self._settings.max_size
        if group.state is State.EMPTY:
            return True
        if group.state is State.PREPARING_REBALANCE:
            waits = member is not None and member.join is not None
            return waits or group.awaiting_join < max_size
        return member is not None or len(group.members) < max_size

    # --- without a member id

    def _join_new(self, group: Group, join: Join) -> None:
        instance_id = join.request.group_instance_id
        member_id = self._new_id(instance_id or join.client_id)
        if instance_id is not None and instance_id in group.static:
            self._replace(group, group.members[group.static[instance_id]], member_id, join)
        elif instance_id is None and join.member_id_required:
            self._rebalance.await_join(group, member_id, join.request.session_timeout_ms)
            join.reply.send(refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(group, join, member_id)

    def _add(self, group: Group, join: Join, member_id: str) -> None:
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
        # It cannot heartbeat before it is answered, and whether its connection still stands is
        # not known: a client that gave up must not hold its place for ever.
        self._rebalance.start_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance.prepare_or_complete(group, f"{member_id} joins ({join.why})")

    # --- static members that come back (KIP-345)

    def _replace(self, group: Group, old: Member, member_id: str, join: Join) -> None:
        leader = group.leader
        member = group.replace(old, member_id)
        self._rebalance.start_session(group, member)
        if group.state is State.STABLE:
            self._update(member, join)
            if group.elect_protocol() == group.protocol:
                self._replace_quietly(group, old, member, leader, join)
            else:
                self._rebalance.prepare(group, f"{shown(member_id)} changes the protocol")
            return
        self._update(member, join)
        if group.state is State.COMPLETING_REBALANCE:
            # The leader may know the old id already and would assign nothing to the new one.
            self._rebalance.prepare(
                group, f"{shown(member_id)} replaces {shown(old.id)} ({shown(join.why)})"
            )
        else:
            self._rebalance.maybe_complete_join(group)

    def _replace_quietly(
        self, group: Group, old: Member, member: Member, leader: str | None, join: Join
    ) -> None:
        """Nothing changes for the others: the generation stays."""
        error = self._journal.append([group.record(group.assignments)])
        member.join = None
        if error:
            reverted = group.replace(member, old.id)
            reverted.protocols = old.protocols
            reverted.rebalance_timeout_ms = old.rebalance_timeout_ms
            reverted.session_timeout_ms = old.session_timeout_ms
            self._rebalance.start_session(group, reverted)
            join.reply.send(refused(told(error)))
            return
        leads = group.leader == member.id
        response = group.joined(member, skip_assignment=leads)
        if not join.can_skip_assignment:
            # Named the leader, it would assign anew and the others would never know: it is told of
            # the one before, and so only asks for its assignment.
            response = group.joined_as_follower(member, leader or NO_MEMBER)
        self._rebalance.answer(join.reply, response)

    # --- with a member id

    def _rejoin(self, group: Group, member: Member, join: Join) -> None:
        same = list(member.protocols.items()) == list(join.protocols.items())
        if group.state is State.PREPARING_REBALANCE:
            rejoins = True
        elif group.state is State.COMPLETING_REBALANCE:
            rejoins = not same  # else it did not get the answer to its join
        elif group.state is State.STABLE:
            # The leader asks for a rebalance this way when topics or partitions changed.
            rejoins = not same or group.leader == member.id
        else:
            join.reply.fail(ErrorCode.UNKNOWN_MEMBER_ID)
            return
        if rejoins:
            self._update(member, join)
            self._rebalance.prepare_or_complete(group, f"{member.id} rejoins ({join.why})")
        else:
            join.reply.send(group.joined(member))

    def _update(self, member: Member, join: Join) -> None:
        member.protocols = join.protocols
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.request.session_timeout_ms
        if member.join is not None:  # asked twice: only one answer will be the generation's
            member.join.fail(ErrorCode.REBALANCE_IN_PROGRESS)
        member.join = join.reply

"""One group of the classic protocol: its state, members and common protocol.

Invariants:

- `generation` never decreases.
- The leader, if there is one, is a member.
- Each instance id in `static` maps to the member that has this instance id.
- `held_bytes` is the sum of `Member.held_bytes`, and `memory` counts it. Therefore only the methods
  here change `members`, and the protocols and the assignment of a member.

The rules for moving a group between states are in `rebalance.py`. `group_record.py` converts a
group to its record in the log and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quorate.broker.groups.member import Member, cancel
from quorate.broker.groups.member_memory import MemberMemory
from quorate.broker.groups.records import NO_TIMESTAMP
from quorate.broker.groups.state import TRANSITIONS, State
from quorate.broker.groups.subscription import CONSUMER_PROTOCOL, subscribed_topics
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Timer


@dataclass(slots=True)
class Group:
    """The state of one group. It belongs to one shard and is changed only on the broker's event
    loop."""

    id: str
    state: State = State.EMPTY
    previous: State = State.EMPTY
    """The state before the present one."""
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    """The member id of each static member, by instance id (KIP-345)."""
    pending: dict[str, Timer] = field(default_factory=dict)
    """Member ids returned with MEMBER_ID_REQUIRED that have not joined yet, with their timeouts."""
    pending_sync: dict[str, None] = field(default_factory=dict)
    """Members of this generation that have not sent SyncGroup yet, oldest first."""
    new_member_added: bool = False
    """True if a member joined during the initial rebalance delay, which extends the delay."""
    state_timestamp_ms: int = NO_TIMESTAMP
    """Wall-clock time of the last state change, in ms since 1970."""
    topics: frozenset[str] | None = None
    """The topics that the members subscribed to when the present generation began, or None if they
    cannot be determined."""
    join_timer: Timer | None = None
    sync_timer: Timer | None = None
    memory: MemberMemory = field(default_factory=MemberMemory)
    held_bytes: int = 0

    # --- state

    def enter(self, state: State, wall_ms: int) -> None:
        """Move the group to `state`, at wall-clock time `wall_ms` (ms since 1970).

        The transition must be allowed (`TRANSITIONS`), which an assertion checks.
        """
        allowed = (self.state, state) in TRANSITIONS
        assert allowed, f"group {self.id} must not change from {self.state} to {state}"
        self.previous, self.state = self.state, state
        self.state_timestamp_ms = wall_ms

    @property
    def can_rebalance(self) -> bool:
        """Return True if the group may enter PreparingRebalance from its present state."""
        return (self.state, State.PREPARING_REBALANCE) in TRANSITIONS

    @property
    def awaiting_join(self) -> int:
        """Return the number of members that have rejoined and wait for the join phase to end."""
        return sum(member.join is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        """Return True if every member has rejoined and no member id is pending."""
        return not self.pending and self.awaiting_join == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return the greatest rebalance timeout of the members, in ms, or 0 if there are none."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    # --- members

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member. The first member of the group determines its protocol type and becomes its
        leader.
        """
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        self.leader = self.leader or member.id
        self.members[member.id] = member
        self.forget_pending(member.id)
        self._count(member.held_bytes)

    def remove(self, member_id: str) -> None:
        """Remove a member, or a pending id, with its timers. Do nothing if there is no such id.

        If the leader is removed, another member leads. Waiting requests of the member are not
        answered: that is the task of the caller.
        """
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(-member.held_bytes)
            cancel(member.session)
            if member.instance_id is not None:
                self.static.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.forget_pending(member_id)
        self.pending_sync.pop(member_id, None)

    def replace(self, member: Member, member_id: str) -> Member:
        """Return a copy of a static member under another member id, in the same position in the
        group.

        Requests that wait under the old id fail with FENCED_INSTANCE_ID. The session timer of the
        old member is cancelled, and the caller starts a new one.
        """
        for waiting in (member.join, member.sync):
            if waiting is not None:
                waiting.fail(ErrorCode.FENCED_INSTANCE_ID)
        cancel(member.session)
        assert member.instance_id is not None
        replaced = Member(
            id=member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.session_timeout_ms,
            protocols=member.protocols,
            assignment=member.assignment,
        )
        self.members = {
            each.id: each
            for each in (replaced if old is member else old for old in self.members.values())
        }
        self._count(replaced.held_bytes - member.held_bytes)
        self.static[member.instance_id] = member_id
        if self.leader == member.id:
            self.leader = member_id
        if member.id in self.pending_sync:
            del self.pending_sync[member.id]
            self.pending_sync[member_id] = None
        return replaced

    def set_protocols(self, member: Member, protocols: Mapping[str, bytes]) -> None:
        """Replace the protocols of a member."""
        held_bytes = member.held_bytes
        member.protocols = protocols
        self._count(member.held_bytes - held_bytes)

    def set_assignment(self, member: Member, assignment: bytes) -> None:
        """Replace the assignment of a member."""
        self._count(len(assignment) - len(member.assignment))
        member.assignment = assignment

    def release(self) -> None:
        """Count nothing more for this group, because it is discarded with its members."""
        self._count(-self.held_bytes)

    def _count(self, held_bytes: int) -> None:
        self.held_bytes += held_bytes
        self.memory.add(held_bytes)

    def forget_pending(self, member_id: str) -> None:
        """Remove a pending member id and cancel its timeout, if it exists."""
        cancel(self.pending.pop(member_id, None))

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """Return the member with this id.

        Raise KafkaError with FENCED_INSTANCE_ID if another member now uses the instance id
        (KIP-345), or with UNKNOWN_MEMBER_ID if no member has this member id or this instance id.
        """
        if instance_id is not None and self.static.get(instance_id, member_id) != member_id:
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None or (instance_id is not None and instance_id not in self.static):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def elect_joined_leader(self) -> bool:
        """If the leader did not rejoin, give the leadership to the first member that did.

        Return False if the group has no leader, or if no member at all has rejoined.
        """
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.join is None:
            joined = (each.id for each in self.members.values() if each.join is not None)
            chosen = next(joined, None)
            if chosen is None:
                return False
            self.leader = chosen
        return leader is not None

    # --- protocols

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return True if a client with this protocol type and these protocols may join the group.

        At least one of the protocols must be common to all members, and the type must be theirs. An
        empty group accepts every client that names a type and at least one protocol. A join phase
        whose members have all left, with only pending member ids, accepts every protocol of the
        group's type.
        """
        if self.state is State.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        if self.protocol_type != protocol_type:
            return False
        common = self.common_protocols()
        return any(name in common or not self.members for name in names)

    def common_protocols(self) -> set[str]:
        """Return the protocols that every member supports, or an empty set without members."""
        spoken = [set(member.protocols) for member in self.members.values()]
        return set.intersection(*spoken) if spoken else set()

    def elect_protocol(self) -> str:
        """Return the common protocol that most members prefer; among equals, the one voted for
        first. The group must have members and a common protocol.
        """
        common = self.common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(common)
            votes[name] = votes.get(name, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def next_generation(self, wall_ms: int) -> None:
        """Begin the next generation, and enter CompletingRebalance, or Empty if there are no
        members. This elects the protocol and determines `topics`.
        """
        self.generation += 1
        self.protocol = self.elect_protocol() if self.members else None
        self.enter(State.COMPLETING_REBALANCE if self.members else State.EMPTY, wall_ms)
        self.topics = self.subscribed_topics()
        self.pending_sync.clear()

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics that the members subscribe to, or None if they cannot be determined.

        None means that the group does not use the consumer protocol, that no protocol is elected
        yet, or that a subscription is unreadable.
        """
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        protocol = self.protocol
        if protocol is None:
            return frozenset() if not self.members else None
        return subscribed_topics(member.protocols[protocol] for member in self.members.values())

    def subscribes_to(self, topic: str) -> bool:
        """Return True if the group consumes the topic, or may do so because its topics are not
        known. A group that does not use the consumer protocol subscribes to nothing.
        """
        if self.topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL
        return topic in self.topics

    @property
    def assignments(self) -> dict[str, bytes]:
        """Return the present assignment of each member, by member id."""
        return {member.id: member.assignment for member in self.members.values()}

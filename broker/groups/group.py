"""One classic group and its members: who they are, what they speak, who leads.

Invariants: `generation` only grows; the leader is a member whenever there is one; an instance id
maps to a member that has it. What moves the group from state to state is in `rebalance.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quorate.broker.groups.records import (
    NO_TIMESTAMP,
    GroupKey,
    GroupRecord,
    GroupValue,
    MemberValue,
)
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.state import FROM, State
from quorate.broker.groups.subscription import CONSUMER_PROTOCOL, subscribed_topics
from quorate.quorum.rpc.kafka.errors import ErrorCode, KafkaError
from quorate.quorum.rpc.kafka.schemas.group_membership import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from quorate.quorum.seams import Timer


@dataclass(slots=True, kw_only=True)
class Member:
    """`protocols` in the member's order of preference; `join` and `sync` wait for an answer."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Mapping[str, bytes]
    assignment: bytes = b""
    new: bool = False
    join: Reply | None = None
    sync: Reply | None = None
    session: Timer | None = None

    @property
    def keeps_session(self) -> bool:
        """Whoever waits for us cannot heartbeat; a new member must be given up some time."""
        return not self.new and (self.join is not None or self.sync is not None)

    def vote(self, candidates: Iterable[str]) -> str:
        wanted = set(candidates)
        return next(name for name in self.protocols if name in wanted)


@dataclass(slots=True)
class Group:
    id: str
    state: State = State.EMPTY
    previous: State = State.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    pending: dict[str, Timer] = field(default_factory=dict)
    """Member ids handed out (MEMBER_ID_REQUIRED) whose join has not come yet."""
    pending_sync: dict[str, None] = field(default_factory=dict)
    new_member_added: bool = False
    state_timestamp_ms: int = NO_TIMESTAMP
    topics: frozenset[str] | None = None
    """What the members subscribe to; None when nobody can say."""
    join_timer: Timer | None = None
    sync_timer: Timer | None = None

    # --- state

    def enter(self, state: State, wall_ms: int) -> None:
        assert self.state in FROM[state], f"{self.id}: {self.state} -> {state}"
        self.previous, self.state = self.state, state
        self.state_timestamp_ms = wall_ms

    @property
    def can_rebalance(self) -> bool:
        return self.state in FROM[State.PREPARING_REBALANCE]

    @property
    def awaiting_join(self) -> int:
        return sum(member.join is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        return not self.pending and self.awaiting_join == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    # --- members

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        self.leader = self.leader or member.id
        self.members[member.id] = member
        self.forget_pending(member.id)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            cancel(member.session)
            if member.instance_id is not None:
                self.static.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.forget_pending(member_id)
        self.pending_sync.pop(member_id, None)

    def replace(self, member: Member, member_id: str) -> Member:
        """The same static member under another id, in the same place; whoever waits under the old
        one is fenced."""
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
        self.static[member.instance_id] = member_id
        if self.leader == member.id:
            self.leader = member_id
        return replaced

    def forget_pending(self, member_id: str) -> None:
        cancel(self.pending.pop(member_id, None))

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """FENCED_INSTANCE_ID when another member uses the instance id by now (KIP-345)."""
        if instance_id is not None and self.static.get(instance_id, member_id) != member_id:
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None or (instance_id is not None and instance_id not in self.static):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def elect_joined_leader(self) -> bool:
        """A leader that did not rejoin in time hands over to a member that did; False when no
        member did."""
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
        if self.state is State.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        common = self.common_protocols()
        return self.protocol_type == protocol_type and any(name in common for name in names)

    def common_protocols(self) -> set[str]:
        spoken = [set(member.protocols) for member in self.members.values()]
        return set.intersection(*spoken) if spoken else set()

    def elect_protocol(self) -> str:
        """The one that most members like best; of equals, the one voted for first."""
        common = self.common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(common)
            votes[name] = votes.get(name, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def next_generation(self, wall_ms: int) -> None:
        self.generation += 1
        self.protocol = self.elect_protocol() if self.members else None
        self.enter(State.COMPLETING_REBALANCE if self.members else State.EMPTY, wall_ms)
        self.topics = self.subscribed_topics()
        self.pending_sync.clear()

    def subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        protocol = self.protocol
        if protocol is None:
            return frozenset() if not self.members else None
        return subscribed_topics(member.protocols[protocol] for member in self.members.values())

    def subscribes_to(self, topic: str) -> bool:
        if self.topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL
        return topic in self.topics

    # --- answers and records

    def joined(self, member: Member, *, skip_assignment: bool = False) -> JoinGroupResponse:
        leads = member.id == self.leader
        return JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader or "",
            skip_assignment=skip_assignment,
            member_id=member.id,
            members=self.join_members() if leads else (),
        )

    def joined_as_follower(self, member: Member, leader: str) -> JoinGroupResponse:
        return dataclasses.replace(self.joined(member), leader=leader, members=())

    def join_members(self) -> tuple[JoinGroupResponseMember, ...]:
        assert self.protocol is not None
        return tuple(
            JoinGroupResponseMember(
                member_id=each.id,
                group_instance_id=each.instance_id,
                metadata=each.protocols[self.protocol],
            )
            for each in self.members.values()
        )

    def record(self, assignments: Mapping[str, bytes]) -> GroupRecord:
        protocol = self.protocol
        return GroupRecord(
            GroupKey(group=self.id),
            GroupValue(
                protocol_type=self.protocol_type or "",
                generation=self.generation,
                protocol=protocol,
                leader=self.leader,
                current_state_timestamp=self.state_timestamp_ms,
                members=tuple(
                    MemberValue(
                        member_id=each.id,
                        group_instance_id=each.instance_id,
                        client_id=each.client_id,
                        client_host=each.client_host,
                        rebalance_timeout=each.rebalance_timeout_ms,
                        session_timeout=each.session_timeout_ms,
                        subscription=each.protocols[protocol] if protocol is not None else b"",
                        assignment=assignments.get(each.id, b""),
                    )
                    for each in self.members.values()
                ),
            ),
        )

    @property
    def assignments(self) -> dict[str, bytes]:
        return {member.id: member.assignment for member in self.members.values()}


def group_of(key: GroupKey, value: GroupValue) -> Group:
    """As a coordinator finds it in the log: whoever has members was stable."""
    group = Group(
        id=key.group,
        state=State.STABLE if value.members else State.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol=value.protocol,
        state_timestamp_ms=value.current_state_timestamp,
    )
    for each in value.members:
        assert value.protocol is not None, f"{key.group} has members and no protocol"
        rebalance_timeout_ms = each.rebalance_timeout
        member = Member(
            id=each.member_id,
            instance_id=each.group_instance_id,
            client_id=each.client_id,
            client_host=each.client_host,
            rebalance_timeout_ms=each.session_timeout
            if rebalance_timeout_ms < 0
            else rebalance_timeout_ms,
            session_timeout_ms=each.session_timeout,
            protocols={value.protocol: bytes(each.subscription)},
            assignment=bytes(each.assignment),
        )
        group.add(member, value.protocol_type)
    group.leader = value.leader
    group.topics = group.subscribed_topics()
    return group


def protocols_of(request: JoinGroupRequest) -> dict[str, bytes]:
    return {each.name: bytes(each.metadata) for each in request.protocols}


def cancel(timer: Timer | None) -> None:
    if timer is not None:
        timer.cancel()

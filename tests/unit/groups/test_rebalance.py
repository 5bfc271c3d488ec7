"""Joins, generations, sessions and static members of one group."""

from __future__ import annotations

import pytest

from quorate.broker.groups.group import Group
from quorate.broker.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from quorate.broker.groups.state import TRANSITIONS, State
from quorate.quorum.incremental_work import finished
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_membership import MemberIdentity
from tests.unit.groups.harness import REBALANCE_MS, SESSION_MS, World

E = ErrorCode


def test_a_dynamic_member_joins_with_the_id_it_was_given() -> None:
    """KIP-394: otherwise a client that repeats its join would leave members behind that no client
    uses."""
    world = World()
    first = world.join().answer
    assert first.error_code == E.MEMBER_ID_REQUIRED
    assert first.member_id == "c-1"
    joined = world.join(first.member_id)
    assert joined.answers == []
    world.clock.advance(0)
    assert joined.answer.leader == "c-1"
    assert joined.answer.generation_id == 1
    assert [each.member_id for each in joined.answer.members] == ["c-1"]
    assert world.state() is State.COMPLETING_REBALANCE


def test_a_member_id_that_nobody_joins_with_is_forgotten() -> None:
    world = World()
    world.join()
    world.clock.advance(SESSION_MS)
    assert not world.group.pending


def test_an_old_client_joins_at_once() -> None:
    world = World()
    joined = world.join(known=False)
    world.clock.advance(0)
    assert joined.answer.member_id == "c-1"


def test_the_first_rebalance_waits_for_more_and_longer_while_they_come() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=3000))
    one = world.new_member()
    world.clock.advance(2000)
    two = world.new_member()
    world.clock.advance(1000)
    assert one.answers == []
    world.clock.advance(3000)
    assert one.answer.generation_id == two.answer.generation_id == 1
    assert len(one.answer.members) == 2
    assert two.answer.members == ()


def test_the_leader_assigns_and_all_hear_it_only_when_it_is_committed() -> None:
    world = World()
    joins = [world.new_member(), world.new_member()]
    world.clock.advance(0)
    follower, leader = joins[1].answer.member_id, joins[0].answer.member_id
    waiting = world.sync(follower, 1)
    world.journal.held = True
    sent = world.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert waiting.answers == sent.answers == []
    world.journal.commit()
    assert (sent.answer.assignment, waiting.answer.assignment) == (b"L", b"F")
    assert world.sync(follower, 1).answer.assignment == b"F"


def test_an_assignment_that_cannot_be_recorded_starts_over() -> None:
    world = World()
    joined = world.new_member()
    world.clock.advance(0)
    world.journal.refusal = E.NOT_ENOUGH_REPLICAS
    sent = world.sync(joined.answer.member_id, 1, {})
    assert sent.answer.error_code == E.COORDINATOR_NOT_AVAILABLE
    assert world.state() is State.PREPARING_REBALANCE


def test_a_third_member_makes_the_others_rejoin() -> None:
    world = World()
    ids = world.stable(2)
    third = world.new_member()
    assert [world.heartbeat(each, 1) for each in ids] == [E.REBALANCE_IN_PROGRESS] * 2
    rejoins = [world.join(each) for each in ids]
    assert third.answer.generation_id == 2
    assert [each.answer.generation_id for each in rejoins] == [2, 2]
    assert world.heartbeat(ids[0], 1) == E.ILLEGAL_GENERATION


def test_a_member_that_does_not_rejoin_in_time_is_out() -> None:
    world = World()
    ids = world.stable(2)
    third = world.new_member()
    world.join(ids[1])
    for _ in range(REBALANCE_MS // SESSION_MS):
        world.heartbeat(ids[0], 1)
        world.clock.advance(SESSION_MS - 1)
    world.clock.advance(SESSION_MS)
    assert third.answer.generation_id == 2
    assert ids[0] not in world.group.members
    assert third.answer.leader == ids[1]


def test_a_silent_member_loses_its_session_and_heartbeats_keep_the_other() -> None:
    world = World()
    ids = world.stable(2)
    world.clock.advance(SESSION_MS - 1)
    assert world.heartbeat(ids[1], 1) == E.NONE
    world.clock.advance(1)
    assert list(world.group.members) == [ids[1]]
    assert world.state() is State.PREPARING_REBALANCE
    assert world.heartbeat(ids[0], 1) == E.UNKNOWN_MEMBER_ID


def test_a_member_that_waits_for_the_join_phase_keeps_its_session() -> None:
    world = World()
    ids = world.stable(2)
    world.new_member()
    waiting = world.join(ids[1])
    for _ in range(3):
        world.heartbeat(ids[0], 1)
        world.clock.advance(SESSION_MS - 1)
    assert ids[1] in world.group.members
    assert waiting.answers == []


def test_a_new_member_whose_join_nobody_answers_is_given_up() -> None:
    world = World(GroupSettings(initial_rebalance_delay_ms=NEW_MEMBER_JOIN_TIMEOUT_MS * 2))
    joined = world.new_member()
    world.clock.advance(NEW_MEMBER_JOIN_TIMEOUT_MS)
    assert joined.answer.error_code == E.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_sync_in_time_is_removed() -> None:
    world = World()
    joins = [world.new_member(), world.new_member()]
    world.clock.advance(0)
    leader, follower = (each.answer.member_id for each in joins)
    world.sync(leader, 1, {})
    for _ in range(REBALANCE_MS // (SESSION_MS - 1) + 1):
        world.heartbeat(leader, 1)
        world.heartbeat(follower, 1)
        world.clock.advance(SESSION_MS - 1)
    assert list(world.group.members) == [leader]


def test_a_follower_that_joins_again_unchanged_gets_the_generation_and_the_leader_a_new_one() -> (
    None
):
    world = World()
    ids = world.stable(2)
    assert world.join(ids[1]).answer.generation_id == 1
    assert world.state() is State.STABLE
    world.join(ids[0])
    assert world.state() is State.PREPARING_REBALANCE


def test_new_metadata_of_a_follower_rebalances() -> None:
    world = World()
    ids = world.stable(2)
    world.join(ids[1], metadata=b"other")
    assert world.state() is State.PREPARING_REBALANCE


def test_protocols_are_voted_on_among_those_that_all_speak() -> None:
    world = World()
    asked = [
        world.join(world.join(protocols=each).answer.member_id, protocols=each)
        for each in (("a", "b"), ("b", "a"), ("b", "a", "c"))
    ]
    world.clock.advance(0)
    assert {each.answer.protocol_name for each in asked} == {"b"}
    assert world.join(protocols=("c",)).answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    other = world.join(protocols=("a",), protocol_type="connect")
    assert other.answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(protocols=()).answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL


def test_a_client_joins_a_join_phase_whose_members_have_all_left() -> None:
    """Only a pending member id keeps the join phase open. Kafka accepts the client."""
    world = World()
    (member,) = world.stable(1)
    assert world.join().answer.error_code == E.MEMBER_ID_REQUIRED
    assert world.leave(MemberIdentity(member_id=member)) == [E.NONE]
    assert world.state() is State.PREPARING_REBALANCE and not world.group.members
    wrong = world.join(instance="i", protocol_type="connect").answer
    assert wrong.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    asked = world.join(instance="i", protocols=("another",))
    assert not asked.answers
    world.clock.advance(SESSION_MS)
    assert (asked.answer.error_code, asked.answer.generation_id) == (E.NONE, 2)


def test_a_group_is_not_left_behind_by_a_refused_join() -> None:
    world = World()
    assert world.join(protocols=()).answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert world.join("ghost").answer.error_code == E.UNKNOWN_MEMBER_ID
    assert not world.shard.groups


def test_a_full_group_refuses() -> None:
    world = World(GroupSettings(max_size=2))
    world.stable(2)
    assert world.join().answer.error_code == E.GROUP_MAX_SIZE_REACHED


def test_a_refused_member_does_not_hold_up_the_join_phase() -> None:
    """The others once waited for the rebalance timeout, which is five minutes for Java's consumers,
    because the client had its member id before the group was full."""
    world = World(GroupSettings(max_size=2))
    leader, follower = world.stable(2)
    joins = [world.join(leader)]
    late = world.join().answer.member_id
    joins.append(world.join(follower))
    assert joins[0].answers == joins[1].answers == []
    assert world.join(late).answer.error_code == E.GROUP_MAX_SIZE_REACHED
    assert [each.answer.generation_id for each in joins] == [2, 2]


def test_sync_is_checked_in_kafkas_order() -> None:
    world = World()
    assert world.sync("x", 1).answer.error_code == E.UNKNOWN_MEMBER_ID
    ids = world.stable(2)
    assert world.sync("x", 9).answer.error_code == E.UNKNOWN_MEMBER_ID
    assert world.sync(ids[0], 9, protocol="z").answer.error_code == E.ILLEGAL_GENERATION
    inconsistent = world.sync(ids[0], 1, protocol="z").answer
    assert inconsistent.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    world.join(ids[0])
    assert world.sync(ids[1], 1).answer.error_code == E.REBALANCE_IN_PROGRESS


def test_members_that_leave_rebalance_the_rest_and_the_last_empties_the_group() -> None:
    world = World()
    ids = world.stable(2)
    assert world.leave(MemberIdentity(member_id="x")) == [E.UNKNOWN_MEMBER_ID]
    assert world.state() is State.STABLE
    assert world.leave(MemberIdentity(member_id=ids[0])) == [E.NONE]
    assert world.state() is State.PREPARING_REBALANCE
    assert world.leave(MemberIdentity(member_id=ids[1])) == [E.NONE]
    assert world.state() is State.EMPTY
    assert world.group.generation == 2
    assert world.shard.leave("nobody", [MemberIdentity(member_id="x")])[0].error_code


# --- static members (KIP-345)


def static(world: World) -> str:
    joined = world.join(instance="i")
    world.clock.advance(0)
    member_id = joined.answer.member_id
    assert world.sync(member_id, 1, {member_id: b"A"}).answer.assignment == b"A"
    return member_id


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    world = World()
    old = static(world)
    world.journal.held = True
    back = world.join(instance="i")
    assert back.answers == []
    world.journal.commit()
    answer = back.answer
    assert answer.member_id != old
    assert (answer.generation_id, answer.leader, answer.skip_assignment) == (
        1,
        answer.member_id,
        True,
    )
    assert world.state() is State.STABLE
    assert world.sync(answer.member_id, 1, instance="i").answer.assignment == b"A"
    assert world.heartbeat(old, 1, "i") == E.FENCED_INSTANCE_ID
    assert world.heartbeat(old, 1) == E.UNKNOWN_MEMBER_ID
    assert world.sync(old, 1, instance="i").answer.error_code == E.FENCED_INSTANCE_ID


def test_a_static_member_that_comes_back_before_its_sync_causes_no_rebalance() -> None:
    """The group used to wait for a SyncGroup of the old member id, and rebalanced in vain."""
    world = World()
    leader, follower = world.new_member(), world.join(instance="i")
    world.clock.advance(0)
    leads, late = leader.answer.member_id, follower.answer.member_id
    assert world.sync(leads, 1, {leads: b"A", late: b"B"}).answer.assignment == b"A"
    back = world.join(instance="i").answer.member_id
    assert world.sync(back, 1, instance="i").answer.assignment == b"B"
    for _ in range(2 * REBALANCE_MS // SESSION_MS):
        world.clock.advance(SESSION_MS // 2)
        assert world.heartbeat(leads, 1) == world.heartbeat(back, 1, "i") == E.NONE
    assert world.state() is State.STABLE


def test_a_removed_member_that_waits_in_sync_is_answered() -> None:
    """Its client used to wait until its own timeout of the request."""
    world = World()
    joins = [world.new_member() for _ in range(2)]
    world.clock.advance(0)
    follower = joins[1].answer.member_id
    waiting = world.sync(follower, 1)
    assert world.leave(MemberIdentity(member_id=follower)) == [E.NONE]
    assert waiting.answer.error_code == E.UNKNOWN_MEMBER_ID


def test_an_older_client_that_comes_back_as_leader_is_not_told_that_it_leads() -> None:
    world = World()
    old = static(world)
    assert world.join(instance="i", skip=False).answer.leader == old


def test_a_static_member_whose_return_cannot_be_recorded_stays_who_it_was() -> None:
    world = World()
    old = static(world)
    world.journal.refusal = E.NOT_LEADER_OR_FOLLOWER
    assert world.join(instance="i").answer.error_code == E.NOT_COORDINATOR
    assert world.heartbeat(old, 1, "i") == E.NONE


def test_two_clients_of_one_instance_id_fence_each_other_while_they_join() -> None:
    world = World()
    first = world.join(instance="i")
    second = world.join(instance="i")
    assert first.answer.error_code == E.FENCED_INSTANCE_ID
    world.clock.advance(0)
    assert second.answer.error_code == E.NONE


def test_a_member_id_that_was_given_to_a_dynamic_member_is_no_static_one() -> None:
    """Two members once had one instance id. The end of the first one's session then took the
    instance id from the second one."""
    world = World()
    old = static(world)
    given = world.join().answer.member_id
    for instance, error in (("i", E.FENCED_INSTANCE_ID), ("j", E.UNKNOWN_MEMBER_ID)):
        assert world.join(given, instance=instance).answer.error_code == error
    assert list(world.group.members) == [old]
    assert world.heartbeat(old, 1, "i") == E.NONE
    assert world.join(given).answers == [], "it joins as a dynamic member"


def test_a_static_member_keeps_its_place_through_a_rebalance_until_its_session_ends() -> None:
    world = World()
    old = static(world)
    other = world.join(instance="j")
    world.clock.advance(SESSION_MS - 1)
    assert old in world.group.members
    world.clock.advance(1)
    assert other.answer.generation_id == 2
    assert list(world.group.static) == ["j"]


def test_an_administrator_removes_a_static_member_by_its_instance_id() -> None:
    world = World()
    static(world)
    wrong = MemberIdentity(member_id="", group_instance_id="x")
    right = MemberIdentity(member_id="", group_instance_id="i")
    assert world.leave(wrong, right) == [E.UNKNOWN_MEMBER_ID, E.NONE]
    assert world.state() is State.EMPTY


# --- the next coordinator


def test_the_next_coordinator_knows_the_generation_and_gives_members_a_session() -> None:
    world = World()
    ids = world.stable(2)
    world.take_over()
    assert world.state() is State.STABLE
    assert [world.heartbeat(each, 1) for each in ids] == [E.NONE] * 2
    assert world.sync(ids[1], 1).answer.assignment == ids[1].encode()
    world.clock.advance(SESSION_MS)
    assert world.state() is State.EMPTY


def test_waiting_members_look_for_the_next_coordinator() -> None:
    world = World()
    ids = world.stable(2)
    joined = world.join(ids[0])
    finished(world.shard.close())
    assert joined.answer.error_code == E.NOT_COORDINATOR
    assert world.clock.waiting == 0


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("following", State)
def test_a_transition_outside_of_the_table_is_refused(state: State, following: State) -> None:
    group = Group("g", state=state)
    if (state, following) in TRANSITIONS:
        group.enter(following, wall_ms=0)
        assert (group.previous, group.state) == (state, following)
    else:
        with pytest.raises(AssertionError, match="group g must not change"):
            group.enter(following, wall_ms=0)
        assert group.state is state

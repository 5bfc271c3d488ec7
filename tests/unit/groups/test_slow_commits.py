"""Members whose responses wait for a slow commit keep their sessions."""

from __future__ import annotations

import pytest

from quorate.broker.groups.state import State
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.groups.harness import SESSION_MS, World


@pytest.mark.parametrize("late", [False, True])
def test_an_assignment_that_is_committed_late_reaches_its_members(late: bool) -> None:
    """A follower of __consumer_offsets that is gone delays commits by replica.lag.time.max.ms. The
    members, which cannot send heartbeats before they are answered, lost their sessions meanwhile.
    `late`: the second member sends its SyncGroup after the leader's."""
    world = World()
    joins = [world.new_member() for _ in range(2)]
    world.clock.advance(0)
    leader, follower = (each.answer.member_id for each in joins)
    world.journal.held = True
    waiting = [] if late else [world.sync(follower, 1)]
    waiting.append(world.sync(leader, 1, {leader: b"A", follower: b"B"}))
    if late:
        waiting.append(world.sync(follower, 1))
    for _ in range(3):
        world.clock.advance(SESSION_MS)
    assert not any(each.answers for each in waiting)
    world.journal.commit()
    assert {each.answer.assignment for each in waiting} == {b"A", b"B"}
    world.clock.advance(SESSION_MS - 1)
    assert world.heartbeat(leader, 1) == world.heartbeat(follower, 1) == ErrorCode.NONE
    assert world.state() is State.STABLE
    world.clock.advance(SESSION_MS)
    assert world.state() is State.EMPTY, "the sessions run again after the answers"


def test_a_static_member_that_is_recorded_late_keeps_its_session() -> None:
    world = World()
    joined = world.join(instance="i")
    world.clock.advance(0)
    old = joined.answer.member_id
    world.sync(old, 1, {old: b"A"})
    world.journal.held = True
    back = world.join(instance="i")
    world.clock.advance(3 * SESSION_MS)
    assert not back.answers
    world.journal.commit()
    member_id = back.answer.member_id
    world.clock.advance(SESSION_MS - 1)
    assert world.heartbeat(member_id, 1, "i") == ErrorCode.NONE
    world.clock.advance(SESSION_MS)
    assert world.state() is State.EMPTY

"""The state that clients could otherwise grow without a bound: member ids that no client uses."""

from __future__ import annotations

import pytest

from quorate.broker.groups import rebalance, shard
from quorate.broker.groups.group import Group
from quorate.broker.groups.state import State
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_membership import MemberIdentity
from tests.unit.groups.harness import GROUP, SESSION_MS, World


def test_ids_that_no_client_joins_with_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalance, "MAX_PENDING_MEMBERS", 3)
    world = World()
    ids = [world.join().answer.member_id for _ in range(5)]
    assert list(world.group.pending) == ids[2:]
    assert world.clock.waiting == 3, "the timers of dropped ids are cancelled"
    assert world.join(ids[0]).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert not world.join(ids[4]).answers, "an id that was kept joins, and waits for the others"


def test_groups_that_are_in_no_log_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "MAX_UNRECORDED_GROUPS", 3)
    world = World()
    world.commit(5)
    world.stable(1)
    for number in range(10):
        world.join(group=f"invented {number}")
    assert set(world.shard.groups) == {GROUP, *(f"invented {number}" for number in (7, 8, 9))}


def test_static_members_without_a_rebalance_timeout_do_not_occupy_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A join phase that waits only for them looks at them again after the rebalance timeout, which
    a client may set to 0: the broker did nothing else until their sessions had ended."""
    world = World()
    joins = [world.join(instance=each) for each in "ij"]
    world.clock.advance(0)
    kept, removed = (each.answer.member_id for each in joins)
    world.sync(kept, 1, {})
    world.group.members[kept].rebalance_timeout_ms = 0
    looked: list[None] = []
    complete = rebalance.Rebalance.complete_join

    def counted(self: rebalance.Rebalance, group: Group) -> None:
        looked.append(None)
        complete(self, group)

    monkeypatch.setattr(rebalance.Rebalance, "complete_join", counted)
    world.leave(MemberIdentity(member_id=removed))
    for _ in range(1000):
        world.clock.advance(1)
    assert len(looked) <= 3
    world.clock.advance(SESSION_MS)
    assert world.state() is State.EMPTY

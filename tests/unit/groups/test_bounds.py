"""The state that clients could otherwise grow without a bound: member ids that no client uses."""

from __future__ import annotations

import pytest

from quorate.broker.groups import rebalance, shard
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.groups.harness import GROUP, World


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

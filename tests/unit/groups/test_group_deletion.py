"""A DeleteGroups request deletes a large group in parts, each after the commit of the last."""

from __future__ import annotations

from typing import cast

import pytest

from quorate.broker.groups import shard
from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.kafka.groups.group_admin import GroupAdminHandler
from quorate.quorum.incremental_work import finished
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_admin import DeleteGroupsRequest
from quorate.quorum.rpc.kafka.context import RequestContext
from tests.unit.groups.harness import GROUP, World
from tests.unit.groups.test_leave import OneShard, Request


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(shard, "MAX_DELETED_BYTES", 2 * (shard.TOMBSTONE_BYTES + len(GROUP)))
    made = World()
    for number in range(5):
        made.commit(1, topic=f"t{number}")
    return made


def delete(world: World) -> Request:
    handler = GroupAdminHandler(cast(GroupCoordinator, OneShard(world)))
    request = Request()
    steps = handler.delete(
        cast(RequestContext, request), DeleteGroupsRequest(groups_names=(GROUP,))
    )
    if steps is not None:
        finished(steps)
    return request


def commit_one(world: World) -> None:
    """Commit the batch that waits, but not those that it leads to."""
    journal = world.journal
    waiting, journal._waiting = journal._waiting, []
    for done in waiting:
        done(ErrorCode.NONE)


def test_the_parts_follow_each_other_as_they_are_committed(world: World) -> None:
    world.journal.held = True
    request = delete(world)
    left = []
    while request.response is None:
        left.append(len(list(world.shard.offsets.of(GROUP))))
        commit_one(world)
    assert left == [3, 1, 0]
    assert [each.error_code for each in request.response.results] == [ErrorCode.NONE]
    assert not world.shard.groups


def test_a_failed_part_is_answered_with_its_error(world: World) -> None:
    world.journal.held = True
    request = delete(world)
    world.journal.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
    commit_one(world)
    (result,) = request.response.results
    assert result.error_code == ErrorCode.NOT_COORDINATOR
    assert len(list(world.shard.offsets.of(GROUP))) == 3

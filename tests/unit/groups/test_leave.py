"""A LeaveGroup request with many members is handled in parts, with the same result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.state import State
from quorate.broker.kafka.groups.group_membership import MEMBERS_PER_PART, GroupMembershipHandler
from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_membership import LeaveGroupRequest, MemberIdentity
from quorate.quorum.rpc.kafka.context import RequestContext
from tests.unit.groups.harness import GROUP, MemoryJournal, World


class OneShard:
    """Stands for the coordinator of one shard, and for the context of that shard."""

    def __init__(self, world: World) -> None:
        self.shard = world.shard
        self.journal: MemoryJournal = world.journal
        self.error = ErrorCode.NONE

    def find(
        self, group_id: str, work: Callable[[Any], None], refuse: Callable[[ErrorCode], None]
    ) -> None:
        if self.error:
            refuse(self.error)
        else:
            work(self)


class Request:
    """Stands for the context of a request, and keeps the response."""

    version = 5

    def __init__(self) -> None:
        self.response: Any = None

    def callback(self, function: Any) -> Any:
        return function

    def respond(self, response: object) -> None:
        self.response = response

    def respond_steps(self, response: object) -> IncrementalWork[None]:
        self.response = response
        yield from ()

    def run(self, steps: IncrementalWork[None]) -> None:
        finished(steps)


COUNT = 2 * MEMBERS_PER_PART + 1


def leave(
    coordinator: OneShard, member_ids: list[str]
) -> tuple[Request, IncrementalWork[None] | None]:
    request = LeaveGroupRequest(
        group_id=GROUP, members=tuple(MemberIdentity(member_id=each) for each in member_ids)
    )
    asked = Request()
    handler = GroupMembershipHandler(cast(GroupCoordinator, coordinator))
    return asked, handler.leave(cast(RequestContext, asked), request)


def test_many_members_leave_in_steps() -> None:
    world = World()
    ids = world.stable(COUNT)
    coordinator = OneShard(world)
    asked, steps = leave(coordinator, [*ids, "unknown"])
    assert steps is not None
    left = [COUNT - len(world.group.members)]
    left.extend(COUNT - len(world.group.members) for _ in steps)
    assert left == [MEMBERS_PER_PART, 2 * MEMBERS_PER_PART]
    assert world.state() is State.EMPTY
    errors = [each.error_code for each in asked.response.members]
    assert errors == [ErrorCode.NONE] * COUNT + [ErrorCode.UNKNOWN_MEMBER_ID]
    assert [each.member_id for each in asked.response.members] == [*ids, "unknown"]


@pytest.mark.parametrize("lost", [0, 1])
def test_many_members_cannot_leave_a_coordinator_that_lost_the_group(lost: int) -> None:
    world = World()
    ids = world.stable(COUNT)
    coordinator = OneShard(world)
    if not lost:
        coordinator.error = ErrorCode.NOT_COORDINATOR
    asked, steps = leave(coordinator, ids)
    coordinator.error = ErrorCode.NOT_COORDINATOR
    assert steps is not None
    finished(steps)
    assert asked.response.error_code == ErrorCode.NOT_COORDINATOR


def test_a_few_members_leave_in_one_step() -> None:
    world = World()
    ids = world.stable(3)
    asked, steps = leave(OneShard(world), ids)
    assert steps is None
    assert len(asked.response.members) == 3

"""The memory of the members of groups: counted for every change, and bounded."""

from __future__ import annotations

from typing import cast

import pytest

from quorate.broker.groups import joining, rebalance
from quorate.broker.groups.guarded import Guard
from quorate.broker.groups.member_memory import MAX_GROUP_BYTES, MEMBER_BYTES, MemberMemory
from quorate.broker.groups.relief import MAX_EVICTED, REST_MS, Relief
from quorate.broker.groups.replicated_journal import ReplicatedJournal
from quorate.broker.groups.shard_context import ShardContext
from quorate.broker.groups.state import State
from quorate.quorum.incremental_work import finished
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_membership import MemberIdentity
from tests.unit.groups.harness import GROUP, World

KIB = 1024


def counted(world: World) -> int:
    """Return the counted bytes of the group, after a comparison with those of its members."""
    assert world.group.held_bytes == sum(each.held_bytes for each in world.group.members.values())
    assert world.shard._memory.used_bytes == world.group.held_bytes
    return world.group.held_bytes


def test_every_change_of_a_member_is_counted() -> None:
    world = World()
    ids = world.stable(3)
    stable = counted(world)
    assert stable > 3 * MEMBER_BYTES
    world.join(ids[1], metadata=bytes(5 * KIB))
    assert counted(world) > stable + 4 * KIB
    world.leave(MemberIdentity(member_id=ids[1]))
    assert counted(world) < stable
    world.clock.advance(10**6)  # all sessions expire
    assert counted(world) == 0
    assert world.state() is State.EMPTY


def test_a_static_member_that_returns_is_counted_once() -> None:
    world = World()
    first = world.join(instance="i")
    world.clock.advance(0)
    before = counted(world)
    world.sync(first.answer.member_id, first.answer.generation_id, instance="i")
    world.join(instance="i", metadata=bytes(KIB))
    world.clock.advance(0)
    assert before < counted(world) < before + 2 * KIB


def test_a_shard_counts_what_it_loads_and_nothing_after_its_end() -> None:
    world = World()
    world.stable(3)
    held = counted(world)
    world.take_over()
    assert counted(world) == held
    memory = world.shard._memory
    finished(world.shard.close())
    assert memory.used_bytes == 0


def test_a_group_whose_members_hold_too_much_refuses_a_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kafka keeps everything. The record of such a group would be too large in any case."""
    monkeypatch.setattr(joining, "MAX_GROUP_BYTES", 20 * KIB)
    world = World()
    ids = world.stable(2)
    for member_id in (world.join().answer.member_id, ids[1]):
        refused = world.join(member_id, metadata=bytes(20 * KIB))
        assert refused.answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert counted(world) < 20 * KIB
    protocols = world.join(world.join().answer.member_id, metadata=bytes(10 * KIB))
    assert not protocols.answers, "it has room, and waits for the others"


def test_a_member_that_is_refused_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its partitions stayed without a consumer, and its earlier JoinGroup without an answer."""
    monkeypatch.setattr(joining, "MAX_GROUP_BYTES", 20 * KIB)
    world = World()
    ids = world.stable(2)
    refused = world.join(ids[1], metadata=bytes(20 * KIB))
    assert refused.answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.heartbeat(ids[0], world.group.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    other = world.new_member()
    again = world.join(other.member_id, metadata=bytes(20 * KIB))
    assert again.answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert other.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    last = world.join(ids[0], metadata=bytes(20 * KIB))
    assert last.answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.state() is State.EMPTY
    assert counted(world) == 0


def test_assignments_that_are_too_large_are_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalance, "MAX_GROUP_BYTES", 20 * KIB)
    world = World()
    join = world.new_member()
    world.clock.advance(0)
    member_id, generation = join.answer.member_id, join.answer.generation_id
    records = len(world.journal.records)
    synced = world.sync(member_id, generation, {member_id: bytes(20 * KIB)})
    assert synced.answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(world.journal.records) == records
    assert counted(world) < 20 * KIB


def test_assignments_replace_those_of_the_last_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both were counted, so a group with large assignments could never rebalance."""
    monkeypatch.setattr(rebalance, "MAX_GROUP_BYTES", 20 * KIB)
    world = World()
    join = world.new_member()
    world.clock.advance(0)
    member_id = join.answer.member_id
    for number in range(3):
        assigned = {member_id: bytes(12 * KIB + number)}
        synced = world.sync(member_id, join.answer.generation_id, assigned)
        assert synced.answer.error_code == ErrorCode.NONE
        assert 12 * KIB < counted(world) < 15 * KIB
        join = world.join(member_id)


def test_the_groups_that_hold_the_most_lose_their_members(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """So invented groups with large metadata do not take the memory of a broker, and the groups of
    ordinary consumers stay."""
    world = World()
    memory = world.shard._memory
    memory.limit_bytes = 100 * KIB
    guard = Guard(lambda error: pytest.fail(repr(error)))
    journal = cast(ReplicatedJournal, world.journal)
    context = ShardContext(
        leader_epoch=0, shard=world.shard, journal=journal, guard=guard, ready=True
    )
    relief = Relief(world.clock, memory, lambda: [context])
    ids = world.stable(2)
    for number in range(40):
        world.join(known=False, group=f"invented {number}", metadata=bytes(10 * KIB))
        world.clock.advance(0)
        assert memory.used_bytes <= memory.limit_bytes
    assert memory.evicted > 20
    assert list(world.shard.groups[GROUP].members) == ids
    assert world.heartbeat(ids[0], world.group.generation) == ErrorCode.NONE
    (line, *_) = [each for each in caplog.messages if "loses its members" in each]
    assert "MAX_GROUPS_BYTES" in line
    relief.close()


def test_members_that_wait_are_answered_when_they_are_removed() -> None:
    world = World()
    join = world.new_member()
    world.clock.advance(0)
    other = world.new_member()
    assert not other.answers
    world.shard.evict(GROUP)
    assert other.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.state() is State.EMPTY
    assert world.heartbeat(join.answer.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    world.shard.evict("no such group")


def test_less_memory_is_no_reason_to_remove_members() -> None:
    memory = MemberMemory(10)
    full: list[None] = []
    memory.on_full = lambda: full.append(None)
    memory.add(20)
    memory.add(-5)
    assert len(full) == 1


def test_relief_goes_on_in_steps_and_ends_if_no_group_is_left() -> None:
    """A shard that is not ready may hold bytes that no step can free."""
    world = World()
    memory = world.shard._memory
    journal = cast(ReplicatedJournal, world.journal)
    guard = Guard(lambda error: pytest.fail(repr(error)))
    context = ShardContext(
        leader_epoch=0, shard=world.shard, journal=journal, guard=guard, ready=True
    )
    Relief(world.clock, memory, lambda: [context])
    for number in range(3 * MAX_EVICTED):
        world.join(known=False, group=f"g{number}", metadata=bytes(10 * KIB))
    memory.limit_bytes = 2 * KIB
    memory.add(1)
    world.clock.advance(0)
    assert memory.evicted == MAX_EVICTED
    for _ in range(10):
        world.clock.advance(REST_MS)
    assert memory.evicted == 3 * MAX_EVICTED
    memory.add(5 * KIB)
    waiting = world.clock.waiting
    world.clock.advance(REST_MS)
    assert memory.evicted == 3 * MAX_EVICTED
    assert world.clock.waiting < waiting, "no step follows one that freed nothing"


def test_a_client_that_is_refused_does_not_hold_up_the_join_phase() -> None:
    world = World()
    leader, follower = world.stable(2)
    joins = [world.join(leader)]
    late = world.join().answer.member_id
    joins.append(world.join(follower))
    refused = world.join(late, metadata=bytes(MAX_GROUP_BYTES))
    assert refused.answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [each.answer.generation_id for each in joins] == [2, 2]

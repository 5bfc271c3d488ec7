"""Long removals in a shard run in bounded steps, and lose no commit that comes in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.broker.groups.background import Background
from quorate.broker.groups.expiration import TOMBSTONE_ENTRIES
from quorate.broker.groups.guarded import Guard
from quorate.broker.groups.records import GroupRecord, OffsetKey, OffsetValue
from quorate.broker.groups.settings import GroupSettings
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.pace import STEP_ENTRIES
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.groups.harness import GROUP, TOPIC, World
from tests.unit.rpc.kafka.fakes import FakeClock

RETENTION_MS = 100_000
COUNT = 5000
MAX_TOMBSTONES = STEP_ENTRIES // TOMBSTONE_ENTRIES + 2
"""The last offset and the last group of a step may exceed the entries of the step."""


def full(one_group: bool) -> World:
    """Return a shard with COUNT offsets, in one group or in a group each."""
    world = World(GroupSettings(offsets_retention_ms=RETENTION_MS))
    for number in range(COUNT):
        key = OffsetKey(
            group=GROUP if one_group else f"group {number}", topic=TOPIC, partition=number
        )
        value = OffsetValue(offset=1, metadata="", commit_timestamp=world.clock.wall_ms())
        world.shard.replay(GroupRecord(key, value))
    return world


def expire(world: World) -> IncrementalWork[None]:
    world.clock.advance(RETENTION_MS)
    world.shard.expiration.expire()
    return world.shard.expiration.steps()


def delete_topic(world: World) -> IncrementalWork[None]:
    world.shard.expiration.topics_deleted([TOPIC])
    return world.shard.expiration.steps()


@pytest.mark.parametrize("one_group", [False, True])
@pytest.mark.parametrize("begin", [expire, delete_topic])
def test_no_step_removes_many_offsets(
    begin: Callable[[World], IncrementalWork[None]], one_group: bool
) -> None:
    world = full(one_group)
    written = 0
    for _ in begin(world):
        assert len(world.journal.records) - written <= MAX_TOMBSTONES
        written = len(world.journal.records)
    assert len(world.journal.records) - written <= MAX_TOMBSTONES
    assert not any(world.shard.offsets.of(group) for group in world.shard.groups)


def test_no_step_checks_many_offsets() -> None:
    """Nothing expires, so only the checks take time."""
    world = full(one_group=True)
    world.shard.expiration.expire()
    assert sum(1 for _ in world.shard.expiration.steps()) >= COUNT // STEP_ENTRIES


def test_an_offset_that_is_committed_again_between_two_steps_does_not_expire() -> None:
    world = full(one_group=True)
    steps = expire(world)
    next(steps)
    assert world.commit(7) == ErrorCode.NONE
    for _ in steps:
        pass
    assert world.fetched() == 7


def test_an_offset_of_a_topic_that_was_created_again_is_kept() -> None:
    """The topic is deleted and created again before the removal has reached the group."""
    world = full(one_group=True)
    steps = delete_topic(world)
    assert world.commit(7) == ErrorCode.NONE
    next(steps)
    for _ in steps:
        pass
    assert world.fetched() == 7
    assert len(world.shard.offsets.of(GROUP)) == 1


@pytest.mark.parametrize("begun", [False, True])
def test_an_offset_of_a_topic_that_was_deleted_twice_is_removed(begun: bool) -> None:
    world = full(one_group=True)
    steps = delete_topic(world)
    if begun:
        next(steps)
    assert world.commit(7) == ErrorCode.NONE
    world.shard.expiration.topics_deleted([TOPIC])
    for _ in steps:
        pass
    assert world.fetched() == -1


def test_a_removal_that_cannot_append_stops() -> None:
    world = full(one_group=True)
    world.journal.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    assert sum(1 for _ in expire(world)) == 0
    assert len(world.shard.offsets.of(GROUP)) == COUNT


@pytest.mark.parametrize("begin", [expire, delete_topic])
def test_long_group_ids_fit_into_the_batches_of_a_removal(
    begin: Callable[[World], IncrementalWork[None]],
) -> None:
    """A batch above max.message.bytes was refused. It ended each removal, so that no offset of the
    shard expired any more: one group with a long id could fill the memory of its coordinator."""
    world = World(GroupSettings(offsets_retention_ms=RETENTION_MS))
    for number in range(100):
        key = OffsetKey(group=f"{number}" + 10_000 * "\u20ac", topic=TOPIC, partition=number)
        value = OffsetValue(offset=1, metadata="", commit_timestamp=world.clock.wall_ms())
        world.shard.replay(GroupRecord(key, value))
    written = 0
    for _ in begin(world):
        assert sum(len(key) for key, _ in world.journal.records[written:]) < 200_000
        written = len(world.journal.records)
    assert not world.shard.offsets.count


def test_a_shard_is_loaded_and_closed_in_steps() -> None:
    world = full(one_group=False)
    assert sum(1 for _ in world.shard.loaded()) >= COUNT // STEP_ENTRIES
    assert sum(1 for _ in world.shard.close()) >= COUNT // STEP_ENTRIES
    assert not world.shard.groups


def test_the_background_runs_one_step_of_one_shard_at_a_time() -> None:
    clock = FakeClock()
    background = Background(clock)
    done: list[str] = []
    failures: list[Exception] = []

    def work(name: str, count: int, raises: bool = False) -> IncrementalWork[None]:
        for number in range(count):
            done.append(f"{name}{number}")
            yield
        if raises:
            raise ZeroDivisionError

    guard = Guard(failures.append)
    shards = [World().shard for _ in range(3)]
    background.add(shards[0], guard, work("a", 2))
    background.add(shards[0], guard, work("x", 1))
    background.add(shards[1], guard, work("b", 1, raises=True))
    background.add(shards[2], guard, work("c", 9))
    for expected in ("a0", "b0", "c0", "a1"):
        clock.advance(0)
        assert done[-1] == expected
    clock.advance(0)
    assert len(failures) == 1
    background.cancel(shards[2])
    for _ in range(5):
        clock.advance(0)
    assert done == ["a0", "b0", "c0", "a1"]
    assert clock.waiting == 0

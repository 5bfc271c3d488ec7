"""Committed offsets: commits, fetches, deletions and retention, and the end of a group."""

from __future__ import annotations

import pytest

from quorate.broker.groups import shard
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.groups.state import State
from quorate.quorum.incremental_work import finished
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_membership import MemberIdentity
from tests.unit.groups.harness import GROUP, SESSION_MS, World

E = ErrorCode
RETENTION_MS = 100_000
SETTINGS = GroupSettings(offsets_retention_ms=RETENTION_MS)


def test_a_consumer_that_assigns_itself_commits_without_a_group() -> None:
    world = World()
    assert world.fetched() == -1
    assert world.commit(7) == E.NONE
    assert world.fetched() == 7
    assert world.state() is State.EMPTY
    assert world.shard.describe(GROUP).protocol_type == ""


def test_members_commit_in_their_generation_only() -> None:
    world = World()
    assert world.commit(1, "x", 3) == E.GROUP_ID_NOT_FOUND
    assert world.commit(1, "x", 3, version=8) == E.ILLEGAL_GENERATION
    ids = world.stable(2)
    assert world.commit(1, ids[0], 1) == E.NONE
    assert world.commit(1, ids[0], 0) == E.ILLEGAL_GENERATION
    assert world.commit(1, "x", 1) == E.UNKNOWN_MEMBER_ID
    assert world.commit(1) == E.UNKNOWN_MEMBER_ID  # not a member
    rejoins = [world.join(each) for each in ids]
    assert rejoins[0].answer.generation_id == 2
    assert world.commit(2, ids[0], 2) == E.REBALANCE_IN_PROGRESS


def test_commits_while_others_rejoin_are_taken() -> None:
    """A member can still commit what it consumed before it gives up its partitions."""
    world = World()
    ids = world.stable(2)
    world.join(ids[0])
    assert world.state() is State.PREPARING_REBALANCE
    assert world.commit(5, ids[1], 1) == E.NONE


def test_a_commit_is_a_sign_of_life() -> None:
    world = World()
    ids = world.stable(1)
    world.clock.advance(SESSION_MS - 1)
    world.commit(1, ids[0], 1)
    world.clock.advance(SESSION_MS - 1)
    assert world.state() is State.STABLE


def test_each_partition_is_refused_by_itself() -> None:
    world = World()
    assert world.commit(1, topic="unknown") == E.UNKNOWN_TOPIC_OR_PARTITION
    assert world.commit(1, metadata="m" * 4097) == E.OFFSET_METADATA_TOO_LARGE
    assert not world.shard.groups
    assert world.commit(1, metadata="m" * 4096) == E.NONE


def test_a_commit_that_was_not_appended_changes_nothing() -> None:
    world = World()
    world.commit(1)
    world.journal.refusal = E.NOT_ENOUGH_REPLICAS
    assert world.commit(2) == E.COORDINATOR_NOT_AVAILABLE
    assert world.fetched() == 1


def test_the_next_coordinator_finds_the_last_commit_of_each_partition() -> None:
    world = World()
    for offset in (1, 2, 3):
        world.commit(offset)
    world.commit(9, topic="u")
    world.delete_offset("u")
    world.take_over()
    assert (world.fetched(), world.fetched("u")) == (3, -1)


def test_offsets_of_topics_that_are_consumed_are_not_deleted() -> None:
    world = World()
    assert world.delete_offset() == E.GROUP_ID_NOT_FOUND
    ids = world.stable(1)
    world.commit(1, ids[0], 1)
    world.commit(1, ids[0], 1, topic="u")
    assert world.delete_offset() == E.GROUP_SUBSCRIBED_TO_TOPIC
    assert world.delete_offset("u") == E.NONE
    assert (world.fetched(), world.fetched("u")) == (1, -1)


def test_a_group_of_another_protocol_type_keeps_its_offsets_while_it_lives() -> None:
    world = World()
    joined = world.join(known=False, protocol_type="connect", metadata=b"\xff")
    world.clock.advance(0)
    world.sync(joined.answer.member_id, 1, {})
    assert world.delete_offset() == E.NON_EMPTY_GROUP


def test_only_an_empty_group_is_deleted_and_with_it_all_it_had() -> None:
    world = World()
    assert world.delete() == E.GROUP_ID_NOT_FOUND
    ids = world.stable(1)
    world.commit(1, ids[0], 1)
    assert world.delete() == E.NON_EMPTY_GROUP
    world.leave(MemberIdentity(member_id=ids[0]))
    assert world.delete() == E.NONE
    world.take_over()
    assert not world.shard.groups
    assert world.fetched() == -1


def test_a_large_group_is_deleted_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch for 100,000 offsets took half a second, and was larger than a batch may be."""
    monkeypatch.setattr(shard, "MAX_DELETED_BYTES", 4 * (shard.TOMBSTONE_BYTES + len(GROUP)))
    world = World()
    for number in range(10):
        world.commit(1, topic=f"t{number}")
    before = len(world.journal.records)
    outcomes = [world.shard.delete(GROUP)]
    assert len(world.journal.records) == before + 4
    assert [world.fetched(f"t{number}") for number in range(10)].count(-1) == 4
    while not outcomes[-1]:
        outcomes.append(world.shard.delete(GROUP))
    assert outcomes == [False, False, True]
    world.take_over()
    assert not world.shard.groups and not list(world.shard.offsets.of(GROUP))


def test_a_group_that_gets_a_member_keeps_the_offsets_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shard, "MAX_DELETED_BYTES", 1)
    world = World()
    world.commit(1, topic="a")
    world.commit(1, topic="b")
    assert not world.shard.delete(GROUP)
    world.stable(1)
    assert world.delete() == E.NON_EMPTY_GROUP
    assert [world.fetched("a"), world.fetched("b")].count(1) == 1


def test_the_offsets_of_deleted_topics_go() -> None:
    world = World()
    world.commit(1)
    world.commit(1, topic="u")
    world.shard.expiration.topics_deleted(["t"])
    finished(world.shard.expiration.steps())
    assert (world.fetched(), world.fetched("u")) == (-1, 1)


def test_offsets_without_a_group_are_kept_from_their_commit_on() -> None:
    world = World(SETTINGS)
    world.commit(1)
    world.clock.advance(RETENTION_MS - 1)
    world.expire()
    assert world.fetched() == 1
    world.clock.advance(1)
    world.expire()
    assert not world.shard.groups
    world.take_over()
    assert not world.shard.groups


def test_offsets_of_a_group_are_kept_from_its_end_on() -> None:
    """KIP-211: a group that lived long must not lose its offsets as soon as it is empty."""
    world = World(SETTINGS)
    ids = world.stable(1)
    world.commit(1, ids[0], 1)
    for _ in range(2 * RETENTION_MS // (SESSION_MS - 1)):
        world.clock.advance(SESSION_MS - 1)
        world.heartbeat(ids[0], 1)
        world.expire()
    assert world.fetched() == 1
    world.leave(MemberIdentity(member_id=ids[0]))
    world.clock.advance(RETENTION_MS - 1)
    world.expire()
    assert world.fetched() == 1
    world.clock.advance(1)
    world.expire()
    assert not world.shard.groups


def test_offsets_of_topics_that_a_living_group_gave_up_expire() -> None:
    world = World(SETTINGS)
    ids = world.stable(1)
    world.commit(1, ids[0], 1)
    world.commit(1, ids[0], 1, topic="u")
    for _ in range(RETENTION_MS // (SESSION_MS - 1) + 1):
        world.clock.advance(SESSION_MS - 1)
        world.heartbeat(ids[0], 1)
    world.expire()
    assert (world.fetched(), world.fetched("u")) == (1, -1)


def test_a_commit_that_says_for_ever_is_kept_for_ever() -> None:
    """The sum of this retention and the time of day once was too large to write, which stopped the
    node."""
    world = World(SETTINGS)
    assert world.commit(1, version=4, retention_ms=2**63 - 1) == E.NONE
    world.take_over()
    world.clock.advance(10**12)
    world.expire()
    assert world.fetched() == 1


def test_a_commit_may_say_how_long_it_is_kept() -> None:
    """Up to v4, OffsetCommit has retention_time_ms. Only one version of the record can hold it."""
    world = World(SETTINGS)
    world.commit(1, version=4, retention_ms=5000)
    world.take_over()
    world.clock.advance(4999)
    world.expire()
    assert world.fetched() == 1
    world.clock.advance(1)
    world.expire()
    assert not world.shard.groups

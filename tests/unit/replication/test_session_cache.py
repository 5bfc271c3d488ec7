"""The fetch sessions that keep a slot when there are too few (KIP-227, KAFKA-9401)."""

from __future__ import annotations

import random

from quorate.broker.replication.fetches import fetch_session_cache as session_cache
from quorate.broker.replication.fetches.fetch_session_cache import EVICTION_MS, SessionCache
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.rpc.kafka.fakes import FakeClock


class Held:
    uses_topic_ids = True

    def __init__(self, size: int, *, of_follower: bool = False) -> None:
        self.id = 0
        self.next_epoch = 1
        self.of_follower = of_follower
        self.ended = 0
        self._size = size

    def __len__(self) -> int:
        return self._size

    def end(self) -> None:
        self.ended += 1


def follower(size: int = 1) -> Held:
    return Held(size, of_follower=True)


class Slots:
    def __init__(self, *sessions: Held) -> None:
        self.clock = FakeClock()
        self.cache = SessionCache(self.clock, random.Random(1), len(sessions))
        assert all(self.cache.add(each) for each in sessions)

    def use(self, session: Held) -> ErrorCode:
        return self.cache.find(
            session.id,
            session.next_epoch,
            of_follower=session.of_follower,
            uses_topic_ids=True,
        )[1]


def test_young_sessions_of_consumers_are_left_to_their_consumers() -> None:
    small = Held(1)
    slots = Slots(small, Held(2))
    slots.clock.advance(EVICTION_MS)
    assert slots.use(small) == 0
    assert not slots.cache.add(Held(100))
    assert small.ended == 0


def test_of_the_old_ones_the_smallest_makes_room_for_a_larger_one() -> None:
    sessions = [Held(3), Held(2), Held(4)]
    slots = Slots(*sessions)
    for _ in range(2):
        slots.clock.advance(EVICTION_MS - 1)
        assert [slots.use(each) for each in sessions] == [0, 0, 0]
    assert not slots.cache.add(Held(2))
    assert slots.cache.add(Held(3))
    assert [each.ended for each in sessions] == [0, 1, 0]
    assert slots.use(sessions[1]) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_long_unused_session_makes_room_for_any_other() -> None:
    stale, used = Held(50), Held(1)
    slots = Slots(stale, used)
    slots.clock.advance(EVICTION_MS)
    assert slots.use(used) == 0
    slots.clock.advance(1)
    assert slots.cache.add(Held(0))
    assert (stale.ended, used.ended) == (1, 0)


def test_a_follower_pushes_a_consumer_out_and_never_the_other_way() -> None:
    consumer, replica = Held(99), follower()
    slots = Slots(consumer, replica)
    assert slots.cache.add(follower())
    assert (consumer.ended, replica.ended) == (1, 0)
    for _ in range(2):
        slots.clock.advance(EVICTION_MS - 1)
        assert slots.use(replica) == 0
    slots = Slots(replica)
    slots.clock.advance(EVICTION_MS)
    assert not slots.cache.add(Held(1000))


def test_a_follower_has_a_session_when_there_are_no_slots() -> None:
    cache = SessionCache(FakeClock(), random.Random(1), 0)
    assert not cache.add(Held(1))
    assert all(cache.add(follower()) for _ in range(session_cache.MAX_FOLLOWERS_BEYOND))
    assert not cache.add(follower())


def test_sessions_of_followers_are_not_for_consumers() -> None:
    replica = follower()
    slots = Slots(replica)
    found = slots.cache.find(replica.id, 1, of_follower=False, uses_topic_ids=True)
    assert found == (None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert replica.next_epoch == 1


def test_ids_are_no_ones_else() -> None:
    """After a restart the ids differ, so that a client does not meet the id of its former
    session."""
    ids = [random.Random(seed).randrange(1, 1 << 31) for seed in (1, 2)]
    Slots(first := Held(1))
    assert first.id == ids[0] != ids[1]


def test_sessions_that_consumers_left_behind_end_without_pressure() -> None:
    """Once, they held their memory, up to the whole budget, until another session needed room."""
    left, used, of_follower = Held(10), Held(10), follower(10)
    slots = Slots(left, used, of_follower)
    for _ in range(8):
        slots.clock.advance(EVICTION_MS // 4)
        slots.use(used)
    assert (left.ended, used.ended, of_follower.ended) == (1, 0, 0)
    slots.cache.remove(used.id)
    slots.clock.advance(EVICTION_MS)
    assert slots.clock.waiting == 0, "without consumers' sessions there is no timer"


def test_a_cleared_cache_leaves_no_timer() -> None:
    slots = Slots(Held(1))
    slots.cache.clear()
    assert slots.clock.waiting == 0

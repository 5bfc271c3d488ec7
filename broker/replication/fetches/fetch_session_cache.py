"""The fetch sessions of one broker, of followers and of consumers: ids, epochs and slots (KIP-227).

`replica_sessions.py` and `consumer_sessions.py` own the contents and the answers.

Rules:

- A request names its session and the session's next epoch. Anything else is an error, and the
  fetcher begins a new session.
- There are `max_sessions` slots. If all are taken, a new session replaces the least recently used
  one if that was unused for EVICTION_MS. Otherwise it replaces the least valuable session that is
  older than EVICTION_MS, if the new one is more valuable. A new session of a follower may also
  replace any session of a consumer.
- A follower's session is more valuable than any consumer's. Between two of the same kind, the one
  with more partitions is more valuable.
- The sessions of consumers together hold at most `max_consumer_bytes`. The largest ones end if a
  smaller one needs room. The sessions of followers need no such bound, because they have only
  existing partitions.
- A consumer's session that was unused for EVICTION_MS ends soon after, even if no other session
  needs the room, because its consumer may be gone. A consumer that returns continues with a full
  fetch.
- Unlike in Kafka, a follower gets a session even if no slot is free, because followers here always
  use sessions. There may be at most MAX_FOLLOWERS_BEYOND sessions more than slots.
"""

from __future__ import annotations

from typing import Protocol

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Clock, Random, Timer

NO_SESSION = 0
"""The id of a response without a session, and of a request that begins one."""
FIRST_EPOCH = 0
"""The epoch of a full fetch that asks for a new session."""
FINAL_EPOCH = -1
"""The epoch of a fetch that ends its session and wants no new one."""
MAX_SESSION_EPOCH = 2**31 - 1
PARTITION_BYTES = 640
"""Estimated bytes of one partition of a consumer's session: tuple, name, offsets, dict entries."""
MAX_CONSUMER_BYTES = 128 << 20
"""The default of `max_consumer_bytes`."""
MAX_FOLLOWERS_BEYOND = 1000
"""Maximum number of sessions beyond `max_sessions`; only followers get them."""
EVICTION_MS = 120_000
"""Kafka's min.incremental.fetch.session.eviction.ms, a constant here."""


def epoch_after(epoch: int) -> int:
    """Return the epoch that follows `epoch`. It is never 0, which only begins a session."""
    return epoch % MAX_SESSION_EPOCH + 1


class Session(Protocol):
    """A fetch session.

    `next_epoch` is the epoch that its next request must have, and `len` the number of its
    partitions. `of_follower` is False for a consumer."""

    id: int
    next_epoch: int
    uses_topic_ids: bool

    @property
    def of_follower(self) -> bool:
        """Return True if the session belongs to a follower."""
        ...

    def __len__(self) -> int: ...

    def end(self) -> None:
        """Take note that the session has left the cache. Called once."""


class _Slot:
    __slots__ = ("counted", "created_ms", "session", "used_ms")

    def __init__(self, session: Session, now_ms: int) -> None:
        self.session = session
        self.counted = 0  # partitions in the budget of consumers' sessions
        self.created_ms = self.used_ms = now_ms

    @property
    def value(self) -> tuple[bool, int, int]:
        """Return the value by which sessions are compared: the smallest is replaced first."""
        return self.session.of_follower, len(self.session), self.session.id


class SessionCache:
    """The slots of one broker. The event loop owns the cache.

    Invariants: `consumer_bytes` is the estimate for all consumers' sessions and at most
    `max_consumer_bytes`; `_slots` is ordered by the last use."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        max_sessions: int,
        max_consumer_bytes: int = MAX_CONSUMER_BYTES,
    ) -> None:
        """Create an empty cache. `max_sessions` is the number of slots."""
        self.max_consumer_bytes = max_consumer_bytes
        self.consumer_bytes = 0
        """Estimated bytes of consumers' sessions."""
        self.evicted_for_bytes = 0
        self._clock = clock
        self._random = random
        self._max_sessions = max_sessions
        self._slots: dict[int, _Slot] = {}  # by session id, the least recently used first
        self._sweep_timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, session: Session) -> bool:
        """Set the id of `session` and keep it. Other sessions may end to make room.

        Return False, and keep nothing, if there is no room. The fetcher then has no session."""
        now_ms = self._clock.now_ms()
        if not session.of_follower and not self._make_bytes(session, len(session)):
            return False
        if len(self._slots) >= self._max_sessions and not self._make_room(session, now_ms):
            return False
        session.id = self._new_id()
        self._slots[session.id] = slot = _Slot(session, now_ms)
        self._count(slot)
        if not session.of_follower and self._sweep_timer is None:
            self._sweep_timer = self._clock.call_later(EVICTION_MS, self._sweep)
        return True

    def resized(self, session: Session) -> bool:
        """Count the partitions of a consumer's `session`, which is in the cache, again. Return
        False if the session was removed because there is no room for more."""
        slot = self._slots[session.id]
        grown = len(session) - slot.counted
        if grown > 0 and not self._make_bytes(session, grown):
            self.remove(session.id)
            self.evicted_for_bytes += 1
            return False
        self._count(slot)
        return True

    def _count(self, slot: _Slot) -> None:
        if not slot.session.of_follower:
            self.consumer_bytes += (len(slot.session) - slot.counted) * PARTITION_BYTES
            slot.counted = len(slot.session)
            assert self.consumer_bytes >= 0

    def _make_bytes(self, session: Session, partitions: int) -> bool:
        """Make room for more partitions of `session`: end the larger sessions of consumers, the
        largest first. Return False if there is still no room."""
        needed_bytes = self.consumer_bytes + partitions * PARTITION_BYTES - self.max_consumer_bytes
        if needed_bytes <= 0:
            return True
        larger = sorted(
            (
                slot
                for slot in self._slots.values()
                if slot.counted > len(session) and slot.session is not session
            ),
            key=lambda slot: slot.value,
        )
        if sum(slot.counted for slot in larger) * PARTITION_BYTES < needed_bytes:
            return False
        while needed_bytes > 0:
            heaviest = larger.pop()
            needed_bytes -= heaviest.counted * PARTITION_BYTES
            self.remove(heaviest.session.id)
            self.evicted_for_bytes += 1
        return True

    def find(
        self, session_id: int, epoch: int, *, of_follower: bool, uses_topic_ids: bool
    ) -> tuple[Session | None, ErrorCode]:
        """Return the session that a request names, and NONE.

        The session counts as used now, and its `next_epoch` advances. If the request does not match
        a session of its kind, return None and the error of the response:
        FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR."""
        slot = self._slots.get(session_id)
        if slot is None or slot.session.of_follower != of_follower:
            return None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if epoch != slot.session.next_epoch:
            return None, ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if slot.session.uses_topic_ids != uses_topic_ids:
            return None, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        slot.session.next_epoch = epoch_after(epoch)
        slot.used_ms = self._clock.now_ms()
        self._slots[session_id] = self._slots.pop(session_id)
        return slot.session, ErrorCode.NONE

    def get(self, session_id: int) -> Session | None:
        """Return the session with this id, or None."""
        slot = self._slots.get(session_id)
        return None if slot is None else slot.session

    def remove(self, session_id: int) -> None:
        """End a session. Ignore an unknown id."""
        slot = self._slots.pop(session_id, None)
        if slot is not None:
            self.consumer_bytes -= slot.counted * PARTITION_BYTES
            assert self.consumer_bytes >= 0
            slot.session.end()

    def clear(self) -> None:
        """End all sessions."""
        for session_id in list(self._slots):
            self.remove(session_id)
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None

    def _sweep(self) -> None:
        """End the consumers' sessions that were not used for EVICTION_MS."""
        self._sweep_timer = None
        now_ms = self._clock.now_ms()
        for slot in list(self._slots.values()):
            if not slot.session.of_follower and self._is_stale(slot, now_ms):
                self.remove(slot.session.id)
        if any(not slot.session.of_follower for slot in self._slots.values()):
            self._sweep_timer = self._clock.call_later(EVICTION_MS // 4, self._sweep)

    def _is_stale(self, slot: _Slot, now_ms: int) -> bool:
        return now_ms - slot.used_ms > EVICTION_MS

    def _make_room(self, newcomer: Session, now_ms: int) -> bool:
        oldest = next(iter(self._slots.values()), None)
        if oldest is not None and self._is_stale(oldest, now_ms):
            self.remove(oldest.session.id)
            return True
        weakest = min(
            (
                slot
                for slot in self._slots.values()
                if now_ms - slot.created_ms > EVICTION_MS
                or (newcomer.of_follower and not slot.session.of_follower)
            ),
            key=lambda slot: slot.value,
            default=None,
        )
        if weakest is None or (newcomer.of_follower, len(newcomer), 0) < weakest.value:
            most = self._max_sessions + MAX_FOLLOWERS_BEYOND
            return newcomer.of_follower and len(self._slots) < most
        self.remove(weakest.session.id)
        return True

    def _new_id(self) -> int:
        """Return a random unused id, so that a client does not meet its id of before a restart
        again."""
        while True:
            session_id = self._random.randrange(1, 1 << 31)
            if session_id not in self._slots:
                return session_id

"""The fetch sessions of one broker, followers' and consumers': ids, epochs and slots (KIP-227).

What a session holds and how it is answered is its owner's: `sessions.py` for followers,
`consumer_sessions.py` for consumers.

Rules
- A request names its session and the epoch that is next there; anything else is an error, and the
  fetcher begins anew.
- At most `max_sessions` at a time. A newcomer takes the place of the session that was longest not
  used, if that is EVICTION_MS ago; else of the least valuable of those that it may push out:
  consumers' for a follower, and for everybody those older than EVICTION_MS. Followers' are worth
  more than consumers', more partitions more than fewer.
- Consumers' sessions together hold at most `max_consumer_bytes`. The largest ones end when a
  smaller one needs room. A follower's session holds only partitions that exist.
- A consumer's session that was not used for EVICTION_MS ends also if no other session needs room,
  because its consumer may be gone. A consumer that comes back continues with a full fetch.
- Unlike in Kafka a follower gets one beyond the slots too: ours do not fetch without.
"""

from __future__ import annotations

from typing import Protocol

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Clock, Random, Timer

NO_SESSION = 0
FIRST_EPOCH = 0
FINAL_EPOCH = -1
MAX_SESSION_EPOCH = 2**31 - 1
PARTITION_BYTES = 640
"""Cost of one partition of a consumer's session: the tuple, its name, offsets, dict entries."""
MAX_CONSUMER_BYTES = 128 << 20
MAX_FOLLOWERS_BEYOND = 1000
EVICTION_MS = 120_000  # Kafka's min.incremental.fetch.session.eviction.ms, which nobody can set


def after(epoch: int) -> int:
    """0 only ever begins a session."""
    return epoch % MAX_SESSION_EPOCH + 1


class Session(Protocol):
    """`next_epoch` is the epoch that its next request must have; `len` its partitions."""

    id: int
    next_epoch: int
    uses_topic_ids: bool

    @property
    def of_follower(self) -> bool: ...

    def __len__(self) -> int: ...

    def end(self) -> None:
        """It is in no cache any more. Called once."""


class _Slot:
    __slots__ = ("counted", "created_ms", "session", "used_ms")

    def __init__(self, session: Session, now_ms: int) -> None:
        self.session = session
        self.counted = 0  # partitions in the budget of consumers' sessions
        self.created_ms = self.used_ms = now_ms

    @property
    def value(self) -> tuple[bool, int, int]:
        return self.session.of_follower, len(self.session), self.session.id


class SessionCache:
    def __init__(
        self,
        clock: Clock,
        random: Random,
        max_sessions: int,
        max_consumer_bytes: int = MAX_CONSUMER_BYTES,
    ) -> None:
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
        """Give `session` an id and keep it. Return False if there is no room for it."""
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
        """Count the partitions of a consumer's `session` anew. Return False if the session was
        removed, because its consumer asks for more than there is room for."""
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
        """Make room for more `partitions` of `session`: end the sessions of consumers that have
        more partitions than it, largest first. Return False if there is still no room."""
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
        """The session that a request is for, used by it; or the error, which names no session."""
        slot = self._slots.get(session_id)
        if slot is None or slot.session.of_follower != of_follower:
            return None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if epoch != slot.session.next_epoch:
            return None, ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if slot.session.uses_topic_ids != uses_topic_ids:
            return None, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        slot.session.next_epoch = after(epoch)
        slot.used_ms = self._clock.now_ms()
        self._slots[session_id] = self._slots.pop(session_id)
        return slot.session, ErrorCode.NONE

    def get(self, session_id: int) -> Session | None:
        slot = self._slots.get(session_id)
        return None if slot is None else slot.session

    def remove(self, session_id: int) -> None:
        slot = self._slots.pop(session_id, None)
        if slot is not None:
            self.consumer_bytes -= slot.counted * PARTITION_BYTES
            assert self.consumer_bytes >= 0
            slot.session.end()

    def clear(self) -> None:
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
        """By chance: a client must not meet its id of before a restart again."""
        while True:
            session_id = self._random.randrange(1, 1 << 31)
            if session_id not in self._slots:
                return session_id

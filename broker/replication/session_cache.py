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
- Unlike in Kafka a follower gets one beyond the slots too: ours do not fetch without.
"""

from __future__ import annotations

from typing import Protocol

from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.seams import Clock, Random

NO_SESSION = 0
FIRST_EPOCH = 0
FINAL_EPOCH = -1
MAX_SESSION_EPOCH = 2**31 - 1
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
    __slots__ = ("created_ms", "session", "used_ms")

    def __init__(self, session: Session, now_ms: int) -> None:
        self.session = session
        self.created_ms = self.used_ms = now_ms

    @property
    def value(self) -> tuple[bool, int, int]:
        return self.session.of_follower, len(self.session), self.session.id


class SessionCache:
    def __init__(self, clock: Clock, random: Random, max_sessions: int) -> None:
        self._clock = clock
        self._random = random
        self._max_sessions = max_sessions
        self._slots: dict[int, _Slot] = {}  # by session id, the least recently used first

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, session: Session) -> bool:
        """Gives it an id, unless there is no room for it."""
        now_ms = self._clock.now_ms()
        if len(self._slots) >= self._max_sessions and not self._make_room(session, now_ms):
            return False
        session.id = self._new_id()
        self._slots[session.id] = _Slot(session, now_ms)
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
            slot.session.end()

    def clear(self) -> None:
        for session_id in list(self._slots):
            self.remove(session_id)

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

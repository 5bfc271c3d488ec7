"""The fetch sessions of a broker's followers (KIP-227): which session a request continues.

A follower has one session for each of its fetchers (num.replica.fetchers). A fetcher's new session
replaces its earlier one. Only registered brokers have sessions. The sessions of one follower
together have a bounded number of partitions, because a faulty follower could begin many sessions
with all partitions. `replica_session.py` has the rules of one session, and `fetch_session_cache.py`
the ids, epochs and slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from quorate.broker.replication.appends.delayed_operations import (
    CoalescedCallbacks,
    DelayedOperations,
)
from quorate.broker.replication.fetches.consumer_fetches import NO_BOUND
from quorate.broker.replication.fetches.fetch_session_cache import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    SessionCache,
)
from quorate.broker.replication.fetches.replica_session import (
    MAX_UNKNOWN,
    ReplicaSession,
    Respond,
)
from quorate.broker.replication.fetches.session_context import SessionContext
from quorate.broker.replication.partitions.fetcher_numbers import fetcher_in
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.broker.replication.partitions.replication_throttle import ReplicationThrottle
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.fetch_request import FetchRequest
from quorate.quorum.seams import Clock

IDLE_SESSION_MAX_MS = 120_000
"""The time without a fetch after which a follower's session ends."""
SILENT_SESSION_MS = 10_000
"""The time without a fetch after which a session ends if its follower has too many partitions."""
SESSIONS_FACTOR = 4
"""The sessions of one follower together have at most so many times the partitions that one of them
may have."""


class ReplicaSessions:
    """The fetch sessions of a broker's followers, by replica id and fetcher. The event loop owns
    it."""

    def __init__(
        self,
        clock: Clock,
        delayed_operations: DelayedOperations,
        callbacks: CoalescedCallbacks,
        registry: PartitionRegistry,
        cache: SessionCache,
        throttle: ReplicationThrottle,
        room: Callable[[], int] = lambda: NO_BOUND,
    ) -> None:
        """Serve the partitions of `registry`. `throttle` is that of this broker as a leader. `room`
        returns the bytes that one more response may have (`quorum/rpc/budget.py`)."""
        self._registry = registry
        self._context = SessionContext(
            clock=clock,
            delayed_operations=delayed_operations,
            callbacks=callbacks,
            registry=registry,
            throttle=throttle,
            room=room,
        )
        self._cache = cache
        self._sessions: dict[tuple[int, int], ReplicaSession] = {}  # by replica id and fetcher
        self._counted: Counter[int] = Counter()  # partitions of all sessions, by replica id

    def fetch(self, request: FetchRequest, respond: Respond, client_id: str | None = None) -> None:
        """Answer the Fetch of a follower: call `respond` once, at the latest when the session ends
        or the fetcher sends another Fetch. `client_id` names the fetcher (`fetcher_numbers.py`).

        Errors of the session: BROKER_ID_NOT_REGISTERED, INVALID_REQUEST for too many partitions or
        fetchers, FETCH_SESSION_ID_NOT_FOUND (also if the cache has no room) and
        INVALID_FETCH_SESSION_EPOCH."""
        if request.replica_id not in self._registry.image.brokers:
            # An invented replica id must not begin a session.
            respond(ErrorCode.BROKER_ID_NOT_REGISTERED, NO_SESSION, ())
            return
        fetcher = fetcher_in(client_id)
        if fetcher is None or self._has_too_many(request):
            respond(ErrorCode.INVALID_REQUEST, NO_SESSION, ())
            return
        key = request.replica_id, fetcher
        current = self._sessions.get(key)
        if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
            if current is not None:
                self._cache.remove(current.id)
            if request.session_epoch == FINAL_EPOCH:
                respond(ErrorCode.NONE, NO_SESSION, ())
                return
            current = ReplicaSession(
                self._context,
                request.replica_id,
                request.replica_epoch,
                lambda ended: self._ended(key, ended),
            )
            if not self._cache.add(current):
                respond(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, ())
                return
            self._sessions[key] = current
        elif current is None or current.id != request.session_id:
            respond(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, ())
            return
        else:
            _, error = self._cache.find(
                current.id, request.session_epoch, of_follower=True, uses_topic_ids=True
            )
            if error:
                respond(error, NO_SESSION, ())
                return
        current.fetch(request, respond)
        if len(current) != current.counted and self._sessions.get(key) is current:
            self._count(request.replica_id, current, len(current))

    def _has_too_many(self, request: FetchRequest) -> bool:
        """Return True if a request names more partitions than can exist, or if its follower's
        sessions together have too many.

        When num.replica.fetchers was lowered, sessions of fetchers remain that send no fetch any
        more. They end first."""
        most = len(self._registry) + MAX_UNKNOWN
        named = len(request.partitions)
        if self._counted[request.replica_id] + named > SESSIONS_FACTOR * most:
            self._end_idle(SILENT_SESSION_MS)
        return named > most or self._counted[request.replica_id] + named > SESSIONS_FACTOR * most

    def _count(self, replica_id: int, session: ReplicaSession, partitions: int) -> None:
        self._counted[replica_id] += partitions - session.counted
        session.counted = partitions
        if not self._counted[replica_id]:
            del self._counted[replica_id]

    def metadata_applied(self) -> None:
        """Retry the partitions that wait for metadata. Call it when partitions were opened or
        changed their role."""
        for session in self._sessions.values():
            session.retry_awaiting()

    def throttle_changed(self) -> None:
        """Try again to send what the throttle held back. Call it when its limit was changed."""
        for session in self._sessions.values():
            session.throttle_changed()

    def end_idle(self) -> None:
        """End the sessions that have sent no fetch for IDLE_SESSION_MAX_MS. Call it
        periodically."""
        self._end_idle(IDLE_SESSION_MAX_MS)

    def _end_idle(self, max_idle_ms: int) -> None:
        now_ms = self._context.clock.now_ms()
        for session in list(self._sessions.values()):
            if session.idle_since_ms + max_idle_ms < now_ms:
                self._cache.remove(session.id)

    def close(self) -> None:
        """End all sessions. Their waiting fetches are answered."""
        for session in list(self._sessions.values()):
            self._cache.remove(session.id)

    def _ended(self, key: tuple[int, int], session: ReplicaSession) -> None:
        if self._sessions.get(key) is session:
            del self._sessions[key]
            self._count(key[0], session, 0)

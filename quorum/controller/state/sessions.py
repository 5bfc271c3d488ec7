"""Broker sessions: the deadline of each broker and its position in the metadata log.

Sessions are soft state of the active controller and are never in the log. Each activation gives
every broker a fresh session. The image decides whether a broker is fenced or in controlled
shutdown. `Sessions.follow` copies these two states, so that only unfenced brokers have a place in
the order of deadlines.

Invariants:

- Within a session the deadline only grows.
- A fenced broker is unfenced only after it has replayed the record that fenced or registered it.
  `unfence_offset` is the last offset of the image in which this controller first saw that record
  after its activation, so it may be later than the record. NoOp records do not change it, so they
  cannot keep the broker from catching up (KAFKA-13959).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sortedcontainers import SortedList  # type: ignore[import-untyped]

from quorate.quorum.metadata.image import Broker

NEVER_MS = 2**63 - 1
"""A time that never comes, for deadlines."""


@dataclass(slots=True)
class Session:
    """The session of one registration.

    `opened_ms` and `deadline_ms` are monotonic times. `metadata_offset` is the last offset that the
    broker reported as replayed. `controlled_shutdown_offset` is the last offset of the image in
    which this controller first saw its controlled shutdown. `metadata_backlog` is the number of
    records that the broker had not replayed at its last heartbeat. All three are -1 if unknown.
    """

    broker_id: int
    broker_epoch: int
    opened_ms: int
    deadline_ms: int
    unfence_offset: int
    fenced: bool = True
    shutting_down: bool = False
    metadata_offset: int = -1
    metadata_backlog: int = -1
    controlled_shutdown_offset: int = -1


class Sessions:
    """The sessions of all registered brokers, ordered by deadline. `Controller` owns it.

    Invariant: `_deadlines` contains exactly the unfenced brokers.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._by_broker: dict[int, Session] = {}
        self._deadlines = SortedList()

    def get(self, broker_id: int) -> Session | None:
        """Return the broker's session, or None."""
        return self._by_broker.get(broker_id)

    def __iter__(self) -> Iterator[Session]:
        """Yield the sessions of all registered brokers."""
        return iter(self._by_broker.values())

    def of(self, broker_id: int) -> Session:
        """Return the broker's session. Raise KeyError if it has none."""
        return self._by_broker[broker_id]

    def follow(self, broker: Broker, offset: int, now_ms: int) -> None:
        """Adopt a registration that is new or has changed in the image at `offset`.

        `offset` is the last offset of that image. A registration with a new epoch gets a new
        session. If the broker is fenced, it must replay up to `offset` before it can be unfenced,
        also if it was fenced before.
        """
        session = self._by_broker.get(broker.id)
        if session is None or session.broker_epoch != broker.epoch:
            self.close(broker.id)
            session = Session(broker.id, broker.epoch, now_ms, now_ms + self._timeout_ms, offset)
            self._by_broker[broker.id] = session
        if broker.fenced:
            self._leave_deadlines(session)
            session.unfence_offset = offset
            session.controlled_shutdown_offset = -1
        elif session.fenced:
            self._deadlines.add((session.deadline_ms, session.broker_id))
        session.fenced = broker.fenced
        session.shutting_down = broker.in_controlled_shutdown
        if broker.in_controlled_shutdown and session.controlled_shutdown_offset < 0:
            session.controlled_shutdown_offset = offset

    def close(self, broker_id: int) -> None:
        """End the broker's session, if it has one."""
        session = self._by_broker.pop(broker_id, None)
        if session is not None:
            self._leave_deadlines(session)

    def contact(self, session: Session, now_ms: int) -> None:
        """Extend the session to one timeout after `now_ms`. Never shorten it.

        A heartbeat that waited too long to be answered counts, too (KAFKA-15019).
        """
        deadline_ms = max(session.deadline_ms, now_ms + self._timeout_ms)
        if not session.fenced:
            self._leave_deadlines(session)
            self._deadlines.add((deadline_ms, session.broker_id))
        session.deadline_ms = deadline_ms

    def silent_ms(self, now_ms: int) -> dict[int, int]:
        """Return the time since the last contact of each unfenced broker, by its id."""
        return {
            broker_id: max(0, now_ms - (deadline_ms - self._timeout_ms))
            for deadline_ms, broker_id in self._deadlines
        }

    def is_valid(self, broker_id: int, now_ms: int) -> bool:
        """Return True if the broker, fenced or not, has a session that has not expired at
        `now_ms`."""
        session = self._by_broker.get(broker_id)
        return session is not None and now_ms < session.deadline_ms

    def first_stale(self, now_ms: int) -> int | None:
        """Return the unfenced broker with the earliest deadline if that deadline has passed, else
        None.

        The caller fences one broker at a time, so that each decision sees the effects of the
        previous one.
        """
        deadline_ms, broker_id = self._first()
        return broker_id if deadline_ms <= now_ms else None

    def deadline_ms(self) -> int:
        """Return the earliest deadline of an unfenced broker, or NEVER_MS."""
        return self._first()[0]

    def lowest_active_offset(self) -> int:
        """Return the lowest metadata offset that an active broker has reported, or NEVER_MS if no
        broker is active. An active broker that has reported none counts as -1.

        A controlled shutdown ends only when this offset has reached its beginning."""
        return min(
            (
                session.metadata_offset
                for session in self._by_broker.values()
                if not session.fenced and not session.shutting_down
            ),
            default=NEVER_MS,
        )

    def _first(self) -> tuple[int, int]:
        first: tuple[int, int] = self._deadlines[0] if self._deadlines else (NEVER_MS, -1)
        return first

    def _leave_deadlines(self, session: Session) -> None:
        if not session.fenced:
            self._deadlines.remove((session.deadline_ms, session.broker_id))

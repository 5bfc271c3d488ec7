"""Sessions of brokers: when each was last heard of, and how far it has replayed the metadata log.

Soft state of the active controller: never in the log, made anew at activation, when every broker
gets a fresh session. Whether a broker is fenced or shutting down is the image's; `follow` takes it
over, so that only unfenced brokers stand in the order of deadlines.

Invariants: a deadline only grows within a session; a fenced broker unfences only after it has
replayed the record that fenced or registered it (`unfence_offset`: a fixed offset, so that NoOp
records do not run ahead of it, KAFKA-13959).
"""

from __future__ import annotations

from dataclasses import dataclass

from sortedcontainers import SortedList  # type: ignore[import-untyped]

from quorate.quorum.metadata.image import Broker

NEVER_MS = 2**63 - 1


@dataclass(slots=True)
class Session:
    broker_id: int
    broker_epoch: int
    opened_ms: int
    deadline_ms: int
    unfence_offset: int
    fenced: bool = True
    shutting_down: bool = False
    metadata_offset: int = -1
    controlled_shutdown_offset: int = -1


class Sessions:
    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._by_broker: dict[int, Session] = {}
        self._deadlines = SortedList()

    def get(self, broker_id: int) -> Session | None:
        return self._by_broker.get(broker_id)

    def of(self, broker_id: int) -> Session:
        return self._by_broker[broker_id]

    def follow(self, broker: Broker, offset: int, now_ms: int) -> None:
        """The image has this registration since `offset`, and it is new or has changed."""
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
        session = self._by_broker.pop(broker_id, None)
        if session is not None:
            self._leave_deadlines(session)

    def contact(self, session: Session, now_ms: int) -> None:
        """Heard of, by whatever: also a heartbeat that waited too long to be acted upon counts
        (KAFKA-15019)."""
        deadline_ms = max(session.deadline_ms, now_ms + self._timeout_ms)
        if not session.fenced:
            self._leave_deadlines(session)
            self._deadlines.add((deadline_ms, session.broker_id))
        session.deadline_ms = deadline_ms

    def is_valid(self, broker_id: int, now_ms: int) -> bool:
        session = self._by_broker.get(broker_id)
        return session is not None and now_ms < session.deadline_ms

    def first_stale(self, now_ms: int) -> int | None:
        """The unfenced broker whose deadline passed first, one at a time: the effects of fencing it
        are seen before the next is looked at."""
        deadline_ms, broker_id = self._first()
        return broker_id if deadline_ms <= now_ms else None

    def deadline_ms(self) -> int:
        return self._first()[0]

    def lowest_active_offset(self) -> int:
        """How far every broker that may lead has replayed; controlled shutdown waits for it."""
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

"""The active controller of a rehearsal: production rules, whose records are committed immediately.

A failover replaces the controller by a new one, which begins with fresh sessions. Between the two
no request is answered and no session expires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quorate.quorum.analytics.rehearsal.assumptions import Assumptions
from quorate.quorum.analytics.replay.moment import Moment
from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.partitions.eligible_leaders import MIN_INSYNC_REPLICAS
from quorate.quorum.controller.state.decision_steps import Outcome
from quorate.quorum.controller.state.messages import BrokerHeartbeatRequest
from quorate.quorum.controller.state.result import AskReplicaLogs, Result
from quorate.quorum.controller.state.sessions import NEVER_MS
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from quorate.quorum.metadata.replay import replay
from quorate.quorum.seams import Random

CLUSTER_ID = "rehearsal"
MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


class VirtualController:
    """The controller and its log. `changed` is called with the delta of all appended records, and
    `asked` with each question for the logs of replicas."""

    def __init__(
        self,
        at: Moment,
        assumptions: Assumptions,
        random: Random,
        *,
        changed: Callable[[ImageDelta], None],
        asked: Callable[[AskReplicaLogs], None],
    ) -> None:
        self._settings = ControllerSettings(
            cluster_id=CLUSTER_ID,
            node_id=at.leader or 0,
            session_timeout_ms=assumptions.session_timeout_ms,
            max_idle_interval_ms=0,
            hints=False,
            topic_defaults={MIN_INSYNC_REPLICAS: assumptions.min_isr},
        )
        self._random, self._changed, self._asked = random, changed, asked
        self._began_ms, self._last = at.timestamp_ms, at.image.last
        self._image = at.image
        self._active: Controller | None = None

    @property
    def image(self) -> MetadataImage:
        """Return the metadata after all records."""
        return self._image

    @property
    def is_active(self) -> bool:
        """Return True if there is an active controller."""
        return self._active is not None

    def activate(self, now_ms: int) -> None:
        """Replace the active controller by a new one."""
        self._active = controller = Controller(self._settings, self._random)
        self._take(
            controller.activate(self._image, now_ms=now_ms, next_offset=self._next_offset), now_ms
        )

    def fail(self) -> None:
        """Leave the cluster without an active controller."""
        self._active = None

    def handle(self, request: object, now_ms: int) -> Any:
        """Return the response to a broker's request, or None without an active controller."""
        controller = self._active
        if controller is None:
            return None
        if isinstance(request, BrokerHeartbeatRequest):
            controller.contact(request.broker_id, request.broker_epoch, now_ms=now_ms)
        outcome = controller.handle(request, now_ms=now_ms, next_offset=self._next_offset)
        return self._take(outcome, now_ms)

    def answered(self, asked: AskReplicaLogs, response: Any, now_ms: int) -> None:
        """Take a broker's answer to a question, which may elect leaders."""
        if self._active is not None:
            self._take(self._active.replica_logs(asked, response, now_ms=now_ms), now_ms)

    def deadline_ms(self) -> int:
        """Return the time of the next tick, or NEVER_MS."""
        return NEVER_MS if self._active is None else self._active.deadline_ms()

    def tick(self, now_ms: int) -> None:
        """Do one piece of work that is due."""
        if self._active is not None:
            self._take(self._active.tick(now_ms), now_ms)

    @property
    def _next_offset(self) -> int:
        return self._last.offset + 1

    def _take(self, outcome: Outcome, now_ms: int) -> Any:
        """Append the records of all steps of a decision, and return its response."""
        controller = self._active
        assert controller is not None
        while not isinstance(outcome, Result):
            step = controller.resume(outcome, now_ms=now_ms, next_offset=self._next_offset)
            if isinstance(step, Result):
                outcome = step
            else:
                self._append(step or (), now_ms)
        self._append(outcome.records, now_ms)
        for effect in outcome.effects:
            if isinstance(effect, AskReplicaLogs):
                self._asked(effect)
        return outcome.response

    def _append(self, records: Sequence[MetadataRecord], now_ms: int) -> None:
        if not records or self._active is None:
            return
        self._last = EpochOffset(self._last.epoch, self._last.offset + len(records))
        state = [record for record in records if not isinstance(record, MARKERS)]
        self._image, delta = replay(self._image, state, self._last, self._began_ms + now_ms)
        self._active.replayed(self._image, delta)
        self._changed(delta)

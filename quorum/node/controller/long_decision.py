"""A decision of the active controller that takes several iterations of the event loop.

The steps of a rule (`controller/decision_steps.py`) are carried out one by one: the records of each
step are checked, replayed, and appended as one batch. A complete result with many records is
checked in steps, too. The shell makes no other decision before the last step.
"""

from __future__ import annotations

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.decision_steps import STEP_RECORDS, Outcome
from quorate.quorum.controller.state.result import Result
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.node.controller.controller_batch import WaitingRequest
from quorate.quorum.node.controller.controller_decision import Decision
from quorate.quorum.node.controller.uncommitted_decisions import UncommittedDecisions
from quorate.quorum.seams import Clock


def short(outcome: Outcome) -> Result | None:
    """Return the result, or None if the decision must be carried out in steps."""
    if isinstance(outcome, Result) and len(outcome.records) <= STEP_RECORDS:
        return outcome
    return None


class LongDecision:
    """A decision in progress, and its request. Owned by the node's event loop.

    `changes` is True as soon as records of it are in the log or in the batch. `is_event` is True if
    no node sent the request."""

    def __init__(
        self,
        clock: Clock,
        controller: Controller,
        decisions: UncommittedDecisions,
        asked: WaitingRequest,
        outcome: Outcome,
        *,
        is_event: bool,
    ) -> None:
        self.asked = asked
        self.is_event = is_event
        self.changes = False
        self._clock = clock
        self._controller = controller
        self._decisions = decisions
        self.work = self._carried_out(outcome)
        """The steps, which return the rest of the decision. They must not run after the loss of
        leadership."""

    def _carried_out(self, outcome: Outcome) -> IncrementalWork[Decision]:
        # The response of a complete result is encoded before anything changes.
        while not isinstance(outcome, Result):
            step = self._controller.resume(
                outcome, now_ms=self._clock.now_ms(), next_offset=self._decisions.next_offset
            )
            if isinstance(step, Result):
                outcome = step
                break
            if step:
                self.changes = True
                self._decisions.add(step, self.asked.asked_ms)
            yield
        encode, records = self.asked.encode, outcome.records
        if len(records) <= STEP_RECORDS:
            return self._decisions.checked(outcome, self._decisions.next_offset, encode)
        response = encode(outcome.response)
        if outcome.atomic:
            part = yield from self._decisions.checked_in_steps(records)
            return Decision([part], response, outcome.effects)
        for start in range(0, len(records), STEP_RECORDS):
            self.changes = True
            self._decisions.add(records[start : start + STEP_RECORDS], self.asked.asked_ms)
            yield
        return Decision([], response, outcome.effects)

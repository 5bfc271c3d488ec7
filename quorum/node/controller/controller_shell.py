"""Runs the controller's rules: it decides requests, appends their records, and answers on commit.

The requests that wait in one iteration of the event loop are decided one after the other. Each
decision starts from the latest image, which contains the changes of all decisions before it. Their
records are appended as one batch, which costs one write, one fsync and one round of replication
(group commit). A full batch is appended earlier (`controller_decision.py` has the bounds). If
requests are left after SLICE_MS, the batch is appended, and they wait for the next iteration. With
controller.quorum.append.linger.ms, the first request waits that long for others to share its batch.
A long decision (`long_decision.py`) does one step in each iteration, and all others wait for it.

A request is decided completely before anything changes: the rule runs, its records are encoded and
read back, they are replayed on the latest image, and the answer is encoded. The image is a
persistent value, so the replay does not change it. If one of these steps raises an exception, the
request is refused with FAILED or TOO_LARGE (`Refusal` in `controller_batch.py`), and nothing is
appended. A long decision does the same for each of its steps. If a later step fails, the request is
refused with UNKNOWN. Only StateInDoubt stops the node. A decision without a request (a tick, a
probe, an activation) has no sender to refuse, so any exception in it stops the node.

Invariants:

- The rules decide only while this controller is active. An active controller has committed the
  leader change record of its epoch, and has replayed all records of earlier epochs.
- An answer leaves only when everything that its decision rests on is committed, also if the request
  has no records of its own.
- Every answer callback runs exactly once, unless the node fails. The answers that wait for a commit
  are in `uncommitted_decisions.py`. NOT_CONTROLLER proves that no change of the request was
  appended. UNKNOWN means that leadership was lost after changes of the request may have been
  appended. The next leader may still commit them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.context import Caller
from quorate.quorum.controller.state.decision_steps import Outcome
from quorate.quorum.controller.state.result import Effect
from quorate.quorum.controller.state.sessions import NEVER_MS
from quorate.quorum.histogram import US_PER_MS, Histogram
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node.controller.controller_batch import (
    Answer,
    Backlog,
    Encode,
    MetadataLog,
    Refusal,
    Rule,
    WaitingRequest,
    discard,
    unencoded,
)
from quorate.quorum.node.controller.controller_decision import Decision, TooLarge
from quorate.quorum.node.controller.controller_queue import ControllerQueue
from quorate.quorum.node.controller.long_decision import LongDecision, short
from quorate.quorum.node.controller.uncommitted_decisions import UncommittedDecisions
from quorate.quorum.seams import Clock, Timer
from quorate.quorum.state_in_doubt import StateInDoubt
from quorate.quorum.watch.recent_changes import RecentChanges

MAX_UNCOMMITTED = 20_000
"""Number of answers waiting for a commit at which new requests are refused. Queued requests are
still decided. So many answers wait if no majority of the voters is reachable."""
MAX_UNCOMMITTED_BYTES = 128 << 20
"""The same for the bytes of these answers."""
SLICE_MS = 10
"""Time, in ms, after which the controller appends its batch and lets the event loop run."""
MAX_LINGERING = 1_000
"""Number of queued requests that ends the wait of controller.quorum.append.linger.ms."""

logger = logging.getLogger("quorate.quorum.controller")


class ControllerShell:
    """The shell of one controller. Owned by the node's event loop; no method blocks.

    Four attributes count for the metrics. `operations` counts decisions, also failed ones.
    `turned_away` counts requests that the active controller refused because its queue was full or
    MAX_UNCOMMITTED answers waited. `failed_requests` counts requests refused with FAILED, and
    `expired_requests` those refused with EXPIRED. `queue_times` and `processing_times` have the
    requests: the wait for the decision, and the decision or its first step."""

    def __init__(
        self,
        clock: Clock,
        controller: Controller,
        log: MetadataLog,
        *,
        discard_uncommitted: Callable[[], None],
        carry_out: Callable[[Effect], None],
        linger_ms: int = 0,
    ) -> None:
        """`discard_uncommitted` makes the rules follow the committed image again. `carry_out` gets
        the effects of decisions. `linger_ms` is the longest time that a request waits for others to
        share its batch."""
        self._decisions = UncommittedDecisions(
            clock, controller, log, leadership_lost=self.deactivate, carry_out=carry_out
        )
        self._clock = clock
        self._controller = controller
        self._discard_uncommitted = discard_uncommitted
        self.operations = self.turned_away = self.failed_requests = self.expired_requests = 0
        self.queue_times, self.processing_times = Histogram(), Histogram()
        self._failures = LogLimit(clock)
        self._requests: ControllerQueue[WaitingRequest] = ControllerQueue()
        self._long: LongDecision | None = None
        self._events: deque[Rule] = deque()
        self._drain_scheduled = False
        self._linger_ms = linger_ms
        self._lingering: Timer | None = None
        self._timer: Timer | None = None

    @property
    def active(self) -> bool:
        """Return True if this is the active controller."""
        return self._decisions.active

    @property
    def recent_changes(self) -> RecentChanges:
        """Return the newest changes that this controller decided."""
        return self._decisions.recent_changes

    def backlog(self) -> Backlog:
        """Return the requests and answers that wait."""
        now_ms = self._clock.now_ms()
        oldest_ms = min((each.asked_ms for each in self._requests.oldest()), default=now_ms)
        return Backlog(len(self._requests), now_ms - oldest_ms, self._decisions.waiting)

    def submit(
        self,
        request: object,
        answer: Answer,
        *,
        encode: Encode = unencoded,
        source: Hashable | None = None,
        linearizable: bool = False,
        caller: Caller | None = None,
        timeout_ms: int = 0,
        size_bytes: int = 0,
    ) -> None:
        """Decide `request` in a later iteration of the loop, in the order of `ControllerQueue`.
        Call `answer` with the encoded response when the decision is committed, or with a Refusal.

        `encode` turns the response of the rule into what `answer` gets. It runs before anything is
        appended. If it or the rule raises, the answer is FAILED. It is TOO_LARGE if the records of
        an atomic result exceed MAX_RESULT_BYTES (`controller_decision.py`). It is UNKNOWN or
        NOT_CONTROLLER if leadership is lost before the commit (see the module).

        `source` is the connection or node through which a client's request came, or None for a
        node's own request. If `linearizable`, the answer waits for a commit even if the request
        changes nothing. A deposed leader that does not know of its successor can then not answer
        from an old image (R33 in tests/scenarios).

        `caller` is the client that sent the request, or None for a node. If the request waits for
        longer than `timeout_ms` before its decision, the answer is EXPIRED, and nothing changes. A
        timeout that is not positive means no limit.

        `size_bytes` is the memory that the request holds. The answer is NOT_CONTROLLER, before the
        return, if this controller is not active, if the queue is full or holds too much of
        `source`, or if MAX_UNCOMMITTED answers or MAX_UNCOMMITTED_BYTES wait for a commit."""
        now_us = self._clock.now_us()
        now_ms = now_us // US_PER_MS
        until_ms = now_ms + timeout_ms if timeout_ms > 0 else NEVER_MS
        waiting = WaitingRequest(
            request, answer, encode, linearizable, caller, until_ms, now_us, size_bytes
        )
        stalled = (
            self._decisions.waiting >= MAX_UNCOMMITTED
            or self._decisions.waiting_bytes >= MAX_UNCOMMITTED_BYTES
        )
        if not self.active or stalled or not self._requests.push(waiting, source, size_bytes):
            self.turned_away += self.active
            answer(Refusal.NOT_CONTROLLER)
            return
        if self._linger_ms == 0 or len(self._requests) >= MAX_LINGERING:
            self._schedule()
        elif self._lingering is None:
            self._lingering = self._clock.call_later(self._linger_ms, self._drain)

    def activate(self, image: MetadataImage, epoch: int, *, in_transaction: bool) -> None:
        """Become the active controller of `epoch`, and append the records of the activation.

        `image` is that of the whole log, which is committed. `in_transaction` is True if the log
        ends inside a metadata transaction. This controller must not be active, and `epoch` must be
        later than that of its last activation."""
        self._decisions.start(image, epoch)
        self._decisions.events.activated(epoch, image.last.offset)
        self._rule_now(
            lambda now_ms, next_offset: self._controller.activate(
                image, now_ms=now_ms, next_offset=next_offset, in_transaction=in_transaction
            )
        )

    def deactivate(self) -> None:
        """Stop deciding, because leadership is lost, and drop the latest image.

        Refuse all requests that wait: those whose changes were appended with UNKNOWN, the others
        with NOT_CONTROLLER. Do nothing if this controller is not active."""
        if not self.active:
            return
        waiting = self._decisions.clear()
        refused = len(self._requests) + len(waiting)
        self._decisions.events.deactivated(self._decisions.epoch, refused)
        long, self._long = self._long, None
        self._events.clear()
        self._controller.deactivate()
        self._discard_uncommitted()
        self._end_linger()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        requests = self._requests.clear()
        for each in waiting:
            each.leadership_lost()
        if long is not None:
            long.asked.answer(Refusal.UNKNOWN if long.changes else Refusal.NOT_CONTROLLER)
        for request in requests:
            request.answer(Refusal.NOT_CONTROLLER)

    def committed(self, high_watermark: int) -> MetadataImage | None:
        """Answer the requests that are committed now. Remove the stored images that are committed,
        and return the newest of them, or None. `high_watermark` must not fall."""
        return self._decisions.committed(high_watermark)

    def handle_event(self, event: Rule) -> None:
        """Decide on an event that no request caused, such as the result of a probe, and append the
        records of the first step before the return. If a long decision is in progress, decide after
        it. Do nothing if this controller is not active. An exception of the
        rule, or of a check of its records, is raised to the caller, and must stop the node."""
        if self.active:
            self._rule_now(event)

    def wake(self) -> None:
        """Look at the deadline of the rules again, which new soft state may have moved."""
        self._arm()

    def _schedule(self) -> None:
        if not self._drain_scheduled:
            self._drain_scheduled = True
            self._clock.call_soon(self._drain)

    def _drain(self) -> None:
        self._drain_scheduled = False
        self._end_linger()
        now_ms = self._clock.now_ms()
        slice_end_ms = now_ms + SLICE_MS
        if self._long is not None:
            self._go_on(self._long)
            now_ms = self._clock.now_ms()
        while self._events and self._long is None:
            self._decide_event(self._events.popleft())
        while self._requests and self._long is None and now_ms < slice_end_ms:
            request, begun_us = self._requests.pop(), self._clock.now_us()
            self.queue_times.observe(begun_us - request.asked_us)
            self._serve(request, now_ms)
            self.processing_times.observe(self._clock.now_us() - begun_us)
            now_ms = self._clock.now_ms()
        self._decisions.append()
        self._arm()
        if self._requests:
            self._schedule()

    def _end_linger(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None

    def _serve(self, asked: WaitingRequest, now_ms: int) -> None:
        """Decide one request and carry the decision out, or refuse it."""
        if now_ms > asked.deadline_ms:
            self.expired_requests += 1
            asked.answer(Refusal.EXPIRED)
            return
        self.operations += 1
        next_offset = self._decisions.next_offset
        try:
            outcome = self._controller.handle(
                asked.request, now_ms=now_ms, next_offset=next_offset, caller=asked.caller
            )
            result = short(outcome)
            if result is None:
                self._begin(outcome, asked)
                return
            decision = self._decisions.checked(result, next_offset, asked.encode)
        except StateInDoubt:
            raise
        except Exception as error:
            self._refuse(asked, error)
            return
        self._decisions.carry(decision, asked)

    def _refuse(self, asked: WaitingRequest, error: Exception, *, changes: bool = False) -> None:
        """Answer TOO_LARGE, or FAILED after an exception that no rule expects. If earlier steps of
        the decision have made changes, answer UNKNOWN."""
        if isinstance(error, TooLarge) and not changes:
            asked.answer(Refusal.TOO_LARGE)
            return
        self.failed_requests += 1
        name = type(asked.request).__name__
        left_out = self._failures.passes((name, type(error)))
        if left_out is not None:
            logger.error(
                "refused a %s: it failed with %r before %s was changed%s",
                name,
                error,
                "everything" if changes else "anything",
                left_out,
                exc_info=error,
            )
        asked.answer(Refusal.UNKNOWN if changes else Refusal.FAILED)

    def _rule_now(self, rule: Rule) -> None:
        """Decide without a request, after a long decision in progress. An exception stops the node,
        because its state is in doubt."""
        if self._long is not None:
            self._events.append(rule)
            return
        self._decide_event(rule)
        self._decisions.append()
        self._arm()

    def _decide_event(self, rule: Rule) -> None:
        self.operations += 1
        next_offset = self._decisions.next_offset
        now_ms = self._clock.now_ms()
        outcome = rule(now_ms, next_offset)
        asked = WaitingRequest(rule, discard, unencoded, False, None, NEVER_MS, now_ms * US_PER_MS)
        result = short(outcome)
        if result is None:
            self._begin(outcome, asked, is_event=True)
        else:
            self._decisions.carry(self._decisions.checked(result, next_offset, unencoded), asked)

    # -- long decisions --------------------------------------------------------------------------

    def _begin(self, outcome: Outcome, asked: WaitingRequest, *, is_event: bool = False) -> None:
        self._long = LongDecision(
            self._clock, self._controller, self._decisions, asked, outcome, is_event=is_event
        )
        self._go_on(self._long)

    def _go_on(self, long: LongDecision) -> None:
        """Do one step of the decision, and schedule the next. After the last one, carry out the
        rest of it."""
        decision: Decision | None = None
        try:
            next(long.work)
        except StopIteration as end:
            decision = end.value
        except Exception as error:
            if isinstance(error, StateInDoubt) or long.is_event:
                raise
            self._long = None
            self._refuse(long.asked, error, changes=long.changes)
            return
        if decision is None:
            self._schedule()
            return
        assert self._long is long, "leadership was lost in the last step, which appends nothing"
        self._long = None
        self._decisions.carry(decision, long.asked, changes=long.changes)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = NEVER_MS
        if self.active and self._long is None:
            deadline_ms = self._controller.deadline_ms()
        if deadline_ms != NEVER_MS:
            delay_ms = max(0, deadline_ms - self._clock.now_ms())
            self._timer = self._clock.call_later(delay_ms, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self.active:
            self._rule_now(lambda now_ms, _: self._controller.tick(now_ms))

"""Runs the controller's rules: it decides requests, appends their records, and answers on commit.

The requests that wait in one iteration of the event loop are decided one after the other. Each
decision starts from the latest image, which contains the changes of all decisions before it. Their
records are appended as one batch, which costs one write, one fsync and one round of replication
(group commit). A full batch is appended earlier (`controller_decision.py` has the bounds). If
requests are left after SLICE_MS, the batch is appended, and they wait for the next iteration. With
controller.quorum.append.linger.ms, the first request waits that long for others to share its batch.

A request is decided completely before anything changes: the rule runs, its records are encoded and
read back, they are replayed on the latest image, and the answer is encoded. The image is a
persistent value, so the replay does not change it. If one of these steps raises an exception, the
request is refused with FAILED or TOO_LARGE (`Refusal` in `controller_batch.py`), and nothing is
appended. Only StateInDoubt stops the node. A decision without a request (a tick, a probe, an
activation) has no sender to refuse, so any exception in it stops the node.

Invariants:

- The rules decide only while this controller is active. An active controller has committed the
  leader change record of its epoch, and has replayed all records of earlier epochs.
- An answer leaves only when everything that its decision rests on is committed, also if the request
  has no records of its own.
- Every answer callback runs exactly once, unless the node fails. NOT_CONTROLLER proves that no
  change of the request was appended. UNKNOWN means that leadership was lost after changes of the
  request may have been appended. The next leader may still commit them.
- The latest image is the committed image plus the records that are appended or in the batch.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable, Sequence

from quorate.quorum.controller.context import Caller
from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.result import Effect, Result
from quorate.quorum.controller.sessions import NEVER_MS
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import NoOpRecord
from quorate.quorum.node.controller_batch import (
    Answer,
    Backlog,
    Batch,
    Encode,
    MetadataLog,
    Refusal,
    Rule,
    WaitingAnswer,
    WaitingRequest,
    discard,
    unencoded,
)
from quorate.quorum.node.controller_decision import Decision, Part, TooLarge, decided
from quorate.quorum.node.controller_queue import ControllerQueue
from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.seams import Clock, Timer
from quorate.quorum.state_in_doubt import StateInDoubt, changing
from quorate.quorum.watch.recent_changes import DecidedChanges, RecentChanges

MAX_UNCOMMITTED = 20_000
"""Number of answers waiting for a commit at which new requests are refused. Queued requests are
still decided. So many answers wait if no majority of the voters is reachable."""
MAX_IMAGES = 1_000
"""Maximum number of stored images, one after each batch that is not committed yet. Beyond it, the
image of a new batch replaces that of the batch before."""
SLICE_MS = 10
"""Time, in ms, after which the controller appends its batch and lets the event loop run."""
MAX_LINGERING = 1_000
"""Number of queued requests that ends the wait of controller.quorum.append.linger.ms."""
NO_OP = Result((NoOpRecord(),))
"""A record that changes nothing. A linearizable request appends it if the batch has no other
record, because its answer must wait for a new commit."""

logger = logging.getLogger("quorate.quorum.controller")


class ControllerShell:
    """The shell of one controller. Owned by the node's event loop; no method blocks.

    Four attributes count for the metrics. `operations` counts decisions, also failed ones.
    `turned_away` counts requests that the active controller refused because its queue was full or
    MAX_UNCOMMITTED answers waited. `failed_requests` counts requests refused with FAILED, and
    `expired_requests` those refused with EXPIRED."""

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
        self.recent_changes = RecentChanges()
        self._clock = clock
        self._controller = controller
        self._log = log
        self._discard_uncommitted = discard_uncommitted
        self._carry_out = carry_out
        self.operations = self.turned_away = self.failed_requests = self.expired_requests = 0
        self._failures = LogLimit(clock)
        self._requests: ControllerQueue[WaitingRequest] = ControllerQueue()
        self._waiting: deque[WaitingAnswer] = deque()
        self._images: deque[MetadataImage] = deque()
        self._batch = Batch()
        self._latest: MetadataImage | None = None
        self._epoch = -1
        self._high_watermark = 0
        self._drain_scheduled = False
        self._linger_ms = linger_ms
        self._lingering: Timer | None = None
        self._timer: Timer | None = None

    @property
    def active(self) -> bool:
        """Return True if this is the active controller."""
        return self._latest is not None

    def backlog(self) -> Backlog:
        """Return the requests and answers that wait."""
        now_ms = self._clock.now_ms()
        oldest_ms = min((each.asked_ms for each in self._requests.oldest()), default=now_ms)
        return Backlog(len(self._requests), now_ms - oldest_ms, len(self._waiting))

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

        The answer is NOT_CONTROLLER, before the return, if this controller is not active, if the
        queue is full or holds too many requests of `source`, or if MAX_UNCOMMITTED answers wait for
        a commit."""
        now_ms = self._clock.now_ms()
        until_ms = now_ms + timeout_ms if timeout_ms > 0 else NEVER_MS
        waiting = WaitingRequest(request, answer, encode, linearizable, caller, until_ms, now_ms)
        stalled = len(self._waiting) >= MAX_UNCOMMITTED
        if not self.active or stalled or not self._requests.push(waiting, source):
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
        assert not self.active and not self._batch.values, "a controller was activated twice"
        assert epoch > self._epoch, "a controller was activated in an old epoch"
        logger.info("active controller of epoch %d at offset %d", epoch, image.last.offset)
        self._epoch = epoch
        self._latest = image
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
        logger.info("no longer the active controller (epoch %d)", self._epoch)
        self._latest = None
        self._images.clear()
        self.recent_changes.discard_from(self._high_watermark)
        self._controller.deactivate()
        self._discard_uncommitted()
        self._end_linger()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, deque()
        requests = self._requests.clear()
        for each in waiting:
            each.leadership_lost()
        for request in requests:
            request.answer(Refusal.NOT_CONTROLLER)

    def committed(self, high_watermark: int) -> MetadataImage | None:
        """Answer the requests that are committed now. Remove the stored images that are committed,
        and return the newest of them, or None. `high_watermark` must not fall."""
        assert high_watermark >= self._high_watermark, "the high watermark fell"
        self._high_watermark = high_watermark
        image = None
        while self._images and self._images[0].last.offset < high_watermark:
            image = self._images.popleft()
        self._answer_committed()
        return image

    def handle_event(self, event: Rule) -> None:
        """Decide on an event that no request caused, such as the result of a probe, and append the
        records before the return. Do nothing if this controller is not active. An exception of the
        rule, or of a check of its records, is raised to the caller, and must stop the node."""
        if self.active:
            self._rule_now(event)

    def _schedule(self) -> None:
        if not self._drain_scheduled:
            self._drain_scheduled = True
            self._clock.call_soon(self._drain)

    def _drain(self) -> None:
        self._drain_scheduled = False
        self._end_linger()
        now_ms = self._clock.now_ms()
        slice_end_ms = now_ms + SLICE_MS
        while self._requests and self._latest is not None:
            self._serve(self._requests.pop(), now_ms)
            now_ms = self._clock.now_ms()
            if now_ms >= slice_end_ms:
                break
        self._append()
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
        next_offset = self._next_offset
        try:
            result = self._controller.handle(
                asked.request, now_ms=now_ms, next_offset=next_offset, caller=asked.caller
            )
            decision = self._checked(result, next_offset, asked.encode)
        except StateInDoubt:
            raise
        except TooLarge:
            asked.answer(Refusal.TOO_LARGE)
            return
        except Exception as error:
            self._refuse(asked, error)
            return
        self._carry(decision, asked.answer, asked.asked_ms, linearizable=asked.linearizable)

    def _refuse(self, asked: WaitingRequest, error: Exception) -> None:
        """Answer FAILED: an exception that no rule expects, raised before anything changed."""
        self.failed_requests += 1
        name = type(asked.request).__name__
        left_out = self._failures.passes((name, type(error)))
        if left_out is not None:
            logger.error(
                "refused a %s: it failed with %r before anything was changed%s",
                name,
                error,
                left_out,
                exc_info=error,
            )
        asked.answer(Refusal.FAILED)

    def _rule_now(self, rule: Rule) -> None:
        """Decide without a request. An exception stops the node, because its state is in doubt."""
        self.operations += 1
        next_offset = self._next_offset
        now_ms = self._clock.now_ms()
        result = rule(now_ms, next_offset)
        self._carry(self._checked(result, next_offset, unencoded), discard, now_ms)
        self._append()
        self._arm()

    def _checked(self, result: Result, next_offset: int, encode: Encode) -> Decision:
        """Return the checked outcome of a rule. If it raises, nothing has changed."""
        assert self._latest is not None, "only the active controller decides"
        first = EpochOffset(self._epoch, next_offset)
        parts = decided(result, self._latest, first, self._clock.wall_ms())
        return Decision(parts, encode(result.response), result.effects)

    def _carry(
        self, decision: Decision, answer: Answer, asked_ms: int, *, linearizable: bool = False
    ) -> None:
        """Add the records to the batch, and let the answer wait for them and all before them.
        `asked_ms` is the time of the request or event."""
        effects = [*decision.effects]
        for part in decision.parts:
            effects += self._add(part, asked_ms)
        if linearizable and not self._batch.values and self._latest is not None:
            first = EpochOffset(self._epoch, self._next_offset)
            for part in decided(NO_OP, self._latest, first, self._clock.wall_ms()):
                effects += self._add(part, asked_ms)
        self._batch.answers.append(
            WaitingAnswer(self._next_offset - 1, decision.response, answer, bool(decision.parts))
        )
        for effect in effects:
            self._carry_out(effect)

    def _add(self, part: Part, asked_ms: int) -> Sequence[Effect]:
        if self._batch.values and not self._batch.has_room_for(part):
            self._append()
        if self._latest is None:
            return ()
        if part.delta.topics:
            self._batch.changes.append(DecidedChanges(self._next_offset, part.records, asked_ms))
        self._batch.add(part)
        self._latest = part.image
        with changing("the controller's index of partitions"):
            return self._controller.replayed(part.image, part.delta).effects

    @property
    def _next_offset(self) -> int:
        return self._log.end_offset + len(self._batch.values)

    def _append(self) -> None:
        """Append the batch, then answer the requests that need no commit."""
        batch, self._batch = self._batch, Batch()
        appended = True
        if batch.values and self._latest is not None:
            if len(self._images) >= MAX_IMAGES:
                self._images.pop()  # The image of this batch includes it.
            latest = self._latest
            assert not self._images or self._images[-1].last.offset < latest.last.offset
            self._images.append(latest)
            try:
                last_offset = self._log.append(batch.values)
                assert last_offset == latest.last.offset, "the image does not match the log"
                if batch.changes:
                    self.recent_changes.appended(batch.changes, self._clock.now_ms())
            except NotLeader:
                appended = False
                self.deactivate()
        if self.active:
            assert (
                not (self._waiting and batch.answers)
                or batch.answers[0].offset >= self._waiting[-1].offset
            ), "answers wait in the order of the log"
            self._waiting.extend(batch.answers)
            self._answer_committed()
            return
        for each in batch.answers:  # Leadership was lost during the append.
            each.leadership_lost(appended=appended)

    def _answer_committed(self) -> None:
        while self._waiting and self._waiting[0].offset < self._high_watermark:
            each = self._waiting.popleft()
            each.answer(each.response)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self._controller.deadline_ms() if self.active else NEVER_MS
        if deadline_ms != NEVER_MS:
            delay_ms = max(0, deadline_ms - self._clock.now_ms())
            self._timer = self._clock.call_later(delay_ms, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self.active:
            self._rule_now(lambda now_ms, _: self._controller.tick(now_ms))

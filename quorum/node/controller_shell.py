"""The asyncio shell around the controller's rules: requests in, records appended, answers when
committed.

The requests that wait in one loop iteration are decided one after the other, each on the image that
the one before left, and their records leave as one batch: one write, one fsync, one round of
replication (group commit). After SLICE_MS the batch is appended and the event loop runs before the
controller goes on.

A request is decided before anything changes: the rule, the encoded records read back, the replay on
the latest image (which is persistent, so the replay leaves it alone) and the encoded answer. An
exception up to there is the request's fault: it is refused with FAILED and nothing is appended.

Invariants:

- Rules run only while active: the epoch's own LeaderChange is committed and everything inherited is
  replayed.
- An answer leaves only when everything it rests on is committed, also when it has no records of its
  own.
- Every answer callback runs exactly once. NOT_CONTROLLER: provably nothing was appended for it.
  UNKNOWN: appended, outcome not known, because leadership was lost before the commit.
"""

from __future__ import annotations

import enum
import logging
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.result import Effect, Result
from quorate.quorum.controller.sessions import NEVER_MS
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import NoOpRecord
from quorate.quorum.node.controller_decision import (
    MAX_BATCH_BYTES,
    MAX_BATCH_RECORDS,
    Decision,
    Part,
    TooLarge,
    decided,
)
from quorate.quorum.node.controller_queue import ControllerQueue
from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.seams import Clock, Timer
from quorate.quorum.state_in_doubt import StateInDoubt, changing

MAX_UNCOMMITTED = 20_000
"""Answers that wait for a commit. Commits stall while no majority of the voters is reachable."""
MAX_IMAGES = 1_000
"""Images of batches that are not committed yet."""
SLICE_MS = 10
"""The time that the controller works on requests before it appends and lets the event loop run."""
NO_OP = Result((NoOpRecord(),))

logger = logging.getLogger("quorate.quorum.controller")


class Refusal(enum.Enum):
    NOT_CONTROLLER = "not the active controller"
    UNKNOWN = "leadership was lost before the outcome was known"
    TOO_LARGE = "the request changes more at once than one batch of the metadata log can hold"
    FAILED = "the controller could not carry out the request; nothing was changed"


Answer = Callable[[object], None]
"""Gets the encoded response of the rules, or a Refusal. It must not raise."""
Encode = Callable[[object], object]
"""Turns the response of the rules into what `Answer` gets. It may raise; see `submit`."""
Rule = Callable[[int, int], Result]
"""Of the moment (now_ms) and the offset that its first record will get."""


class MetadataLog(Protocol):
    @property
    def end_offset(self) -> int: ...

    def append(self, values: list[bytes]) -> int: ...


@dataclass(frozen=True, slots=True)
class _Waiting:
    offset: int  # answered once the high watermark passes it
    response: object
    answer: Answer
    changes: bool

    def leadership_lost(self, *, appended: bool = True) -> None:
        """Before the commit. Who changes nothing can ask the next controller."""
        is_unknown = appended and self.changes
        self.answer(Refusal.UNKNOWN if is_unknown else Refusal.NOT_CONTROLLER)


@dataclass(frozen=True, slots=True)
class _Request:
    request: object
    answer: Answer
    encode: Encode
    linearizable: bool


@dataclass(slots=True)
class _Batch:
    """What one loop iteration appends, and who waits for it."""

    values: list[bytes] = field(default_factory=list)
    answers: list[_Waiting] = field(default_factory=list)
    size_bytes: int = 0

    def has_room_for(self, values: list[bytes]) -> bool:
        return (
            len(self.values) + len(values) <= MAX_BATCH_RECORDS
            and self.size_bytes + sum(map(len, values)) <= MAX_BATCH_BYTES
        )

    def add(self, values: list[bytes]) -> None:
        self.values.extend(values)
        self.size_bytes += sum(map(len, values))


def _nobody(_: object) -> None:
    """Discard the answer to a tick, a probe or an activation, which no node asked for."""


def _as_it_is(response: object) -> object:
    return response


class ControllerShell:
    def __init__(
        self,
        clock: Clock,
        controller: Controller,
        log: MetadataLog,
        *,
        begin_anew: Callable[[], None],
        carry_out: Callable[[Effect], None],
    ) -> None:
        """`begin_anew`: the rules follow the committed image again, whatever they went ahead to."""
        self._clock = clock
        self._controller = controller
        self._log = log
        self._begin_anew = begin_anew
        self._carry_out = carry_out
        self.operations = self.turned_away = self.failed_requests = 0
        self._failures = LogLimit(clock)
        self._requests: ControllerQueue[_Request] = ControllerQueue()
        self._waiting: deque[_Waiting] = deque()
        self._images: deque[MetadataImage] = deque()
        self._batch = _Batch()
        self._latest: MetadataImage | None = None
        self._epoch = -1
        self._high_watermark = 0
        self._drain_scheduled = False
        self._timer: Timer | None = None

    @property
    def active(self) -> bool:
        return self._latest is not None

    def submit(
        self,
        request: object,
        answer: Answer,
        *,
        encode: Encode = _as_it_is,
        source: Hashable | None = None,
        linearizable: bool = False,
    ) -> None:
        """Decide `request` soon: nodes' requests first, then one source after the other.

        `encode` runs before anything is appended. If it or the rule raises, the answer is FAILED
        and nothing has changed. `source` is the connection or node that a client's request came
        through, None for a node's own request. `linearizable`: the answer waits for a commit also
        when the request changes nothing, so it is never that of a leader that was deposed and does
        not know it (R33). The answer is NOT_CONTROLLER, immediately, if this controller is not
        active, its queue is full, or MAX_UNCOMMITTED answers wait for a commit."""
        waiting = _Request(request, answer, encode, linearizable)
        stalled = len(self._waiting) >= MAX_UNCOMMITTED
        if not self.active or stalled or not self._requests.push(waiting, source):
            self.turned_away += self.active
            answer(Refusal.NOT_CONTROLLER)
            return
        self._schedule()

    def activate(self, image: MetadataImage, epoch: int, *, in_transaction: bool) -> None:
        """`image` holds everything up to the log's end, all of it committed."""
        logger.info("active controller of epoch %d at offset %d", epoch, image.last.offset)
        self._epoch = epoch
        self._latest = image
        self._rule_now(
            lambda now_ms, next_offset: self._controller.activate(
                image, now_ms=now_ms, next_offset=next_offset, in_transaction=in_transaction
            )
        )

    def deactivate(self) -> None:
        """Leadership is lost: the latest image goes, and with it every answer that rests on it."""
        if not self.active:
            return
        logger.info("no longer the active controller (epoch %d)", self._epoch)
        self._latest = None
        self._images.clear()
        self._controller.deactivate()
        self._begin_anew()
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
        """Answer what is committed now; the newest committed image, when there is a newer one."""
        self._high_watermark = high_watermark
        image = None
        while self._images and self._images[0].last.offset < high_watermark:
            image = self._images.popleft()
        self._answer_committed()
        return image

    def tell(self, event: Rule) -> None:
        """Rule on something that happened (a lost connection, a probe's answer) rather than a
        request."""
        if self.active:
            self._rule_now(event)

    def _schedule(self) -> None:
        if not self._drain_scheduled:
            self._drain_scheduled = True
            self._clock.call_soon(self._drain)

    def _drain(self) -> None:
        self._drain_scheduled = False
        slice_end_ms = self._clock.now_ms() + SLICE_MS
        while self._requests and self.active:
            self._serve(self._requests.pop())
            if self._clock.now_ms() >= slice_end_ms:
                break
        self._append()
        self._arm()
        if self._requests:
            self._schedule()

    def _serve(self, asked: _Request) -> None:
        """Decide one request and carry the decision out, or refuse it."""
        try:
            decision = self._decide(partial(self._handle, asked.request), asked.encode)
        except StateInDoubt:
            raise
        except TooLarge:
            asked.answer(Refusal.TOO_LARGE)
            return
        except Exception as error:
            self._refuse(asked, error)
            return
        self._carry(decision, asked.answer, linearizable=asked.linearizable)

    def _refuse(self, asked: _Request, error: Exception) -> None:
        """Answer FAILED: an exception that no rule expects, raised before anything changed."""
        self.failed_requests += 1
        name = type(asked.request).__name__
        left_out = self._failures.passes((name, type(error)))
        if left_out is not None:
            logger.error(
                "%s failed with %r, nothing was changed%s", name, error, left_out, exc_info=error
            )
        asked.answer(Refusal.FAILED)

    def _handle(self, request: object, now_ms: int, next_offset: int) -> Result:
        return self._controller.handle(request, now_ms=now_ms, next_offset=next_offset)

    def _rule_now(self, rule: Rule) -> None:
        """Carry out what no peer asked for. An exception stops the node: its state is in doubt."""
        self._carry(self._decide(rule, _as_it_is), _nobody)
        self._append()
        self._arm()

    def _decide(self, rule: Rule, encode: Encode) -> Decision:
        """Return the checked outcome of `rule`. Raise whatever is wrong; nothing has changed."""
        self.operations += 1
        result = rule(self._clock.now_ms(), self._next_offset)
        assert self._latest is not None, "only the active controller decides"
        parts = decided(
            result, self._latest, EpochOffset(self._epoch, self._next_offset), self._clock.wall_ms()
        )
        return Decision(parts, encode(result.response), list(result.effects))

    def _carry(self, decision: Decision, answer: Answer, *, linearizable: bool = False) -> None:
        """Its records join the batch; its answer waits for them and for all before them."""
        effects = decision.effects
        for part in decision.parts:
            effects.extend(self._add(part))
        if linearizable and not self._batch.values and self._latest is not None:
            first = EpochOffset(self._epoch, self._next_offset)
            for part in decided(NO_OP, self._latest, first, self._clock.wall_ms()):
                effects.extend(self._add(part))
        self._batch.answers.append(
            _Waiting(self._next_offset - 1, decision.response, answer, bool(decision.parts))
        )
        for effect in effects:
            self._carry_out(effect)

    def _add(self, part: Part) -> list[Effect]:
        if self._batch.values and not self._batch.has_room_for(part.values):
            self._append()
        if self._latest is None:
            return []
        self._batch.add(part.values)
        self._latest = part.image
        with changing("the controller's index of partitions"):
            return list(self._controller.replayed(part.image, part.delta).effects)

    @property
    def _next_offset(self) -> int:
        return self._log.end_offset + len(self._batch.values)

    def _append(self) -> None:
        """One Raft batch for all that was ruled; then whatever needs no commit is answered."""
        batch, self._batch = self._batch, _Batch()
        appended = True
        if batch.values and self._latest is not None:
            if len(self._images) >= MAX_IMAGES:
                self._images.pop()  # adopted together with the batch that follows it
            self._images.append(self._latest)
            try:
                self._log.append(batch.values)
            except NotLeader:
                appended = False
                self.deactivate()
        if self.active:
            self._waiting.extend(batch.answers)
            self._answer_committed()
            return
        for each in batch.answers:  # leadership was lost meanwhile: nobody else would answer them
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

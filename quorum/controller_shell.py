"""The asyncio shell around the controller's rules: requests in, records appended, answers when
committed.

All requests that wait in one loop iteration are ruled on in order, each on the image that the one
before left, and their records leave as one batch: one write, one fsync, one round of replication
(group commit).

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.result import Effect, Result
from quorate.quorum.controller.sessions import NEVER_MS
from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import MARKERS
from quorate.quorum.metadata.records import MetadataRecord, NoOpRecord
from quorate.quorum.metadata.replay import replay
from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.seams import Clock, Timer

MAX_QUEUED = 20_000
MAX_BATCH_RECORDS = 1_000
"""Also of what is replayed in one step on every node; an atomic result is whole whatever it has."""
MAX_BATCH_BYTES = 4 << 20
MAX_RESULT_BYTES = 6 << 20
"""Of one atomic result: it must fit one batch of the metadata log, 8 MiB with all that frames
it."""

NO_OP = NoOpRecord()

logger = logging.getLogger("quorate.quorum.controller")


class Refusal(enum.Enum):
    NOT_CONTROLLER = "not the active controller"
    UNKNOWN = "leadership was lost before the outcome was known"
    TOO_LARGE = "the request changes more at once than one batch of the metadata log can hold"


Answer = Callable[[object], None]
"""Gets the rules' response, or a Refusal."""
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
    """Answers of what nobody asked for: ticks, probes, activation."""


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
        self.operations = self.turned_away = 0
        self._requests: deque[tuple[object, Answer, bool]] = deque()
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

    def submit(self, request: object, answer: Answer, *, linearizable: bool = False) -> None:
        """Rule on `request` in this loop iteration, after what was submitted before it.

        `linearizable`: the answer waits for a commit also when the ruling changes nothing, so it is
        never that of a leader that was deposed and does not know it (R33)."""
        if not self.active or len(self._requests) >= MAX_QUEUED:
            self.turned_away += self.active
            answer(Refusal.NOT_CONTROLLER)
            return
        self._requests.append((request, answer, linearizable))
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
        requests, self._requests = self._requests, deque()
        for each in waiting:
            each.leadership_lost()
        for _, answer, _ in requests:
            answer(Refusal.NOT_CONTROLLER)

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
        while self._requests and self.active:
            request, answer, linearizable = self._requests.popleft()
            self._rule(partial(self._handle, request), answer, linearizable=linearizable)
        self._append()
        self._arm()

    def _handle(self, request: object, now_ms: int, next_offset: int) -> Result:
        return self._controller.handle(request, now_ms=now_ms, next_offset=next_offset)

    def _rule_now(self, rule: Rule) -> None:
        self._rule(rule, _nobody)
        self._append()
        self._arm()

    def _rule(self, rule: Rule, answer: Answer, *, linearizable: bool = False) -> None:
        """Its records join the batch; its answer waits for them and for all before them."""
        self.operations += 1
        result = rule(self._clock.now_ms(), self._next_offset)
        values = [encode_record(record) for record in result.records]
        if result.atomic and sum(map(len, values)) > MAX_RESULT_BYTES:
            answer(Refusal.TOO_LARGE)
            return
        effects = list(result.effects)
        for part in _parts(len(values), whole=result.atomic):
            effects.extend(self._add(result.records[part], values[part]))
        if linearizable and not self._batch.values:
            effects.extend(self._add((NO_OP,), [encode_record(NO_OP)]))
        self._batch.answers.append(
            _Waiting(self._next_offset - 1, result.response, answer, bool(values))
        )
        for effect in effects:
            self._carry_out(effect)

    def _add(self, records: Sequence[MetadataRecord], values: list[bytes]) -> Sequence[Effect]:
        batch = self._batch
        if batch.values and not batch.has_room_for(values):
            self._append()
            batch = self._batch
        if self._latest is None:
            return ()
        batch.add(values)
        last = EpochOffset(self._epoch, self._next_offset - 1)
        stable = [each for each in records if not isinstance(each, MARKERS)]
        self._latest, delta = replay(self._latest, stable, last, self._clock.wall_ms())
        return self._controller.replayed(self._latest, delta).effects

    @property
    def _next_offset(self) -> int:
        return self._log.end_offset + len(self._batch.values)

    def _append(self) -> None:
        """One Raft batch for all that was ruled; then whatever needs no commit is answered."""
        batch, self._batch = self._batch, _Batch()
        appended = True
        if batch.values and self._latest is not None:
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


def _parts(count: int, *, whole: bool) -> Iterator[slice]:
    """What of a result goes into one batch: all of it when it is atomic, else a bounded slice."""
    size = max(1, count if whole else MAX_BATCH_RECORDS)
    for first in range(0, count, size):
        yield slice(first, first + size)

"""The decisions of the active controller until they are committed: batch, images, answers.

A decision is checked before it changes anything (`controller_decision.py`). Its records then join
the batch, which the shell appends as a whole, and its answer waits until everything before it is
committed.

Invariants:

- The latest image is the committed image plus the records that are appended or in the batch.
- Answers wait in the order of the log. Each answer runs exactly once, unless the node fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.result import Effect, Result
from quorate.quorum.ids import EpochOffset
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import MetadataRecord, NoOpRecord
from quorate.quorum.node.controller.cluster_event_log import ClusterEventLog
from quorate.quorum.node.controller.controller_batch import (
    Batch,
    Encode,
    MetadataLog,
    WaitingAnswer,
    WaitingRequest,
    unencoded,
)
from quorate.quorum.node.controller.controller_decision import (
    Decision,
    Part,
    decided,
    part_in_steps,
)
from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.seams import Clock
from quorate.quorum.state_in_doubt import changing
from quorate.quorum.watch.recent_changes import DecidedChanges, RecentChanges

MAX_IMAGES = 1_000
"""Maximum number of stored images, one after each batch that is not committed yet. Beyond it, the
image of a new batch replaces that of the batch before."""
NO_OP = Result((NoOpRecord(),))
"""A record that changes nothing. A linearizable request appends it if the batch has no other
record, because its answer must wait for a new commit."""


class UncommittedDecisions:
    """Owned by the node's event loop; no method blocks. The shell calls `start` and `clear` at each
    change of the leadership. `epoch` is that of the last `start`."""

    def __init__(
        self,
        clock: Clock,
        controller: Controller,
        log: MetadataLog,
        *,
        leadership_lost: Callable[[], None],
        carry_out: Callable[[Effect], None],
    ) -> None:
        """`leadership_lost` must call `clear`. `carry_out` gets the effects of decisions."""
        self.recent_changes = RecentChanges()
        self.events = ClusterEventLog(clock)
        self._clock = clock
        self._controller = controller
        self._log = log
        self._leadership_lost = leadership_lost
        self._carry_out = carry_out
        self._waiting: deque[WaitingAnswer] = deque()
        self.waiting_bytes = 0
        """The bytes of the answers that wait for a commit."""
        self._images: deque[MetadataImage] = deque()
        self._batch = Batch()
        self._latest: MetadataImage | None = None
        self.epoch = -1
        self._high_watermark = 0

    @property
    def active(self) -> bool:
        """Return True between `start` and `clear`."""
        return self._latest is not None

    @property
    def waiting(self) -> int:
        """Return the number of answers that wait for a commit."""
        return len(self._waiting)

    @property
    def next_offset(self) -> int:
        """Return the offset that the next record gets if nothing else is appended before."""
        return self._log.end_offset + len(self._batch.values)

    def start(self, image: MetadataImage, epoch: int) -> None:
        """Begin to decide on `image`, in a later epoch than before."""
        assert self._latest is None and not self._batch.values, "a controller was activated twice"
        assert epoch > self.epoch, "a controller was activated in an old epoch"
        self.epoch = epoch
        self._latest = image

    def clear(self) -> deque[WaitingAnswer]:
        """Drop the images. Return the answers that wait for a commit. The batch stays for the
        `append` in progress, if there is one."""
        self._latest = None
        self._images.clear()
        self.recent_changes.discard_from(self._high_watermark)
        waiting, self._waiting = self._waiting, deque()
        self.waiting_bytes = 0
        return waiting

    # -- checks ----------------------------------------------------------------------------------

    def checked(self, result: Result, next_offset: int, encode: Encode) -> Decision:
        """Return the checked outcome of a rule. If it raises, nothing has changed."""
        assert self._latest is not None, "only the active controller decides"
        first = EpochOffset(self.epoch, next_offset)
        parts = decided(result, self._latest, first, self._clock.wall_ms())
        return Decision(parts, encode(result.response), result.effects)

    def checked_in_steps(self, records: Sequence[MetadataRecord]) -> IncrementalWork[Part]:
        """Return the only part of an atomic result with many records, in steps. If it raises,
        nothing has changed."""
        assert self._latest is not None, "only the active controller decides"
        epoch, wall_ms = self.epoch, self._clock.wall_ms()
        return part_in_steps(
            records, self._latest, lambda: EpochOffset(epoch, self.next_offset), wall_ms
        )

    # -- changes ---------------------------------------------------------------------------------

    def carry(self, decision: Decision, asked: WaitingRequest, *, changes: bool = False) -> None:
        """Add the records to the batch, and let the answer wait for them and all before them.
        `changes` is True if earlier steps of the decision had records."""
        effects = [*decision.effects]
        for part in decision.parts:
            effects += self._add(part, asked.asked_ms)
        if asked.linearizable and not self._batch.values and self._latest is not None:
            for part in self.checked(NO_OP, self.next_offset, unencoded).parts:
                effects += self._add(part, asked.asked_ms)
        has_records = changes or bool(decision.parts)
        response, size_bytes = decision.response, asked.size_bytes
        if type(response) is bytes:
            size_bytes = len(response)
        self._batch.answers.append(
            WaitingAnswer(self.next_offset - 1, response, asked.answer, has_records, size_bytes)
        )
        for effect in effects:
            self._carry_out(effect)

    def add(self, records: Sequence[MetadataRecord], asked_ms: int) -> None:
        """Check the records of one step of a decision, and add them to the batch."""
        if self._latest is None:
            return
        first = EpochOffset(self.epoch, self.next_offset)
        effects: list[Effect] = []
        for part in decided(Result(records), self._latest, first, self._clock.wall_ms()):
            effects += self._add(part, asked_ms)
        for effect in effects:
            self._carry_out(effect)

    def _add(self, part: Part, asked_ms: int) -> Sequence[Effect]:
        if self._batch.values and not self._batch.has_room_for(part):
            self.append()
        if self._latest is None:
            return ()
        if part.delta.topics:
            self._batch.changes.append(DecidedChanges(self.next_offset, part.records, asked_ms))
        self.events.decided(self.next_offset, part.records, self._latest, part.image)
        self._batch.add(part)
        self._latest = part.image
        with changing("the controller's index of partitions"):
            return self._controller.replayed(part.image, part.delta).effects

    def append(self) -> None:
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
                self._leadership_lost()
        if self.active:
            assert (
                not (self._waiting and batch.answers)
                or batch.answers[0].offset >= self._waiting[-1].offset
            ), "answers wait in the order of the log"
            self._waiting.extend(batch.answers)
            self.waiting_bytes += sum([each.size_bytes for each in batch.answers])
            self._answer_committed()
            return
        for each in batch.answers:  # Leadership was lost during the append.
            each.leadership_lost(appended=appended)

    def committed(self, high_watermark: int) -> MetadataImage | None:
        """Answer the requests that are committed now. Remove the stored images that are committed,
        and return the newest of them, or None. `high_watermark` must not fall."""
        assert high_watermark >= self._high_watermark, "the high watermark fell"
        self._high_watermark = high_watermark
        image = None
        while self._images and self._images[0].last.offset < high_watermark:
            image = self._images.popleft()
        self.events.committed(high_watermark)
        self._answer_committed()
        return image

    def _answer_committed(self) -> None:
        while self._waiting and self._waiting[0].offset < self._high_watermark:
            each = self._waiting.popleft()
            self.waiting_bytes -= each.size_bytes
            each.answer(each.response)

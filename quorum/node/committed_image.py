"""The committed image of one node: the metadata log below the high watermark, replayed as it is
committed.

A standby controller, a broker and a restarted node read their own log. The active controller has
replayed its records already when it appended them, and only moves the pointer on (`adopt`).

To an image that no delta leads to, a snapshot's, every follower goes in two parts: a survey, in
steps that change nothing that can be seen, and then, all in one go, what takes the image over. In
between the image stays the old one, nobody acts on a partial picture, and what is committed
meanwhile waits. A newer snapshot begins anew; who became leader meanwhile is not active before
(`caught_up_with`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.log.errors import CorruptBatch
from quorate.quorum.log.log import Log
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.errors import ReplayError
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.steps import freed
from quorate.quorum.seams import Clock, Timer
from quorate.quorum.steps import Steps

SLICE_BYTES = 32 * 1024
"""Replayed in one loop iteration at most; a longer backlog leaves the loop in between."""

BEHIND_MS = 20
"""How far the image of who does not act on it may be behind what is committed."""

DONE = object()

Follow = Callable[[MetadataImage, ImageDelta], None]
TakeOver = Callable[[], None]
Survey = Callable[[MetadataImage], Steps[TakeOver]]


@dataclass(frozen=True, slots=True)
class _Surveying:
    survey: Survey
    steps: Steps[TakeOver]
    loads: MetadataImage | None
    """None: it is about the image that is there already."""


class CommittedImage:
    """`survey` is all followers'."""

    def __init__(
        self,
        clock: Clock,
        log: Log,
        follow: Follow,
        survey: Survey,
        on_failed: Callable[[BaseException], None],
    ) -> None:
        self._clock = clock
        self._log = log
        self._follow = follow
        self._survey = survey
        self._on_failed = on_failed
        self._loader = Loader(MetadataImage())
        self._surveying: _Surveying | None = None
        self._next: deque[Survey] = deque()
        self._high_watermark = 0
        self._scheduled = False
        self._timer: Timer | None = None
        self._closed = False

    @property
    def image(self) -> MetadataImage:
        return self._loader.image

    @property
    def position(self) -> int:
        """The offset that is replayed next: equal to the high watermark when nothing is left."""
        return self._loader.position

    @property
    def in_transaction(self) -> bool:
        return self._loader.in_transaction

    def caught_up_with(self, high_watermark: int) -> bool:
        """All of it is replayed, and all followers have it."""
        return self._surveying is None and self._loader.position == high_watermark

    def committed(self, high_watermark: int, *, at_once: bool = True) -> None:
        """A standby controller needs the image when it is elected, not with every commit: replaying
        the commits of some time together costs a fraction."""
        self._high_watermark = max(high_watermark, self._high_watermark)
        if self._scheduled or self._surveying is not None:
            return
        if at_once:
            self._replay()
        elif self._timer is None:
            self._timer = self._clock.call_later(BEHIND_MS, self._go_on)

    def between_batches(self) -> MetadataImage | None:
        """The image, unless it ends inside of a batch (a metadata transaction is open)."""
        image = self._loader.image
        return image if image.last.offset + 1 == self._loader.position else None

    def load(self, image: MetadataImage) -> None:
        """A snapshot's."""
        self._high_watermark = max(self._high_watermark, image.last.offset + 1)
        unfinished = self._surveying
        if unfinished is not None and unfinished.loads is None:
            self._next.appendleft(unfinished.survey)
        self._begin(_Surveying(self._survey, self._survey(image), image))

    def survey(self, survey: Survey) -> None:
        """Some follower begins anew with the image that is there, and stands still meanwhile."""
        self._next.append(survey)
        if self._surveying is None:
            self._survey_next()

    def adopt(self, image: MetadataImage) -> None:
        """`image` is what replaying up to its `last` gives, replayed elsewhere on this node."""
        self._loader = Loader(image)

    def release(self, steps: Steps[None]) -> None:
        """What nobody needs any more is freed beside other work."""
        if not self._closed and next(steps, DONE) is not DONE:
            self._clock.call_soon(lambda: self.release(steps))

    def close(self) -> None:
        self._closed = True
        self._forget_timer()

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._continue)

    def _continue(self) -> None:
        self._scheduled = False
        self._go_on()

    def _go_on(self) -> None:
        self._forget_timer()
        if self._surveying is None:
            self._replay()
        else:
            self._step(self._surveying)

    # -- surveys ---------------------------------------------------------------------------------

    def _survey_next(self) -> None:
        survey = self._next.popleft()
        self._begin(_Surveying(survey, survey(self.image), None))

    def _begin(self, surveying: _Surveying) -> None:
        self._surveying = surveying
        self._step(surveying)

    def _step(self, surveying: _Surveying) -> None:
        if self._closed:
            return
        try:
            next(surveying.steps)
        except StopIteration as end:
            take_over: TakeOver = end.value
        else:
            self._schedule()
            return
        self._surveying = None
        if surveying.loads is None:
            take_over()
        else:
            old = freed(self._loader.image.topics)
            self._loader = Loader(surveying.loads)
            take_over()
            self.release(old)
        if self._surveying is None and self._next:
            self._survey_next()
        elif self.position < self._high_watermark:
            self._schedule()

    # -- replay ----------------------------------------------------------------------------------

    def _replay(self) -> None:
        self._forget_timer()
        if self._closed or self.position >= self._high_watermark:
            return
        try:
            data = self._log.read(self.position, SLICE_BYTES, end=self._high_watermark)
            delta = self._loader.feed(metadata_batches(data))
        except (CorruptBatch, ReplayError) as error:
            self._stop(self._log.first_damage() or error)
            return
        except Exception as error:  # the log and the image contradict each other: the node stops
            self._stop(error)
            return
        if self.position < self._high_watermark:
            self._schedule()
        self._follow(self.image, delta)

    def _stop(self, error: BaseException) -> None:
        self.close()
        self._on_failed(error)

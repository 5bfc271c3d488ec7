"""The committed image of one node: the metadata log below the high watermark, replayed as it is
committed.

A standby controller, a broker and a restarted node read their own log. The active controller has
replayed its records already when it appended them, and only moves the pointer on (`adopt`).
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.log.errors import CorruptBatch
from quorate.quorum.log.log import Log
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.difference import difference
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.seams import Clock, Timer

SLICE_BYTES = 256 * 1024
"""Replayed in one loop iteration at most; a longer backlog leaves the loop in between."""

BEHIND_MS = 20
"""How far the image of who does not act on it may be behind what is committed."""

Follow = Callable[[MetadataImage, ImageDelta], None]


class CommittedImage:
    def __init__(
        self, clock: Clock, log: Log, follow: Follow, on_failed: Callable[[BaseException], None]
    ) -> None:
        self._clock = clock
        self._log = log
        self._follow = follow
        self._on_failed = on_failed
        self._loader = Loader(MetadataImage())
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

    def committed(self, high_watermark: int, *, at_once: bool = True) -> None:
        """A standby controller needs the image when it is elected, not with every commit: replaying
        the commits of some time together costs a fraction."""
        self._high_watermark = max(high_watermark, self._high_watermark)
        if self._scheduled:
            return
        if at_once:
            self._replay()
        elif self._timer is None:
            self._timer = self._clock.call_later(BEHIND_MS, self._replay)

    def between_batches(self) -> MetadataImage | None:
        """The image, unless it ends inside of a batch (a metadata transaction is open)."""
        image = self._loader.image
        return image if image.last.offset + 1 == self._loader.position else None

    def load(self, image: MetadataImage) -> None:
        """A snapshot's: all that it changes comes as one delta."""
        delta = difference(self.image, image)
        self._loader = Loader(image)
        self._high_watermark = max(self._high_watermark, image.last.offset + 1)
        self._follow(image, delta)

    def adopt(self, image: MetadataImage) -> None:
        """`image` is what replaying up to its `last` gives, replayed elsewhere on this node."""
        self._loader = Loader(image)

    def close(self) -> None:
        self._closed = True
        self._forget_timer()

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _replay(self) -> None:
        self._scheduled = False
        self._forget_timer()
        if self._closed or self.position >= self._high_watermark:
            return
        try:
            data = self._log.read(self.position, SLICE_BYTES, end=self._high_watermark)
            delta = self._loader.feed(metadata_batches(data))
        except CorruptBatch as error:
            self._stop(self._log.first_damage() or error)
            return
        except Exception as error:  # the log and the image contradict each other: the node stops
            self._stop(error)
            return
        if self.position < self._high_watermark:
            self._scheduled = True
            self._clock.call_soon(self._replay)
        self._follow(self.image, delta)

    def _stop(self, error: BaseException) -> None:
        self.close()
        self._on_failed(error)

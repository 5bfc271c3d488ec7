"""The committed metadata image of one node: the metadata log below the high watermark, replayed.

A standby controller, a broker and a restarted node replay their own log. The active controller has
replayed its records when it appended them, so it only installs the resulting image (`adopt`). If
the active controller is also a broker, it replays its log all the same, because the broker needs
the deltas.

After each slice of a replay, listeners receive the new image and a delta. For the image of a
snapshot there is no delta, so the listeners receive it in two parts. First each listener prepares,
in steps that change nothing visible. Then the image and the prepared state of all listeners are
installed in one step. Until then:

- the old image stays in place;
- newly committed records are not replayed;
- the node does not become the active controller (`caught_up_with`).

A newer snapshot that arrives meanwhile restarts the preparation.

Sources: Kafka's MetadataLoader and MetadataPublisher.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.log.log import Log
from quorate.quorum.metadata.batches import MetadataBatch, metadata_batches
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.errors import ReplayError
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.pace import freed
from quorate.quorum.seams import Clock, Timer

SLICE_BYTES = 32 * 1024
"""Maximum bytes of the log that are replayed in one iteration of the event loop. A larger batch is
replayed in one step."""

BEHIND_MS = 20
"""Maximum delay, in ms, before a standby controller begins to replay a commit. It replays the
commits of that time together."""

DONE = object()
"""Marks the end of the steps in `release`."""

ImageChanged = Callable[[MetadataImage, ImageDelta], None]
"""Follows a change: gets the new image, and the delta that leads to it."""
InstallImage = Callable[[], None]
"""Makes a prepared image visible to one listener, in one step."""
PrepareLoad = Callable[[MetadataImage], IncrementalWork[InstallImage]]
"""Prepares one listener for an image, in steps without a visible change."""
TakeChecked = Callable[[int, int, int], Iterable[MetadataBatch]]
"""Returns decoded batches of the log, as `CheckedBatches.take` does."""


def none_checked(position: int, end: int, max_bytes: int) -> Sequence[MetadataBatch]:
    """Return no batch, so that all are read from the log."""
    return ()


def prepare_all(
    listeners: Sequence[PrepareLoad], image: MetadataImage
) -> IncrementalWork[InstallImage]:
    """Prepare one listener after the other. Return the function that installs for all of them."""
    installs = []
    for each in listeners:
        install = yield from each(image)
        installs.append(install)

    def install_all() -> None:
        for each in installs:
            each()

    return install_all


@dataclass(frozen=True, slots=True)
class ImagePreparation:
    """A preparation in progress."""

    prepare: PrepareLoad
    steps: IncrementalWork[InstallImage]
    loads: MetadataImage | None
    """The image of a snapshot to load, or None if one listener prepares for the present image."""


class CommittedImage:
    """The committed image and the listeners that follow it. Owned by the node's event loop.

    Invariants:

    - `image` holds exactly the committed records below `position`, apart from an open transaction.
    - `position` never decreases, and never passes the high watermark of the quorum.
    - A listener sees every replayed change exactly once, in the order of the log. Changes in a
      snapshot and in an adopted image reach it without a delta, or not at all.

    If the log cannot be read or contradicts the image, `on_failed` is called and nothing more is
    replayed."""

    def __init__(
        self,
        clock: Clock,
        log: Log,
        image_changed: ImageChanged,
        prepare_load: PrepareLoad,
        on_failed: Callable[[BaseException], None],
        take_checked: TakeChecked = none_checked,
    ) -> None:
        """`image_changed` and `prepare_load` act for all listeners. `take_checked` returns batches
        that need not be read from the log."""
        self._clock = clock
        self._take_checked = take_checked
        self._log = log
        self._image_changed = image_changed
        self._prepare_load = prepare_load
        self._on_failed = on_failed
        self._loader = Loader(MetadataImage())
        self._preparing: ImagePreparation | None = None
        self._next: deque[PrepareLoad] = deque()
        self._high_watermark = 0
        self._scheduled = False
        self._timer: Timer | None = None
        self._closed = False

    @property
    def image(self) -> MetadataImage:
        """Return the image."""
        return self._loader.image

    @property
    def position(self) -> int:
        """Return the offset of the next record to replay."""
        return self._loader.position

    @property
    def in_transaction(self) -> bool:
        """Return True if the replayed log ends inside of a metadata transaction (KIP-868)."""
        return self._loader.in_transaction

    def caught_up_with(self, high_watermark: int) -> bool:
        """Return True if everything below `high_watermark` is replayed and installed. Return False
        while a listener prepares."""
        return self._preparing is None and self._loader.position == high_watermark

    def committed(self, high_watermark: int, *, at_once: bool = True) -> None:
        """Replay the log up to `high_watermark`.

        If `at_once`, replay the first SLICE_BYTES before the return, with the calls of the
        listeners, and the rest in later iterations of the event loop. Otherwise begin within
        BEHIND_MS. If a replay or a preparation is in progress, continue with the new records after
        it. The image may therefore be behind `high_watermark` on return; see `caught_up_with`.

        A standby controller needs the image only when it is elected. It replays several commits
        together, because that costs much less than one replay for each."""
        self._high_watermark = max(high_watermark, self._high_watermark)
        if self._scheduled or self._preparing is not None:
            return
        if at_once:
            self._replay()
        elif self._timer is None:
            self._timer = self._clock.call_later(BEHIND_MS, self._go_on)

    def between_batches(self) -> MetadataImage | None:
        """Return the image, or None if the replayed log ends inside of a batch or a transaction."""
        image = self._loader.image
        return image if image.last.offset + 1 == self._loader.position else None

    def load(self, image: MetadataImage) -> None:
        """Begin to load the image of a snapshot, which has replaced the log up to the image's
        offset. A small image is installed before the return.

        Discard a load that is in progress. A preparation of one listener starts anew after the
        load."""
        assert image.last.offset < self._log.end_offset, "a snapshot beyond the log's end"
        self._high_watermark = max(self._high_watermark, image.last.offset + 1)
        unfinished = self._preparing
        if unfinished is not None and unfinished.loads is None:
            self._next.appendleft(unfinished.prepare)
        self._begin(ImagePreparation(self._prepare_load, self._prepare_load(image), image))

    def prepare(self, prepare: PrepareLoad) -> None:
        """Queue the preparation of one listener. It prepares for the image that is current when its
        turn comes, and the first step may run before the return.

        The replay is paused until the prepared state is installed."""
        self._next.append(prepare)
        if self._preparing is None:
            self._prepare_next()

    def adopt(self, image: MetadataImage) -> None:
        """Install `image` without a replay and without a call to any listener.

        Only the active controller does so, because it has replayed the same committed records
        already. No preparation may be in progress."""
        assert self._preparing is None, "an active controller loads no image"
        assert image.last.offset + 1 >= self._loader.position, "the committed image went backwards"
        self._loader = Loader(image)

    def release(self, steps: IncrementalWork[None]) -> None:
        """Run `steps`, which free memory: the first step now, then one in each iteration of the
        event loop. `close` ends that."""
        if not self._closed and next(steps, DONE) is not DONE:
            self._clock.call_soon(lambda: self.release(steps))

    def close(self) -> None:
        """Stop the replay and all preparations. Cancel the timer."""
        self._closed = True
        self._cancel_timer()

    def _cancel_timer(self) -> None:
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
        self._cancel_timer()
        if self._preparing is None:
            self._replay()
        else:
            self._step(self._preparing)

    # -- preparations ----------------------------------------------------------------------------

    def _prepare_next(self) -> None:
        prepare = self._next.popleft()
        self._begin(ImagePreparation(prepare, prepare(self.image), None))

    def _begin(self, preparation: ImagePreparation) -> None:
        self._preparing = preparation
        self._step(preparation)

    def _step(self, preparation: ImagePreparation) -> None:
        if self._closed:
            return
        try:
            next(preparation.steps)
        except StopIteration as end:
            install: InstallImage = end.value
        else:
            self._schedule()
            return
        self._preparing = None
        if preparation.loads is None:
            install()
        else:
            old = freed(self._loader.image.topics)
            self._loader = Loader(preparation.loads)
            install()
            self.release(old)
        if self._preparing is None and self._next:
            self._prepare_next()
        elif self.position < self._high_watermark:
            self._schedule()

    # -- replay ----------------------------------------------------------------------------------

    def _replay(self) -> None:
        self._cancel_timer()
        if self._closed or self.position >= self._high_watermark:
            return
        before = self.position
        try:
            batches = self._take_checked(before, self._high_watermark, SLICE_BYTES)
            if not batches:
                data = self._log.read(before, SLICE_BYTES, end=self._high_watermark)
                if not data:  # A faulty leader's high watermark can lie inside of a batch.
                    return
                batches = metadata_batches(data)
            delta = self._loader.feed(batches)
        except (CorruptBatch, ReplayError) as error:
            self._stop(self._log.first_damage() or error)
            return
        except Exception as error:  # The log and the image contradict each other.
            self._stop(error)
            return
        assert before < self.position <= self._high_watermark, "replayed beyond what is committed"
        if self.position < self._high_watermark:
            self._schedule()
        self._image_changed(self.image, delta)

    def _stop(self, error: BaseException) -> None:
        self.close()
        self._on_failed(error)

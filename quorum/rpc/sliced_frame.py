"""The messages of a frame that one slice of the event loop's time does not handle.

A frame may hold thousands of messages. The link is not read while some of them wait, and the next
slice follows in the next iteration of the event loop. Only the bytes of the frame wait, and they
count in the memory of the link. Its rows are built one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from quorate.quorum.rpc.delivery import handled_later
from quorate.quorum.rpc.link_reading import LinkReading
from quorate.quorum.rpc.messages import Row, rows_later
from quorate.quorum.seams import Clock, Link

SLICE_US = 5000
"""The time for messages of one link before the event loop runs again. The last one may exceed
it."""
MESSAGES_BETWEEN = 16
"""The messages between two looks at the time. Each takes up to 40 us."""
MESSAGES_PER_SLICE = 1024
"""The most messages of a slice. It is the only bound if the clock stands still, as in
simulations."""
SLICE_ANSWER_BYTES = 1 << 20
"""The answers of one slice, in bytes. The last one may exceed it."""
ALL = -1

Handle = Callable[[Iterator[Row | None]], int]
"""Handles one slice of rows. Returns ALL after the last row or if the link is closed, otherwise the
number of rows that it took. A row that is None is a pause in the reading of a message."""


class SlicedFrame:
    """The frame of one link whose messages are not all handled. The event loop owns it."""

    def __init__(
        self,
        link: Link,
        clock: Clock,
        handle: Handle,
        reading: LinkReading,
        on_held: Callable[[int], None],
    ) -> None:
        """Create it without a frame. `on_held` gets the bytes of a frame that waits, and 0 after
        its last message."""
        self.error: Exception | None = None
        """The exception with which a later slice ended, or None."""
        self._link = link
        self._clock = clock
        self._handle = handle
        self._reading = reading
        self._on_held = on_held
        self._rows: Iterator[Row | None] | None = None

    @property
    def waits(self) -> bool:
        """Return True if messages of a frame wait."""
        return self._rows is not None

    def begin(self, frame: memoryview, handled: int) -> None:
        """Handle the messages of `frame` after the first `handled` ones. Raise what handlers raise
        in the first slice, which runs immediately if `handled` is 0."""
        rows = rows_later(frame, handled)
        if self._rows is not None:  # the link delivers a frame although it is paused
            self._rows = chain(self._rows, rows)
            return
        self._rows = rows
        self._reading.pause()
        self._on_held(len(frame))
        if handled:
            self._clock.call_soon(self._go_on)
        else:
            self._next_slice()

    def drop(self) -> None:
        """Drop the messages that wait, and the references to the owner, because the link has
        ended."""
        self._rows = None
        self._handle, self._on_held = _handle_nothing, _count_nothing

    def _go_on(self) -> None:
        if self._rows is not None and not self._link.closed:
            self.error = handled_later(self._link, self._next_slice) or self.error

    def _next_slice(self) -> None:
        assert self._rows is not None, "a slice without a frame"
        if self._handle(self._rows) != ALL:
            self._clock.call_soon(self._go_on)
        elif not self._link.closed:
            self._rows = None
            self._on_held(0)
            self._reading.resume()


def _handle_nothing(rows: Iterator[Row | None]) -> int:
    return ALL


def _count_nothing(held_bytes: int) -> None: ...

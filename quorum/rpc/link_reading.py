"""The pauses of one link: several parts of a node may pause its reading for their own reasons."""

from __future__ import annotations

from quorate.quorum.seams import Link


class LinkReading:
    """Pauses a link while any part has paused it. The event loop owns it.

    Each part calls `pause` and `resume` in turn."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._pauses = 0

    def pause(self) -> None:
        """Deliver no more frames until each `pause` has its `resume`."""
        self._pauses += 1
        if self._pauses == 1:
            self._link.pause_reading()

    def resume(self) -> None:
        """End one pause."""
        self._pauses -= 1
        assert self._pauses >= 0, "a link was resumed that was not paused"
        if not self._pauses:
            self._link.resume_reading()

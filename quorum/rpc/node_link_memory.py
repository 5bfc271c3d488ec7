"""The memory that one link between nodes holds: unfinished frames, and what its peer does not read.

The link's handler reports both here (`frame_link.py`). Under pressure a link that holds more than
its share is not read, and the heaviest link is closed when the budget is used up (`budget.py`). A
node connects again after that.

When all brokers of a large cluster start, their fetches of metadata ask for more together than the
budget has. Closing their links would discard what was sent already, so they get less instead.
"""

from __future__ import annotations

from quorate.quorum.rpc.budget import LEAST_READ_BYTES, Budget, Memory
from quorate.quorum.seams import Address, Link

FETCH_PART = 24
"""A fetch gets at most one in so many of the bytes that are left for fetches."""
FETCHES_SHARE = 3 / 4
"""The part of the budget that is left for fetches. The rest is for the least that each one gets."""


def fetch_room(budget: Budget) -> int:
    """Return the bytes that the response to one more fetch of metadata may have."""
    left_bytes = int(budget.limit_bytes * FETCHES_SHARE) - budget.used_bytes
    return max(LEAST_READ_BYTES, left_bytes // FETCH_PART)


class NodeLinkMemory:
    """The Holder of one link. All its methods run on the event loop."""

    def __init__(self, link: Link, memory: Memory) -> None:
        self._link = link
        self._budget = memory.nodes
        self._buffered_bytes = 0
        self._unread_bytes = 0
        self._drained = True
        self._paused = False

    @property
    def peer(self) -> Address:
        return self._link.peer

    def buffered(self, held_bytes: int) -> None:
        """Note that the link keeps `held_bytes` of an unfinished frame."""
        self._buffered_bytes = held_bytes
        self.report_memory()

    def drained(self, drained: bool) -> None:
        """Note that the peer takes what is sent, or that it does not."""
        self._drained = drained
        self.sent()

    def sent(self) -> None:
        """Note that frames were written to the link."""
        if self._unread_now() != self._unread_bytes:
            self.report_memory()

    def release(self) -> None:
        """Note that the link is closed."""
        self._buffered_bytes = self._unread_bytes = 0
        self._budget.set_held(self, 0)

    def update_reading(self) -> None:
        over = self._budget.must_wait(self)
        if over != self._paused:
            self._paused = over
            if over:
                self._link.pause_reading()
            else:
                self._link.resume_reading()

    def evict(self) -> None:
        self._link.abort()

    def report_memory(self) -> None:
        self._unread_bytes = self._unread_now()
        self._budget.set_held(self, self._buffered_bytes + self._unread_bytes)
        self.update_reading()

    def _unread_now(self) -> int:
        return 0 if self._drained else self._link.pending_bytes

"""The memory that one link between nodes holds: frames that are not finished or not handled, and
bytes that its peer does not read.

The link's handler reports both here (`handshake.py`). Under pressure, a link that holds more than
its share may have to wait until it is read. When the budget is used up, the heaviest links are
closed (`budget.py`), and their nodes connect again.

When all brokers of a large cluster start, their fetches of metadata ask for more in total than the
budget has. Closing their links would discard the bytes already sent, so each fetch gets less
instead.
"""

from __future__ import annotations

from quorate.quorum.rpc.budget import LEAST_READ_BYTES, Budget, Memory
from quorate.quorum.rpc.link_reading import LinkReading
from quorate.quorum.seams import Address, Link

FETCH_PART = 24
"""A fetch gets the bytes that are left for fetches, divided by this number, but at least
LEAST_READ_BYTES."""
FETCHES_SHARE = 3 / 4
"""The part of the budget for fetches. The rest is for the LEAST_READ_BYTES of fetches that find
nothing left, and for other messages."""


def fetch_room(budget: Budget) -> int:
    """Return the number of bytes that the response to one more fetch of metadata may have. It is at
    least LEAST_READ_BYTES. `budget` is that of the node links."""
    left_bytes = int(budget.limit_bytes * FETCHES_SHARE) - budget.used_bytes
    return max(LEAST_READ_BYTES, left_bytes // FETCH_PART)


class NodeLinkMemory:
    """The Holder of one link. All its methods run on the event loop."""

    def __init__(self, link: Link, memory: Memory, reading: LinkReading) -> None:
        """Count `link` in the budget of links between nodes of `memory`. `reading` pauses it."""
        self._link = link
        self._reading = reading
        self._budget = memory.nodes
        self._buffered_bytes = 0
        self._handled_bytes = 0
        self._unread_bytes = 0
        self._drained = True
        self._paused = False

    @property
    def peer(self) -> Address:
        """Return the address of the other end."""
        return self._link.peer

    def buffered(self, held_bytes: int) -> None:
        """Record that the link keeps `held_bytes` of an unfinished frame."""
        self._buffered_bytes = held_bytes
        self.report_memory()

    def handling(self, held_bytes: int) -> None:
        """Record that the channel keeps a frame of `held_bytes` whose messages are not all
        handled."""
        self._handled_bytes = held_bytes
        self.report_memory()

    def drained(self, drained: bool) -> None:
        """Record that the peer takes the bytes that are sent, or no longer takes them if `drained`
        is False. Only bytes that the peer does not take are counted."""
        self._drained = drained
        self.sent()

    def sent(self) -> None:
        """Record that frames were written to the link."""
        if self._unread_now() != self._unread_bytes:
            self.report_memory()

    def release(self) -> None:
        """Record that the link is closed."""
        self._buffered_bytes = self._handled_bytes = self._unread_bytes = 0
        self._budget.set_held(self, 0)

    def update_reading(self) -> None:
        """Pause or resume reading, as the budget now requires."""
        over = self._budget.must_wait(self)
        if over != self._paused:
            self._paused = over
            if over:
                self._reading.pause()
            else:
                self._reading.resume()

    def evict(self) -> None:
        """Abort the link, because the budget is used up or the link makes no progress."""
        self._link.abort()

    def report_memory(self) -> None:
        """Report the held bytes to the budget. This may abort the link."""
        self._unread_bytes = self._unread_now()
        held_bytes = self._buffered_bytes + self._handled_bytes + self._unread_bytes
        self._budget.set_held(self, held_bytes)
        self.update_reading()

    def _unread_now(self) -> int:
        return 0 if self._drained else self._link.pending_bytes

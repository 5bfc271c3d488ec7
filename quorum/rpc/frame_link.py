"""The common base of links over a byte stream: bytes gather, and whole frames are delivered in
order.

The subclass cuts the frames. Frames are handled inside `data_received`, without a task or another
loop iteration between the socket and the handler.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from time import perf_counter
from typing import cast

from quorate.quorum.log_limit import LogLimit
from quorate.quorum.rpc.delivery import deliver, log_closing
from quorate.quorum.seams import (
    Accept,
    Address,
    Link,
    LinkHandler,
    PeerIdentity,
    ProtocolError,
)

COPY_BELOW_BYTES = 16 * 1024  # smaller parts are joined: a copy is cheaper than a system call
MAX_DELIVERY_S = 0.002  # after the first frame; the last frame may exceed it
REPORT_ABOVE_BYTES = 16 * 1024
"""A link reports the size of its input to its handler while it is larger than this."""
NO_ADDRESS = Address("", 0)
IDENTITY = "quorate.identity"
"""The name under which a transport with TLS returns the PeerIdentity (`get_extra_info`)."""


def address_of(transport: asyncio.BaseTransport, name: str = "peername") -> Address:
    """Return the address of one end of a connection: `peername` or `sockname`. Return an empty
    address if the connection is already closed."""
    host, port, *_ = transport.get_extra_info(name) or ("", 0)
    return Address(host, port)


class FrameLink(asyncio.Protocol):
    """A Link over one stream connection, owned by the event loop.

    A handler may have two methods that a LinkHandler does not need. `on_buffered(held_bytes)`
    receives the size of the input that is not delivered: an unfinished frame, and whole frames of a
    paused link. It is called above REPORT_ABOVE_BYTES, and once more when the size is below again.
    `on_drained(False)` reports that the peer does not take what is sent: asyncio's write buffer is
    above its high-water mark. `on_drained(True)` reports that the peer takes it again.

    Invariant: frames are not delivered while the handler has paused the link, and not after the
    link is closed."""

    lines: LogLimit | None = None
    """Limits the lines about the faults of peers. None on a link that this node has opened."""
    reports_drains = True
    """True because this link calls `on_drained`. A handler of another link must poll
    `pending_bytes`."""

    def __init__(
        self,
        accept: Accept,
        max_frame_bytes: int,
        on_gone: Callable[[Link], None] = lambda link: None,
    ) -> None:
        """Create the protocol of a new connection. `accept` makes its handler, and `on_gone` is
        called when the connection is lost."""
        self.peer = NO_ADDRESS
        self.identity: PeerIdentity | None = None
        self.closed = False
        self._accept = accept
        self._max_frame_bytes = self._listener_max_bytes = max_frame_bytes
        self._on_gone = on_gone
        self._transport: asyncio.Transport
        self._handler: LinkHandler
        self._input = bytearray()
        self._paused = False  # by the handler
        self._resting = False  # until the next loop iteration
        self._reported = False  # True if the last report named a large input
        self._on_buffered: Callable[[int], None] | None = None
        self._on_drained: Callable[[bool], None] | None = None
        self._error: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Create the handler of the link. asyncio calls this method."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclass
        self.peer = address_of(transport)
        self.identity = self.identity or transport.get_extra_info(IDENTITY)
        self._handler = self._accept(cast(Link, self))
        self._on_buffered = getattr(self._handler, "on_buffered", None)
        self._on_drained = getattr(self._handler, "on_drained", None)
        if self.identity is not None:
            self.identified(self.identity)

    def identified(self, identity: PeerIdentity) -> None:
        """Report the identity of the peer to the handler. `tls/tls_protocol.py` calls this method
        after the handshake. A link that begins after the handshake calls it itself."""
        self.identity = identity
        on_identified = getattr(self._handler, "on_identified", None)
        if on_identified is not None:
            on_identified(identity)

    def connection_lost(self, error: Exception | None) -> None:
        """Discard the input and report the end to the handler. asyncio calls this method."""
        self.closed = True
        self._input = bytearray()
        self._on_gone(cast(Link, self))
        handler = self._handler
        # The handler refers to this link. The cycle is broken here, because a cycle of objects that
        # `quorum/node/garbage.py` has frozen is never collected.
        del self._handler
        self._on_buffered = self._on_drained = None
        handler.on_closed(self._error or error)

    def data_received(self, data: bytes) -> None:
        """Add `data` to the input and deliver the whole frames. asyncio calls this method."""
        self._input += data
        if not self._paused and not self._resting:
            self._deliver()
        self._report()

    def pause_writing(self) -> None:
        """Report to the handler that the peer does not take what is sent. asyncio calls this
        method."""
        if self._on_drained is not None:
            self._on_drained(False)

    def resume_writing(self) -> None:
        """Report to the handler that the peer takes what is sent again. asyncio calls this
        method."""
        if self._on_drained is not None and not self.closed:
            self._on_drained(True)

    @property
    def pending_bytes(self) -> int:
        """Return the bytes that are sent and not yet accepted by the socket."""
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Deliver no more frames until `resume_reading`."""
        if not self._paused and not self.closed:
            self._paused = True
            if not self._resting:
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Continue the delivery in the next loop iteration."""
        if self._paused and not self.closed:
            self._paused = False
            if not self._resting:
                self._transport.resume_reading()
                asyncio.get_running_loop().call_soon(self._resume)

    def limit_frames(self, max_bytes: int | None) -> None:
        """Close the link at a larger frame than `max_bytes` from now on, before memory is allocated
        for it. None means the bound with which the link was created, which is also the highest."""
        most = self._listener_max_bytes
        self._max_frame_bytes = most if max_bytes is None else min(max_bytes, most)

    def abort(self) -> None:
        """Close the link immediately. Unsent bytes are lost. The handler's `on_closed` is called
        later."""
        self.closed = True
        self._transport.abort()

    def _resume(self) -> None:
        if not self._paused and not self._resting and not self.closed:
            self._deliver()
            self._report()

    def _report(self) -> None:
        """Report the size of an unfinished frame to the handler, if it is large."""
        held_bytes = len(self._input)
        large = held_bytes > REPORT_ABOVE_BYTES
        if (large or self._reported) and self._on_buffered is not None and not self.closed:
            self._reported = large
            self._on_buffered(held_bytes)

    def _deliver(self) -> None:
        """Deliver the whole frames of the input for MAX_DELIVERY_S.

        The rest waits for the next loop iteration, so that a pipeline of requests does not delay
        other links."""
        end_s = 0.0
        while not self._paused and not self.closed and (frame := self._next_frame()) is not None:
            error = deliver(cast(Link, self), self._handler, frame, self.lines)
            self._error = error or self._error
            if not self._input:
                return
            now_s = perf_counter()
            if not end_s:
                end_s = now_s + MAX_DELIVERY_S
            elif now_s > end_s and not self.closed:
                self._rest()
                return

    def _rest(self) -> None:
        self._resting = True
        if not self._paused:
            self._transport.pause_reading()
        asyncio.get_running_loop().call_soon(self._rested)

    def _rested(self) -> None:
        self._resting = False
        if not self._paused and not self.closed:
            self._transport.resume_reading()
            self._deliver()
            self._report()

    @abstractmethod
    def _next_frame(self) -> memoryview | None:
        """Take the next whole frame off the input. Return None if there is none."""

    def _take(self, start: int, end: int) -> bytearray:
        """Return the input from `start` to `end`, and remove everything before `end` from the
        input."""
        data = self._input
        if len(data) == end:
            self._input = bytearray()
        elif end - start < COPY_BELOW_BYTES:
            frame = data[start:end]
            del data[:end]  # moves the start, copies nothing
            return frame
        else:
            self._input = data[end:]
            del data[end:]
        del data[:start]
        return data

    def _refuse(self, reason: str) -> None:
        log_closing(self.peer, reason, self.lines)
        self._error = ProtocolError(reason)
        self.abort()

"""A transport that records when this node last sent each type of message.

It is below the faults, so only messages that really left the node count. It decodes each frame on
message links that this node opened. It exists only in nodes that run with fault control.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from quorate.quorum.faults.rules import KINDS
from quorate.quorum.rpc.messages import rows_of
from quorate.quorum.seams import (
    Accept,
    Address,
    Buffer,
    Clock,
    DialTls,
    Link,
    LinkHandler,
    Listener,
    Tls,
    Transport,
    Wire,
    joined,
)

NAMES = {number: name for name, number in KINDS.items()}


class WitnessTransport:
    """A transport that records the messages sent. The thread of the event loop owns it."""

    def __init__(self, inner: Transport, clock: Clock) -> None:
        self.last_sent_ms: dict[str, int] = {}
        """The wall time in ms of the last message of each type, by the name of its class. A type
        that was never sent is absent."""
        self._inner = inner
        self._clock = clock

    async def listen(
        self,
        address: Address,
        accept: Mapping[Wire, Accept],
        *,
        max_frame_bytes: int,
        tls: Tls | None = None,
    ) -> Listener:
        """Listen on the inner transport. Accepted links are not recorded."""
        return await self._inner.listen(address, accept, max_frame_bytes=max_frame_bytes, tls=tls)

    async def connect(
        self,
        address: Address,
        wire: Wire,
        accept: Accept,
        *,
        max_frame_bytes: int,
        timeout_ms: int,
        tls: DialTls | None = None,
    ) -> Link:
        """Connect on the inner transport. Messages sent on a message link are recorded."""
        if wire is Wire.NODE:
            accept = partial(self._accept, accept)
        return await self._inner.connect(
            address, wire, accept, max_frame_bytes=max_frame_bytes, timeout_ms=timeout_ms, tls=tls
        )

    def sent(self, frame: Buffer) -> None:
        """Record the messages of a frame that is being sent."""
        wall_ms = self._clock.wall_ms()
        for row in rows_of(frame):
            if (name := NAMES.get(row[0])) is not None:
                self.last_sent_ms[name] = wall_ms

    def _accept(self, accept: Accept, link: Link) -> LinkHandler:
        return accept(WitnessLink(link, self))


class WitnessLink:
    """A link whose sent messages are recorded. It passes every call on to the inner link."""

    def __init__(self, inner: Link, witness: WitnessTransport) -> None:
        self.peer = inner.peer
        self.identity = inner.identity
        self._inner = inner
        self._witness = witness

    def send(self, *parts: Buffer) -> None:
        """Record the frame's messages and send the frame."""
        self._witness.sent(joined(parts))
        self._inner.send(*parts)

    @property
    def pending_bytes(self) -> int:
        """Return the bytes that wait to be sent."""
        return self._inner.pending_bytes

    @property
    def closed(self) -> bool:
        """Return True if the link is closed."""
        return self._inner.closed

    def pause_reading(self) -> None:
        """Stop reading frames."""
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        """Read frames again."""
        self._inner.resume_reading()

    def close(self) -> None:
        """Close the link after all pending frames are sent."""
        self._inner.close()

    def abort(self) -> None:
        """Reset the link."""
        self._inner.abort()

"""When a message of some type last left a node: below the faults, so that only what really went out
counts.

Looks into every frame that this node sends on links of messages that it made; it stands only in
nodes that run with faults.
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
    Link,
    LinkHandler,
    Listener,
    Transport,
    Wire,
    joined,
)

NAMES = {number: name for name, number in KINDS.items()}


class WitnessTransport:
    def __init__(self, inner: Transport, clock: Clock) -> None:
        self.last_sent_ms: dict[str, int] = {}
        """Wall time, by the message's name."""
        self._inner = inner
        self._clock = clock

    async def listen(
        self, address: Address, accept: Mapping[Wire, Accept], *, max_frame_bytes: int
    ) -> Listener:
        return await self._inner.listen(address, accept, max_frame_bytes=max_frame_bytes)

    async def connect(
        self, address: Address, wire: Wire, accept: Accept, *, max_frame_bytes: int, timeout_ms: int
    ) -> Link:
        if wire is Wire.NODE:
            accept = partial(self._accept, accept)
        return await self._inner.connect(
            address, wire, accept, max_frame_bytes=max_frame_bytes, timeout_ms=timeout_ms
        )

    def sent(self, frame: Buffer) -> None:
        wall_ms = self._clock.wall_ms()
        for row in rows_of(frame):
            if (name := NAMES.get(row[0])) is not None:
                self.last_sent_ms[name] = wall_ms

    def _accept(self, accept: Accept, link: Link) -> LinkHandler:
        return accept(WitnessLink(link, self))


class WitnessLink:
    def __init__(self, inner: Link, witness: WitnessTransport) -> None:
        self.peer = inner.peer
        self._inner = inner
        self._witness = witness

    def send(self, *parts: Buffer) -> None:
        self._witness.sent(joined(parts))
        self._inner.send(*parts)

    @property
    def pending_bytes(self) -> int:
        return self._inner.pending_bytes

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def close(self) -> None:
        self._inner.close()

    def abort(self) -> None:
        self._inner.abort()

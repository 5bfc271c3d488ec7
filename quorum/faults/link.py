"""A link that obeys the fault rules.

In each direction frames pass, wait, are delayed or are discarded. Order is preserved: queued frames
precede later ones, and the end of the link arrives last. While a link is held, neither side sees
that the other one closed it. If this node aborts it, the peer sees the reset only after the
release.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from functools import partial
from typing import NamedTuple

import msgpack  # type: ignore[import-untyped]

from quorate.quorum.faults.faults import HOLDS, Faults
from quorate.quorum.faults.line import Line, Way
from quorate.quorum.faults.rules import CLIENTS, KINDS, REQUESTS
from quorate.quorum.protocol.headers import read_client_id
from quorate.quorum.rpc.hello import Hello, HelloReply
from quorate.quorum.rpc.messages import rows_of, sole_message
from quorate.quorum.seams import (
    Accept,
    Address,
    Buffer,
    Link,
    LinkHandler,
    PeerIdentity,
    ProtocolError,
    Wire,
    joined,
)

logger = logging.getLogger(__name__)


FETCHER = re.compile(r"broker-(\d{1,10})-fetcher-\d+")
"""The client id of a follower that fetches, as Kafka names it. It names the opener of a link."""
MAX_QUEUED_BYTES = 1 << 20
"""A link with more received bytes that wait in a queue is not read, so that its peer waits, too."""


class Nature(NamedTuple):
    """The kind of a link, and the facts about its other end when it is made."""

    wire: Wire
    opened: bool  # by this node
    of_client: bool = False  # on a listener for clients
    peer_id: int | None = None
    peer_address: Address | None = None  # of the peer's node port, not of the connection

    @property
    def of_messages(self) -> bool:
        """Return True if the link carries MessagePack messages of nodes."""
        return self.wire is Wire.NODE

    @property
    def of_requests(self) -> bool:
        """Return True if the link carries Kafka's protocol."""
        return self.wire is Wire.KAFKA


class FaultLink:
    """A link under fault rules.

    The node uses it as its `Link`, and the transport below uses it as its `LinkHandler`. It stays
    registered with `Faults` until both sides have ended.
    """

    def __init__(self, faults: Faults, inner: Link, accept: Accept, nature: Nature) -> None:
        self.peer = inner.peer
        self.identity = inner.identity
        self.bearer: str | None = getattr(inner, "bearer", None)  # of an HTTP link
        self.closed = False
        self._faults = faults
        self._inner = inner
        self._nature = nature
        self._peer_id = nature.peer_id
        self._greeted = nature.wire is Wire.HTTP or (nature.of_requests and nature.opened)
        self._handler: LinkHandler | None = None
        self._ended = False
        self._error: Exception | None = None
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reads = True  # the node's wish; the rules may stop reading anyway
        self._was_held = ""
        self._full = False  # more than MAX_QUEUED_BYTES wait, so the transport is not read
        self._unread: deque[memoryview] = deque()  # received while the node did not read
        self._in = Line(Way(self._held_in, self._delay_ms, self._bytes_per_s), faults.affected)
        self._out = Line(Way(self._held_out, self._delay_ms, self._bytes_per_s), faults.affected)
        faults.watch(self)
        self.rules_changed()
        faults.run(partial(self._accept, accept))

    # --- what the node does

    def send(self, *parts: Buffer) -> None:
        """Send the frame, or queue it if the rules demand that. Do nothing if the link is closed.
        Messages of dropped types are removed first."""
        if self.closed:
            return
        if self._faults.rules.drop:
            frame = self._without(joined(parts), self._nature.opened)
            if frame is None:
                return
            parts = (frame,)
        self._out.put(partial(self._inner.send, *parts), sum(len(part) for part in parts))

    @property
    def pending_bytes(self) -> int:
        """Return the bytes that wait to be sent, including those that the rules hold back."""
        return 0 if self._ended else self._inner.pending_bytes + self._out.queued_bytes

    def pause_reading(self) -> None:
        """Stop passing frames to the node. Those that arrive are queued."""
        self._reads = False
        self._read_or_not()

    def resume_reading(self) -> None:
        """Pass frames to the node again."""
        self._reads = True
        self._read_or_not()
        if self._unread:
            asyncio.get_running_loop().call_soon(self._faults.run, self._read_on)

    def close(self) -> None:
        """Close the link after all queued frames are sent."""
        if not self.closed:
            self.closed = True
            self._out.put(self._inner.close)

    def abort(self) -> None:
        """Discard all queued frames and reset the link. If the link is held, only this side sees
        the end now."""
        self.closed = True
        self._out.clear()
        if self._held() and not self._ended:
            asyncio.get_running_loop().call_soon(self._faults.run, partial(self._end, None))
        else:
            self._inner.abort()

    # --- what comes from below

    def on_frame(self, frame: memoryview) -> None:
        """Accept a frame from the transport. The first frame of a message link identifies the peer,
        and the rules about that peer apply from then on."""
        if not self._greeted:
            self._meet(frame)
            if self._cut():
                return
        self._in.put(partial(self._faults.run, partial(self._take, frame)), len(frame))
        if self._in.queued_bytes > MAX_QUEUED_BYTES and not self._full:
            self._full = True
            self._read_or_not()

    def on_identified(self, identity: PeerIdentity) -> None:
        """Pass the identity of the peer on to the node's handler."""
        self.identity = identity
        on_identified = getattr(self._handler, "on_identified", None)
        if on_identified is not None:
            self._faults.run(partial(on_identified, identity))

    def on_closed(self, error: Exception | None) -> None:
        """Accept the end of the transport's link. `error` is None after a regular close."""
        self._gone.set_result(None)
        if self._ended:
            self._faults.forget(self)
        else:
            self._in.put(partial(self._faults.run, partial(self._end, error)))

    # --- what the rules do

    def rules_changed(self) -> None:
        """Reset the link if it is cut. Otherwise pass on what the new rules permit."""
        if self._cut():
            self._faults.affected["cut"] += not self._ended
            self._out.clear()
            self._inner.abort()
        elif self._ended and not self._held():
            self._inner.abort()
        self._count_hold()
        self._read_or_not()
        self._in.go_on()
        self._out.go_on()

    def crash(self) -> None:
        """Reset the link without any callback to the node."""
        self.closed = self._ended = True
        self._in.clear()
        self._out.clear()
        self._inner.abort()
        if not self._gone.done():
            self._faults.closing(self._gone)

    def _cut(self) -> bool:
        nature = self._nature
        return self._faults.cuts(self._peer_id, nature.peer_address, nature.of_client)

    def _held(self, *ways: str) -> str:
        """Return the first of the rules `ways`, by default of all, that holds this link, or ""."""
        nature = self._nature
        for way in ways or HOLDS:
            if self._faults.holds(self._peer_id, nature.peer_address, nature.of_client, (way,)):
                return "" if self._cut() else way
        return ""

    def _held_in(self) -> str:
        return self._held("hold", "hold_from")

    def _held_out(self) -> str:
        return self._held("hold", "hold_to")

    def _count_hold(self) -> None:
        """Count this link if it is now held and was not before. A held link that waits for a
        response queues no frame, because it is not read."""
        was, self._was_held = self._was_held, self._held()
        if self._was_held and not was:
            self._faults.affected[self._was_held] += 1

    def _without(self, frame: Buffer, requests: bool) -> Buffer | None:
        """Return the frame without the messages that the rules drop, or None if nothing remains.

        `requests` is True for the direction of requests, if the link carries Kafka's protocol."""
        kept: Buffer | None = frame
        if self._nature.of_messages:
            kept = without(self._faults.rules.drop, frame)
        elif self._nature.of_requests and requests and is_dropped(self._faults.rules.drop, frame):
            kept = None
        self._faults.affected["drop"] += kept is not frame
        return kept

    def _slow(self) -> bool:
        """Return True if the rules about slow links affect this one.

        Links between nodes are those of node messages, those that this node opened, and those of
        followers that fetch."""
        chosen, nature = self._faults.rules.slow_links, self._nature
        if nature.of_client:
            return chosen in (CLIENTS, "all")
        between_nodes = nature.opened or nature.of_messages or self._peer_id is not None
        return between_nodes and chosen != CLIENTS

    def _delay_ms(self) -> int:
        delay_ms = self._faults.rules.delay_ms
        return delay_ms if delay_ms and self._slow() else 0

    def _bytes_per_s(self) -> int:
        rate = self._faults.rules.bytes_per_s
        return rate if rate and self._slow() else 0

    def _read_or_not(self) -> None:
        """Read from the transport unless the node, a pause, a hold or a long queue prevents it.
        Then the peer's buffers fill and not this node's memory."""
        stopped = self._faults.rules.paused or self._in.queued_bytes > MAX_QUEUED_BYTES
        if self._reads and not stopped and not self._held_in():
            self._inner.resume_reading()
        else:
            self._inner.pause_reading()

    # --- on the way to the handler, past the line and the gate

    def _accept(self, accept: Accept) -> None:
        self._handler = accept(self)

    def _take(self, frame: memoryview) -> None:
        if self._full and self._in.queued_bytes <= MAX_QUEUED_BYTES:
            self._full = False
            self._read_or_not()
        self._unread.append(frame)
        self._read_on()

    def _read_on(self) -> None:
        while self._reads and self._unread and not self.closed:
            self._hand(self._unread.popleft())

    def _hand(self, frame: memoryview) -> None:
        assert self._handler is not None
        kept: Buffer | None = frame
        try:
            if self._faults.rules.drop:
                kept = self._without(frame, not self._nature.opened)
            if kept is not None:
                self._handler.on_frame(memoryview(kept))
        except ProtocolError as error:
            logger.warning("closing the link to %s: %s", self.peer, error)
            self._error = error
            self.abort()
        except Exception as error:
            self._error = error
            self.abort()
            raise

    def _end(self, error: Exception | None) -> None:
        if self._ended:
            return
        self.closed = self._ended = True
        self._in.clear()
        self._unread.clear()
        if not self._held():
            self._faults.forget(self)
            self._inner.abort()
        if self._handler is not None:
            self._handler.on_closed(self._error or error)

    def _meet(self, frame: memoryview) -> None:
        """Take the peer's id from the first frame: a Hello, or the client id of a fetcher."""
        self._greeted = True
        found = self._greeting(frame) if self._nature.of_messages else fetcher_of(frame)
        if self._peer_id is None and found is not None:
            self._peer_id = found
            self.rules_changed()

    def _greeting(self, frame: memoryview) -> int | None:
        """Return the id of the node that a Hello names, or None."""
        ours = self._nature.peer_address is not None
        try:
            message = sole_message(frame, HelloReply if ours else Hello)
        except ProtocolError:
            return None  # the node itself rejects this frame
        hello: Hello | None = message.hello if ours else message
        return None if hello is None else hello.node_id


def fetcher_of(frame: Buffer) -> int | None:
    """Return the id of the broker whose fetcher sent the request in the frame, or None."""
    try:
        client_id, _ = read_client_id(frame, 0)
    except ProtocolError:
        return None  # the node itself rejects this frame
    found = FETCHER.fullmatch(client_id or "")
    return None if found is None else int(found[1])


def is_dropped(dropped: tuple[str, ...], frame: Buffer) -> bool:
    """Return True if the frame is a request of Kafka's protocol that the rules drop."""
    api_key = int.from_bytes(frame[:2], "big")
    return any(REQUESTS.get(name) == api_key for name in dropped)


def without(dropped: tuple[str, ...], frame: Buffer) -> Buffer | None:
    """Return the frame without its messages of the dropped types, or None if no message remains.
    Raise ProtocolError if the frame does not consist of node messages."""
    kinds = [KINDS[name] for name in dropped if name in KINDS]
    rows = rows_of(frame)
    kept = [row for row in rows if row[0] not in kinds]
    if len(kept) == len(rows):
        return frame
    packed: bytes = msgpack.packb(kept)
    return packed if kept else None

"""A link that obeys the fault rules.

In each direction frames pass, wait, are delayed or are discarded. Order is preserved: queued frames
precede later ones, and the end of the link arrives last. While a link is held, neither side sees
that the other one closed it. If this node aborts it, the peer sees the reset only after the
release.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgpack  # type: ignore[import-untyped]

from quorate.quorum.faults.faults import Callback, Faults
from quorate.quorum.faults.rules import KINDS
from quorate.quorum.rpc.hello import Hello, HelloReply
from quorate.quorum.rpc.messages import rows_of, sole_message
from quorate.quorum.seams import Accept, Address, Buffer, Link, LinkHandler, ProtocolError, joined

logger = logging.getLogger(__name__)


class Nature(NamedTuple):
    """The kind of a link, and the facts about its other end when it is made."""

    of_messages: bool  # the link carries MessagePack messages of nodes
    between_nodes: bool
    peer_id: int | None = None
    peer_address: Address | None = None  # of the peer's node port, not of the connection


class Line:
    """One direction of a link. A frame is a callable that passes it on. It is called immediately if
    no rule stops it.

    The thread of the event loop owns the object. `queued_bytes` is the size of the queued frames.
    """

    def __init__(
        self, holds: Callable[[], bool], delay_ms: Callable[[], int], affected: dict[str, int]
    ) -> None:
        self.queued_bytes = 0
        self._affected = affected
        self._holds = holds
        self._delay_ms = delay_ms
        self._queue: deque[tuple[float, int, Callback]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def put(self, act: Callback, size_bytes: int = 0) -> None:
        """Pass the frame on, or queue it behind the others if it is held or delayed."""
        delay_ms, held = self._delay_ms(), self._holds()
        if not delay_ms and not self._queue and not held:
            return act()
        self._affected["hold"] += held
        self._affected["delay_ms"] += delay_ms > 0
        due_s = asyncio.get_running_loop().time() + delay_ms / 1000
        self._queue.append((due_s, size_bytes, act))
        self.queued_bytes += size_bytes
        return self.go_on()

    def go_on(self) -> None:
        """Pass on all queued frames that are due and not held. Start a timer for the next one."""
        loop = asyncio.get_running_loop()
        while self._queue and not self._holds():
            due_s, size_bytes, act = self._queue[0]
            if due_s > loop.time():
                if self._timer is None:
                    self._timer = loop.call_at(due_s, self._due)
                return
            self._queue.popleft()
            self.queued_bytes -= size_bytes
            act()

    def clear(self) -> None:
        """Discard all queued frames."""
        self._queue.clear()
        self.queued_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        self.go_on()


class FaultLink:
    """A link under fault rules.

    The node uses it as its `Link`, and the transport below uses it as its `LinkHandler`. It stays
    registered with `Faults` until both sides have ended.
    """

    def __init__(self, faults: Faults, inner: Link, accept: Accept, nature: Nature) -> None:
        self.peer = inner.peer
        self.closed = False
        self._faults = faults
        self._inner = inner
        self._nature = nature
        self._peer_id = nature.peer_id
        self._greeted = not nature.of_messages
        self._handler: LinkHandler | None = None
        self._ended = False
        self._error: Exception | None = None
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reads = True  # the node's wish; the rules may stop reading anyway
        self._was_held = False
        self._unread: deque[memoryview] = deque()  # received while the node did not read
        self._in = Line(self._held, self._delay_ms, faults.affected)
        self._out = Line(self._held, self._delay_ms, faults.affected)
        faults.watch(self)
        self.rules_changed()
        faults.run(partial(self._accept, accept))

    # --- what the node does

    def send(self, *parts: Buffer) -> None:
        """Send the frame, or queue it if the rules demand that. Do nothing if the link is closed.
        Messages of dropped types are removed first."""
        if self.closed:
            return
        if self._nature.of_messages and self._faults.rules.drop:
            frame = self._without(joined(parts))
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
        if self._nature.of_messages and not self._greeted:
            self._meet(frame)
            if self._cut():
                return
        self._in.put(partial(self._faults.run, partial(self._take, frame)))

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
        return self._faults.cuts(self._peer_id, self._nature.peer_address)

    def _held(self) -> bool:
        holds = self._faults.holds(self._peer_id, self._nature.peer_address)
        return holds and not self._cut()

    def _count_hold(self) -> None:
        """Count this link if it is now held and was not before. A held link that waits for a
        response queues no frame, because it is not read."""
        was, self._was_held = self._was_held, self._held()
        self._faults.affected["hold"] += self._was_held and not was

    def _without(self, frame: Buffer) -> Buffer | None:
        """Return the frame without the messages that the rules drop, as `without` does."""
        kept = without(self._faults.rules.drop, frame)
        self._faults.affected["drop"] += kept is not frame
        return kept

    def _delay_ms(self) -> int:
        return self._faults.rules.delay_ms if self._nature.between_nodes else 0

    def _read_or_not(self) -> None:
        """Read from the transport unless the node, a pause or a hold prevents it. Then the peer's
        buffers fill and not this node's memory."""
        if self._reads and not self._faults.rules.paused and not self._held():
            self._inner.resume_reading()
        else:
            self._inner.pause_reading()

    # --- on the way to the handler, past the line and the gate

    def _accept(self, accept: Accept) -> None:
        self._handler = accept(self)

    def _take(self, frame: memoryview) -> None:
        self._unread.append(frame)
        self._read_on()

    def _read_on(self) -> None:
        while self._reads and self._unread and not self.closed:
            self._hand(self._unread.popleft())

    def _hand(self, frame: memoryview) -> None:
        assert self._handler is not None
        kept: Buffer | None = frame
        try:
            if self._nature.of_messages and self._faults.rules.drop:
                kept = self._without(frame)
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
        """Take the peer's id from the first frame."""
        self._greeted = True
        ours = self._nature.peer_address is not None
        try:
            message = sole_message(frame, HelloReply if ours else Hello)
        except ProtocolError:
            return  # the node itself rejects this frame
        hello: Hello | None = message.hello if ours else message
        if self._peer_id is None and hello is not None:
            self._peer_id = hello.node_id
            self.rules_changed()


def without(dropped: tuple[str, ...], frame: Buffer) -> Buffer | None:
    """Return the frame without its messages of the dropped types, or None if no message remains.
    Raise ProtocolError if the frame does not consist of node messages."""
    kinds = [KINDS[name] for name in dropped]
    rows = rows_of(frame)
    kept = [row for row in rows if row[0] not in kinds]
    if len(kept) == len(rows):
        return frame
    packed: bytes = msgpack.packb(kept)
    return packed if kept else None

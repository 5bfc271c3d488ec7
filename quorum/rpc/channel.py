"""Pipelined requests and responses over one link between nodes, in both directions.

- Everything that a node sends through a channel in one loop iteration leaves as one frame, or as
  several if it is too large for one.
- `done` is called exactly once for each request, and never inside `request`. Its argument is the
  response, or an RpcFailure that says whether the other end can have acted on the request.
- There is no task and no future per request. One timer sweeps all timeouts.
- Requests reach their handlers in the order in which they were sent. Responses come in any order.
- The messages of one frame are handled in slices, because there may be thousands. The link is not
  read meanwhile.
- A response that arrives after its request timed out is dropped.
- The channel aborts its link if a request times out and no frame has arrived since the request was
  sent. Its other requests then fail as LOST. After a network partition TCP may wait for a long
  retransmission, while a new link would work immediately.
- `expect_frame` finds a dead link before the requests on it time out.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from quorate.quorum.node_message_bounds import MAX_NODE_FRAME_BYTES
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.rpc.link_reading import LinkReading
from quorate.quorum.rpc.messages import (
    BY_CLASS,
    BY_NUMBER,
    FRAME_HEADER_BYTES,
    MAX_MESSAGES_PER_FRAME,
    SMALL_FRAME_BYTES,
    Message,
    Row,
    Unsupported,
    frame_header,
    packed,
    rows_of,
)
from quorate.quorum.rpc.sliced_frame import (
    ALL,
    MESSAGES_BETWEEN,
    MESSAGES_PER_SLICE,
    SLICE_ANSWER_BYTES,
    SLICE_US,
    SlicedFrame,
)
from quorate.quorum.seams import Clock, Link, ProtocolError, Timer

logger = logging.getLogger(__name__)


class FailureKind(enum.Enum):
    """The reason why a request has no response."""

    NOT_SENT = "not sent"  # the request never left this node
    UNSUPPORTED = "unsupported"  # the other end answered that it did not carry out the request
    LOST = "lost"  # the link closed: unknown outcome
    TIMED_OUT = "timed out"  # unknown outcome


class RpcFailure(Exception):
    """A request got no response. If `outcome_unknown` is True, the other end may have acted on
    it."""

    def __init__(self, kind: FailureKind, reason: str) -> None:
        """Create a failure of `kind`. `reason` is for log lines."""
        super().__init__(f"{kind.value}: {reason}")
        self.kind = kind
        self.outcome_unknown = kind in (FailureKind.LOST, FailureKind.TIMED_OUT)


Done = Callable[[Any], None]  # with a response of the request's RPC, or an RpcFailure
Reply = Callable[[Message], None]
"""Sends the response to one request. Does nothing if the channel is closed. If the response cannot
be encoded, is larger than a frame, or too much waits for the peer, the channel aborts the link."""
Handler = Callable[[Peer, Any, Reply], None]
"""Handles a request and replies once, immediately or later. An exception of a handler aborts the
link and reaches the loop's exception handler."""
Handlers = Mapping[type, Handler]
"""From the class of a request to its handler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """The bounds of one channel."""

    max_frame_bytes: int = MAX_NODE_FRAME_BYTES
    max_outstanding: int = 100_000  # requests without a response
    max_pending_bytes: int = 128 * 1024 * 1024  # queued for a peer that does not read


@dataclass(slots=True)
class _Outstanding:
    sent_ms: int
    deadline_ms: int
    response: int  # kind
    done: Done


class Channel:
    """An open link after the handshake. The LinkHandler of the link passes its frames to the
    channel.

    All methods run on the event loop. Invariant: each request is in `_outstanding` until `done` is
    called for it."""

    def __init__(
        self,
        link: Link,
        peer: Peer,
        clock: Clock,
        handlers: Handlers,
        settings: ChannelSettings,
        on_closed: Callable[[Channel], None],
        on_sent: Callable[[], None] | None = None,
        on_held: Callable[[int], None] = lambda held_bytes: None,
        reading: LinkReading | None = None,
    ) -> None:
        """Create a channel to `peer`. `on_closed` is called once, after all requests have failed.

        `handlers` maps the class of a request to its handler. `on_sent` is called after frames were
        written to the link. `on_held` gets the bytes of a frame whose messages are not all handled,
        and 0 after the last one. `reading` pauses the link, also for other reasons."""
        self.peer = peer
        self.closed = False
        self._link = link
        self._clock = clock
        self._handlers = handlers
        self._settings = settings
        self._on_closed = on_closed
        self._on_sent = on_sent
        reading = reading or LinkReading(link)
        self._sliced = SlicedFrame(link, clock, self._handle, reading, on_held)
        self._next_id = 0
        self._outstanding: dict[int, _Outstanding] = {}
        self._queue: list[tuple[bytes, int | None]] = []  # packed, and the id if it is a request
        self._queued_bytes = 0
        self._pending_bytes = 0
        self._sweep: Timer | None = None
        self._sweep_at_ms = 0
        self._heard_ms = clock.now_ms()
        self.on_first_request: Callable[[], None] | None = None
        """Called once, after the first request that a handler has taken without an exception."""

    @property
    def heard_ms(self) -> int:
        """Return the monotonic time of the last frame, or of the handshake."""
        return self._heard_ms

    @property
    def outstanding(self) -> int:
        """Return the number of requests that wait for a response."""
        return len(self._outstanding)

    def request(self, message: Message, timeout_ms: int, done: Done) -> None:
        """Send `message`. Call `done` later with the response or with an RpcFailure.

        The timeout starts now. `done` receives the failure NOT_SENT in these cases: the link is
        closed, the message is larger than a frame, `max_outstanding` requests wait for a response,
        or more than `max_pending_bytes` wait for the peer."""
        if refusal := self._refusal():
            return self._fail_soon(done, refusal)
        correlation_id = self._next_id
        data = packed(message, correlation_id)
        if len(data) > self._settings.max_frame_bytes - FRAME_HEADER_BYTES:
            name = type(message).__name__
            return self._fail_soon(done, f"{name} of {len(data)} bytes is larger than a frame")
        self._next_id += 1
        now_ms = self._clock.now_ms()
        deadline_ms = now_ms + timeout_ms
        response = BY_CLASS[type(message)].number + 1
        self._outstanding[correlation_id] = _Outstanding(now_ms, deadline_ms, response, done)
        if self._sweep is None or deadline_ms < self._sweep_at_ms:
            self._sweep_at(deadline_ms)
        self._enqueue(data, correlation_id)
        return None

    async def call(self, message: Message, timeout_ms: int) -> Any:
        """Send `message` and return the response. Raise RpcFailure if there is none.

        Use it for rare requests only, because each call makes a future."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(result: object) -> None:
            if not future.done():
                future.set_result(result)

        self.request(message, timeout_ms, done)
        result = await future
        if isinstance(result, RpcFailure):
            raise result
        return result

    def close(self) -> None:
        """Send the queued messages, then close the link. Requests without a response fail as LOST
        when the link has ended."""
        self._flush()
        self._link.close()

    def abort(self) -> None:
        """Close the link immediately. Queued messages are lost. The requests fail later, when the
        end of the link is reported."""
        self._link.abort()

    def expect_frame(self, within_ms: int) -> None:
        """Abort the link if requests wait for a response and no frame arrives within `within_ms`.
        These requests then fail as LOST. Do nothing if no request waits. Later requests do not
        count."""
        if self._outstanding:
            asked_ms = self._clock.now_ms()
            self._clock.call_later(within_ms, lambda: self._require_frame(asked_ms))

    def _require_frame(self, asked_ms: int) -> None:
        oldest = next(iter(self._outstanding.values()), None)
        if oldest is not None and oldest.sent_ms <= asked_ms and self._heard_ms <= asked_ms:
            self._link.abort()

    def on_frame(self, frame: memoryview) -> None:
        """Handle the messages of a frame in their order, in slices (`sliced_frame.py`). The next
        frames wait until all of them are handled.

        Raise ProtocolError if the frame is malformed, or if a response belongs to another RPC than
        its request. A request without a handler is answered with Unsupported. If a handler closes
        the link, the remaining messages are dropped."""
        self._heard_ms = self._clock.now_ms()
        if len(frame) > SMALL_FRAME_BYTES or self._sliced.waits:
            self._sliced.begin(frame, 0)
            return
        handled = self._handle(iter(rows_of(frame)))
        if handled != ALL:
            self._sliced.begin(frame, handled)

    def _handle(self, rows: Iterator[Row | None]) -> int:
        """Handle messages until the slice ends (`sliced_frame.py` has its bounds and the result).
        The first MESSAGES_BETWEEN messages do not count as time."""
        end_us = taken = 0
        for row in rows:
            taken += 1
            if row is None:
                if self._clock.now_us() >= (end_us := end_us or self._clock.now_us() + SLICE_US):
                    return taken
                continue
            kind = BY_NUMBER.get(row[0])
            if row[0] & 1:
                self._respond(row)
            elif kind is None or (handler := self._handlers.get(kind.cls)) is None:
                name = kind.cls.__name__ if kind else f"request kind {row[0]}"
                self._reply(row[1], row[0] + 1, Unsupported(reason=f"{name} is not served here"))
            else:
                handler(self.peer, kind.read(row), partial(self._reply, row[1], row[0] + 1))
                if self.on_first_request is not None:
                    self.on_first_request()
                    self.on_first_request = None
            if self._link.closed:
                return ALL
            if self._queued_bytes > SLICE_ANSWER_BYTES:
                return taken
            if not taken % MESSAGES_BETWEEN:
                now_us = self._clock.now_us()
                if taken >= MESSAGES_PER_SLICE or now_us >= (end_us := end_us or now_us + SLICE_US):
                    return taken
        return ALL

    def on_closed(self, error: Exception | None) -> None:
        """Fail the requests that are still queued as NOT_SENT and all others as LOST. Then call the
        owner's `on_closed`."""
        self.closed = True
        self._sliced.drop()
        error = error or self._sliced.error
        unsent = {correlation_id for _, correlation_id in self._queue}
        self._queue.clear()
        if self._sweep is not None:
            self._sweep.cancel()
        outstanding, self._outstanding = self._outstanding, {}
        reason = f"the link to {self.peer} closed" + (f": {error}" if error else "")
        for correlation_id, request in outstanding.items():
            kind = FailureKind.NOT_SENT if correlation_id in unsent else FailureKind.LOST
            request.done(RpcFailure(kind, reason))
        # The callbacks refer to this channel, so they would keep it in a reference cycle.
        on_closed, self._on_closed = self._on_closed, _do_nothing
        self._on_sent = self.on_first_request = None
        on_closed(self)

    def _refusal(self) -> str:
        if self.closed or self._link.closed:
            return f"the link to {self.peer} is closed"
        if len(self._outstanding) >= self._settings.max_outstanding:
            return (
                f"{len(self._outstanding)} requests to {self.peer} wait for a response, the maximum"
            )
        if self._waiting_bytes > self._settings.max_pending_bytes:
            return f"{self.peer} does not read: {self._waiting_bytes} bytes wait for it, too many"
        return ""

    def _fail_soon(self, done: Done, reason: str) -> None:
        self._clock.call_soon(partial(done, RpcFailure(FailureKind.NOT_SENT, reason)))

    def _reply(self, correlation_id: int, kind: int, message: Message) -> None:
        if self.closed:
            return None
        name = type(message).__name__
        assert BY_CLASS[type(message)].number == kind or isinstance(message, Unsupported), name
        try:
            data = packed(message, correlation_id)
        except Exception as error:  # the requester must not wait for its timeout
            logger.error("closing the link: cannot encode %s for %s: %r", name, self.peer, error)
            return self._link.abort()
        if len(data) > self._settings.max_frame_bytes - FRAME_HEADER_BYTES:
            logger.error(
                "closing the link: %s for %s has %d bytes, more than a frame",
                name,
                self.peer,
                len(data),
            )
            return self._link.abort()  # as above
        if self._waiting_bytes > self._settings.max_pending_bytes:
            logger.warning("closing the link to %s, which does not read its responses", self.peer)
            return self._link.abort()
        return self._enqueue(data, None)

    def _respond(self, row: list[Any]) -> None:
        request = self._outstanding.get(row[1])
        if request is None:
            return
        kind = BY_NUMBER.get(row[0])
        if kind is None or (kind.number != request.response and kind.cls is not Unsupported):
            raise ProtocolError(f"response of kind {row[0]} to a request of {request.response - 1}")
        response = kind.read(row)  # after an error the request fails when the link closes
        del self._outstanding[row[1]]
        if kind.cls is Unsupported:
            response = RpcFailure(FailureKind.UNSUPPORTED, response.reason)
        request.done(response)

    @property
    def _waiting_bytes(self) -> int:
        """Return the bytes that wait for the peer, including those that leave at the end of this
        loop iteration.

        One frame can hold thousands of requests for large responses. The link is asked only if
        nothing is queued, because its own bytes can grow only when the queue is sent."""
        if not self._queue:
            self._pending_bytes = self._link.pending_bytes
        return self._pending_bytes + self._queued_bytes

    def _enqueue(self, data: bytes, correlation_id: int | None) -> None:
        self._queued_bytes += len(data)
        if not self._queue:
            self._clock.call_soon(self._flush)
        self._queue.append((data, correlation_id))

    def _flush(self) -> None:
        """Send everything that is queued as one frame, or as several if it is too large for one."""
        if not self._queue or self._link.closed:
            return  # the queued requests fail as NOT_SENT when the link ends
        queue, self._queue = self._queue, []
        self._queued_bytes = 0
        parts: list[bytes] = []
        room = self._settings.max_frame_bytes - FRAME_HEADER_BYTES
        for data, _ in queue:
            if len(data) > room or len(parts) == MAX_MESSAGES_PER_FRAME:
                self._link.send(frame_header(len(parts)), *parts)
                parts, room = [], self._settings.max_frame_bytes - FRAME_HEADER_BYTES
            parts.append(data)
            room -= len(data)
        self._link.send(frame_header(len(parts)), *parts)
        if self._on_sent is not None:
            self._on_sent()

    def _sweep_at(self, deadline_ms: int) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep_at_ms = deadline_ms
        delay_ms = max(1, deadline_ms - self._clock.now_ms())
        self._sweep = self._clock.call_later(delay_ms, self._time_out)

    def _time_out(self) -> None:
        self._sweep = None
        now_ms = self._clock.now_ms()
        expired = [i for i, r in self._outstanding.items() if r.deadline_ms <= now_ms]
        requests = [self._outstanding.pop(correlation_id) for correlation_id in expired]
        if self._outstanding:
            self._sweep_at(min(r.deadline_ms for r in self._outstanding.values()))
        failure = RpcFailure(FailureKind.TIMED_OUT, f"no response from {self.peer}")
        if any(request.sent_ms >= self._heard_ms for request in requests):
            self._link.abort()
        for request in requests:
            request.done(failure)


def _do_nothing(channel: Channel) -> None: ...

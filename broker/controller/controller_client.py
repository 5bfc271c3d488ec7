"""Delivers a broker's own requests and forwarded client requests to the active controller
(KIP-590).

The active controller is the Raft leader of the metadata log, which `leader_changed` reports. A
request that cannot be sent now waits in a bounded queue until the leader is connected.

Invariants:

- A request is sent again only if the controller certainly did not append it: it was never sent, or
  the node answered NOT_CONTROLLER. After a lost link or a timeout its outcome is unknown, and the
  sender receives an error. Only forwarded read-only requests (REPEATABLE) are sent again.
- Forwarded requests keep their order: none is sent to a new leader while one at the old leader has
  no outcome.
- Each `done` is called exactly once.
- Once another node leads, no request waits for a former leader that was dead by then. The former
  leader must send a frame within `silence_ms`. Otherwise its link is aborted, and the outcome of
  the requests on it is unknown. A former leader that lives resigns and answers them. If it sends a
  frame and dies before it answers, they wait for their timeouts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from quorate.quorum.controller.state.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.ids import NO_NODE
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.rpc.channel import Channel, RpcFailure
from quorate.quorum.seams import Clock, Timer

MAX_WAITING = 10_000
"""The largest number of waiting requests with which a client's request may wait, too. The broker's
own requests always may: each of their senders has one in flight, and a broker whose heartbeats
failed because of its clients would be fenced."""
MAX_FORWARDED = 2_000
"""The largest number of clients' requests at the controller. The others wait here. The controller
refuses those beyond the part of its queue that one broker may take (`controller_queue.py`)."""
RETRY_MS = 20
"""The time between two attempts to send the waiting requests; also the precision of timeouts."""
REPEATABLE = (ApiKey.DESCRIBE_QUORUM,)
"""Forwarded read-only requests, which may be sent again after an unknown outcome."""


class ControllerLinks(Protocol):
    """The links of this node to the controllers."""

    def channel(self, controller_id: int) -> Channel | None:
        """Return the open channel to a controller, or None."""
        ...


@dataclass(slots=True, eq=False)
class _Request:
    message: Any
    deadline_ms: int
    done: Callable[[Any], None]
    forwarded: bool
    number: int = 0  # in the order of arrival


class ControllerClient:
    """The requests of one broker to the active controller. The event loop owns it.

    If MAX_WAITING requests wait, a client's new request fails. A request that was sent and must be
    sent again returns to the queue in any case."""

    def __init__(
        self,
        clock: Clock,
        links: ControllerLinks,
        silence_ms: int,
        on_sent: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin without a leader. `silence_ms` is the longest time without a frame from a former
        leader. `on_sent` is called after each request that was sent."""
        self._clock = clock
        self._links = links
        self._silence_ms = silence_ms
        self._on_sent = on_sent
        self._leader_id = NO_NODE
        self._asked: Channel | None = None  # the channel of the last request
        self._waiting: deque[_Request] = deque()
        self._in_order = True  # False after a request has returned to the end of _waiting
        self._forwarded: dict[_Request, int] = {}  # in flight, in order, with the controller's id
        self._timer: Timer | None = None
        self._closed = False
        self._next_number = 0

    def send(self, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        """Send a request of this broker (`ControllerChannel.send`). `done` gets the response, or
        None if the outcome is unknown, `timeout_ms` is over, or the client is closed."""
        self._submit(_Request(message, self._clock.now_ms() + timeout_ms, done, forwarded=False))

    def forward(
        self, request: EnvelopeRequest, timeout_ms: int, done: Callable[[EnvelopeResponse], None]
    ) -> None:
        """Forward a client's request in an envelope. `done` gets the response; its error is
        REQUEST_TIMED_OUT if the outcome is unknown, no controller was found within `timeout_ms`,
        the queue is full, or this client is closed."""
        self._submit(_Request(request, self._clock.now_ms() + timeout_ms, done, forwarded=True))

    def leader_changed(self, leader_id: int) -> None:
        """Send to another leader from now on. `leader_id` is NO_NODE if there is none."""
        self._leader_id = leader_id
        former = None if leader_id == NO_NODE else self._asked
        if former is not None and former is not self._links.channel(leader_id):
            former.expect_frame(self._silence_ms)
            self._asked = None
        self.links_changed()

    def links_changed(self) -> None:
        """Try to send the waiting requests soon, because a link was opened or closed."""
        self._clock.call_soon(self._drain)

    def close(self) -> None:
        """Fail all waiting requests, and every later one. A request in flight still gets its
        answer, or fails with its link."""
        self._closed = True
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            self._give_up(request)

    def _submit(self, request: _Request) -> None:
        request.number = self._next_number
        self._next_number += 1
        full = request.forwarded and len(self._waiting) >= MAX_WAITING
        if self._closed or full:
            self._clock.call_soon(lambda: self._give_up(request))
        elif self._waiting or not self._sent(request):
            self._waiting.append(request)
            self._arm()

    def _sent(self, request: _Request) -> bool:
        channel = self._links.channel(self._leader_id)
        if channel is None:
            return False
        leader_id = self._leader_id
        if request.forwarded:
            first = next(iter(self._forwarded.values()), leader_id)
            if first != leader_id or len(self._forwarded) >= MAX_FORWARDED:
                return False
            self._forwarded[request] = leader_id
        timeout_ms = max(1, request.deadline_ms - self._clock.now_ms())
        self._asked = channel
        channel.request(request.message, timeout_ms, lambda answer: self._answered(request, answer))
        self._on_sent()
        return True

    def _answered(self, request: _Request, answer: Any) -> None:
        self._forwarded.pop(request, None)
        unknown = isinstance(answer, RpcFailure) and answer.outcome_unknown
        repeatable = request.forwarded and request.message.api_key in REPEATABLE
        if isinstance(answer, RpcFailure):
            again = not unknown or repeatable
        else:
            again = answer.error == ErrorCode.NOT_CONTROLLER
        if again and not self._closed and self._clock.now_ms() < request.deadline_ms:
            self._requeue(request)
            self._arm()
        elif isinstance(answer, RpcFailure) or again:
            self._give_up(request)
        else:
            request.done(answer)
        if not again and not self._forwarded:
            self._drain()  # other requests may have waited for the outcome of this one

    def _requeue(self, request: _Request) -> None:
        """Put a request back into the queue. The next `_drain` restores the order of arrival.

        A leader that resigns returns thousands of requests at once, so no place is searched."""
        self._waiting.append(request)
        self._in_order = False

    def _give_up(self, request: _Request) -> None:
        if request.forwarded:
            request.done(EnvelopeResponse(error=ErrorCode.REQUEST_TIMED_OUT))
        else:
            request.done(None)

    def _drain(self) -> None:
        now_ms = self._clock.now_ms()
        held: deque[_Request] = deque()
        forwarding = True
        if not self._in_order:
            self._waiting = deque(sorted(self._waiting, key=lambda each: each.number))
            self._in_order = True
        while self._waiting:
            request = self._waiting.popleft()
            if request.deadline_ms <= now_ms:
                self._give_up(request)
            elif (request.forwarded and not forwarding) or not self._sent(request):
                forwarding = forwarding and not request.forwarded
                held.append(request)
        held.extend(self._waiting)
        self._waiting = held
        self._arm()

    def _arm(self) -> None:
        """Schedule another attempt. A new leader answers NOT_CONTROLLER until it is active."""
        if self._waiting and self._timer is None and not self._closed:
            self._timer = self._clock.call_later(RETRY_MS, self._retry)

    def _retry(self) -> None:
        self._timer = None
        self._drain()

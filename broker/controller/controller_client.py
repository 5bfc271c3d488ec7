"""A broker's way to the active controller, for its own requests and for those it forwards for
clients.

Which controller is active is what this broker's copy of the metadata log says (its Raft leader).
What cannot be sent now waits here, bounded and in order, until there is a leader that is connected.

Invariants (design, Traps "Pipelined forwarding"):

- A forwarded request is sent again only when it was provably not appended: it never left, or the
  node answered NOT_CONTROLLER. After a lost link or a timeout its outcome is unknown, and the
  client is told.
- Forwarded requests leave in order: none goes to a new leader while one at the old is unresolved.
- Every `done` is called exactly once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from quorate.quorum.controller.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.ids import NO_NODE
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.rpc.channel import Channel, RpcFailure
from quorate.quorum.seams import Clock, Timer

MAX_WAITING = 10_000
RETRY_MS = 20
REPEATABLE = (ApiKey.DESCRIBE_QUORUM,)  # changes nothing, so an unknown outcome may be tried again


class ControllerLinks(Protocol):
    def channel(self, controller_id: int) -> Channel | None: ...


@dataclass(slots=True, eq=False)
class _Request:
    message: Any
    deadline_ms: int
    done: Callable[[Any], None]
    forwarded: bool
    number: int = 0  # order of arrival


class ControllerClient:
    def __init__(
        self, clock: Clock, links: ControllerLinks, on_sent: Callable[[], None] = lambda: None
    ) -> None:
        self._clock = clock
        self._links = links
        self._on_sent = on_sent
        self._leader_id = NO_NODE
        self._waiting: deque[_Request] = deque()
        self._forwarded: dict[_Request, int] = {}  # in flight, in order -> controller asked
        self._timer: Timer | None = None
        self._closed = False
        self._next_number = 0

    def send(self, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        """ControllerChannel: the broker's own requests; `done(None)` when nothing came back."""
        self._submit(_Request(message, self._clock.now_ms() + timeout_ms, done, forwarded=False))

    def forward(
        self, request: EnvelopeRequest, timeout_ms: int, done: Callable[[EnvelopeResponse], None]
    ) -> None:
        self._submit(_Request(request, self._clock.now_ms() + timeout_ms, done, forwarded=True))

    def leader_changed(self, leader_id: int) -> None:
        """NO_NODE: there is none now."""
        self._leader_id = leader_id
        self.links_changed()

    def links_changed(self) -> None:
        self._clock.call_soon(self._drain)

    def close(self) -> None:
        self._closed = True
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            self._give_up(request)

    def _submit(self, request: _Request) -> None:
        request.number = self._next_number
        self._next_number += 1
        if self._closed or len(self._waiting) >= MAX_WAITING:
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
            if first != leader_id:
                return False
            self._forwarded[request] = leader_id
        timeout_ms = max(1, request.deadline_ms - self._clock.now_ms())
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
            self._drain()  # others may have waited for this one to be resolved

    def _requeue(self, request: _Request) -> None:
        """In order of arrival: before what came after it."""
        position = 0
        while position < len(self._waiting) and self._waiting[position].number < request.number:
            position += 1
        self._waiting.insert(position, request)

    def _give_up(self, request: _Request) -> None:
        if request.forwarded:
            request.done(EnvelopeResponse(error=ErrorCode.REQUEST_TIMED_OUT))
        else:
            request.done(None)

    def _drain(self) -> None:
        now_ms = self._clock.now_ms()
        held: deque[_Request] = deque()
        forwarding = True
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
        """Try again soon: NOT_CONTROLLER may come from a leader that is not active yet."""
        if self._waiting and self._timer is None and not self._closed:
            self._timer = self._clock.call_later(RETRY_MS, self._retry)

    def _retry(self) -> None:
        self._timer = None
        self._drain()

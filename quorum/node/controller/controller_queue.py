"""The requests that wait for the active controller, in the order in which it takes them.

Nodes come first, because a broker whose heartbeat waits behind admin requests would be fenced.
Clients come after them, one source after the other, so a source with many requests delays only
itself. A source is the connection or the node that a request came through. To keep clients from
starving, every second request is a client's while both wait.

The queue is bounded in requests and in bytes. MAX_QUEUED requests of nodes may wait, and as many of
clients, because clients must not take the places of heartbeats. Of one client source,
MAX_QUEUED_PER_SOURCE may wait. The bounds in bytes hold in the same way, but a request of any size
may wait alone. A source that is refused once is refused until none of its requests wait. Otherwise
a small request would overtake a large one that its broker sends again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

R = TypeVar("R")

MAX_QUEUED = 20_000
MAX_QUEUED_PER_SOURCE = 5_000
MAX_QUEUED_BYTES = 128 << 20
MAX_QUEUED_BYTES_PER_SOURCE = 64 << 20


class _Requests(Generic[R]):
    """The requests of the nodes or of one source, the oldest first, with their sizes."""

    __slots__ = ("held", "held_bytes", "refuses")

    def __init__(self) -> None:
        self.held: deque[tuple[R, int]] = deque()
        self.held_bytes = 0
        self.refuses = False
        """True after a request of this source was refused."""

    def push(self, request: R, size_bytes: int) -> None:
        self.held.append((request, size_bytes))
        self.held_bytes += size_bytes

    def pop(self) -> tuple[R, int]:
        request, size_bytes = self.held.popleft()
        self.held_bytes -= size_bytes
        return request, size_bytes


class ControllerQueue(Generic[R]):
    """The waiting requests. Owned by the node's event loop.

    Invariants: no source in `_clients` has an empty queue. `_client_bytes` is the sum of the bytes
    of all sources."""

    def __init__(self) -> None:
        self._nodes: _Requests[R] = _Requests()
        self._clients: dict[Hashable, _Requests[R]] = {}  # The next source comes first.
        self._length = 0
        self._client_bytes = 0
        self._client_is_next = False

    def __len__(self) -> int:
        return self._length

    def push(self, request: R, source: Hashable | None, size_bytes: int = 0) -> bool:
        """Queue a request of a client's `source`, or of a node if `source` is None. `size_bytes` is
        the memory that it holds.

        Return False if the queue is full, or the part of this source. The request is then not
        queued."""
        if source is None:
            nodes = self._nodes
            if len(nodes.held) >= MAX_QUEUED or (
                nodes.held_bytes and nodes.held_bytes + size_bytes > MAX_QUEUED_BYTES
            ):
                return False
            nodes.push(request, size_bytes)
        else:
            requests = self._clients.get(source)
            if self._refuses(requests, size_bytes):
                return False
            if requests is None:
                requests = self._clients[source] = _Requests()
            requests.push(request, size_bytes)
            self._client_bytes += size_bytes
        self._length += 1
        return True

    def _refuses(self, requests: _Requests[R] | None, size_bytes: int) -> bool:
        """Return True if a request of this size does not fit behind those of its source."""
        refuses = self._length - len(self._nodes.held) >= MAX_QUEUED or bool(
            self._client_bytes and self._client_bytes + size_bytes > MAX_QUEUED_BYTES
        )
        if requests is None:
            return refuses
        requests.refuses |= (
            refuses
            or len(requests.held) >= MAX_QUEUED_PER_SOURCE
            or requests.held_bytes + size_bytes > MAX_QUEUED_BYTES_PER_SOURCE
        )
        return requests.refuses

    def pop(self) -> R:
        """Take the next request. Raise IndexError if the queue is empty."""
        take_client = self._clients and (self._client_is_next or not self._nodes.held)
        self._client_is_next = not take_client
        request = self._pop_client() if take_client else self._nodes.pop()[0]
        self._length -= 1
        return request

    def oldest(self) -> Iterator[R]:
        """Yield the oldest request of the nodes, and that of each client source."""
        if self._nodes.held:
            yield self._nodes.held[0][0]
        for requests in self._clients.values():
            yield requests.held[0][0]

    def clear(self) -> list[R]:
        """Empty the queue and return what it held."""
        queues = (self._nodes, *self._clients.values())
        held = [request for each in queues for request, _ in each.held]
        self._nodes = _Requests()
        self._clients.clear()
        self._length = self._client_bytes = 0
        return held

    def _pop_client(self) -> R:
        source, requests = next(iter(self._clients.items()))
        request, size_bytes = requests.pop()
        self._client_bytes -= size_bytes
        if len(self._clients) > 1 or not requests.held:
            del self._clients[source]
            if requests.held:
                self._clients[source] = requests  # Its next turn is after all other sources.
        return request

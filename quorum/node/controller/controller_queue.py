"""The requests that wait for the active controller, in the order in which it takes them.

Nodes come first, because a broker whose heartbeat waits behind admin requests would be fenced.
Clients come after them, one source after the other, so a source with many requests delays only
itself. A source is the connection or the node that a request came through. To keep clients from
starving, every second request is a client's while both wait.

The queue is bounded. MAX_QUEUED requests of nodes may wait, and as many of clients, because clients
must not take the places of heartbeats. Of one client source, MAX_QUEUED_PER_SOURCE may wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

R = TypeVar("R")

MAX_QUEUED = 20_000
MAX_QUEUED_PER_SOURCE = 5_000


class ControllerQueue(Generic[R]):
    """The waiting requests. Owned by the node's event loop.

    Invariant: no source in `_clients` has an empty queue."""

    def __init__(self) -> None:
        self._nodes: deque[R] = deque()
        self._clients: dict[Hashable, deque[R]] = {}  # The next source comes first.
        self._length = 0
        self._client_is_next = False

    def __len__(self) -> int:
        return self._length

    def push(self, request: R, source: Hashable | None) -> bool:
        """Queue a request of a client's `source`, or of a node if `source` is None.

        Return False if the queue is full, or the part of this source. The request is then not
        queued."""
        if source is None:
            if len(self._nodes) >= MAX_QUEUED:
                return False
            self._nodes.append(request)
        else:
            if self._length - len(self._nodes) >= MAX_QUEUED:
                return False
            requests = self._clients.get(source)
            if requests is None:
                self._clients[source] = deque((request,))
            elif len(requests) >= MAX_QUEUED_PER_SOURCE:
                return False
            else:
                requests.append(request)
        self._length += 1
        return True

    def pop(self) -> R:
        """Take the next request. Raise IndexError if the queue is empty."""
        take_client = self._clients and (self._client_is_next or not self._nodes)
        self._client_is_next = not take_client
        request = self._pop_client() if take_client else self._nodes.popleft()
        self._length -= 1
        return request

    def oldest(self) -> Iterator[R]:
        """Yield the oldest request of the nodes, and that of each client source."""
        if self._nodes:
            yield self._nodes[0]
        for requests in self._clients.values():
            yield requests[0]

    def clear(self) -> list[R]:
        """Empty the queue and return what it held."""
        held = [*self._nodes, *(each for requests in self._clients.values() for each in requests)]
        self._nodes.clear()
        self._clients.clear()
        self._length = 0
        return held

    def _pop_client(self) -> R:
        source, requests = next(iter(self._clients.items()))
        request = requests.popleft()
        if len(self._clients) > 1 or not requests:
            del self._clients[source]
            if requests:
                self._clients[source] = requests  # Its next turn is after all other sources.
        return request

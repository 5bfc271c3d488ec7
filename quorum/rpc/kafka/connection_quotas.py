"""The bounds that one or more Kafka ports share: connections, and the requests that wait in them.

- More than `max_connections`: another connection makes room for the new one. Connections without a
  valid request close first, the oldest of them first. Then the connection that was unused for the
  longest time closes. A new client therefore gets in, however many connections one peer holds.
- More than `max_connections_per_ip`, or the number configured for that address: the new connection
  is closed.
- More than `max_creation_rate` in a second: the new connections are read later, by at most
  MAX_THROTTLE_MS (KIP-612).
- More than the quota `connection_creation_rate` of its address: the new connection is closed after
  the throttle time, and not read until then (KIP-612).
- Idle for `max_idle_ms`: the connection is closed (`idle_connections.py`).
- The server always reads up to ALWAYS_TAKEN requests of each connection. The requests beyond this
  number are counted over all connections. While `max_queued_requests` of these wait, connections
  with ALWAYS_TAKEN requests are not read. A client with long pipelines therefore cannot slow down
  the others.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from ipaddress import ip_address
from typing import Any, Protocol

from quorate.quorum.log_limit import LogLimit
from quorate.quorum.open_files import open_files
from quorate.quorum.quotas.connection_rates import ConnectionRates
from quorate.quorum.rpc.kafka.idle_connections import UsedConnection, close_idle
from quorate.quorum.seams import Address, Clock, Timer

logger = logging.getLogger("quorate.kafka")

NO_LIMIT = 2**31 - 1
MAX_CONNECTIONS = 16_384
"""The limit of connections if `max.connections` sets none."""
CLIENTS_FILES = 2
OTHERS_FILES = 16
"""The files that the process may open (RLIMIT_NOFILE), divided by these numbers, bound the
connections of clients and of each other port. `quorum/open_files.py` names the other uses."""
ALWAYS_TAKEN = 5
"""Requests of one connection that the server reads even if the queue is full. Producers have at
most five requests in flight by default (max.in.flight.requests.per.connection)."""
CANDIDATES = 64
"""The longest unused connections that one scan finds, as the next ones to make room."""
MAX_THROTTLE_MS = 1000
"""Kafka's quota window. A connection is delayed for this time at most, and the connections of one
window may arrive together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits of one group of Kafka connections. Kafka's names for them are in
    `ConnectionLimits.of`."""

    max_connections: int = 10_000
    max_connections_per_ip: int = NO_LIMIT
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    max_creation_rate: int = NO_LIMIT
    """Connections per second."""
    max_idle_ms: int = 600_000
    """A negative value means that idle connections stay open."""
    max_queued_requests: int = 500

    @classmethod
    def of(cls, node: Mapping[str, Any], one_file_in: int = CLIENTS_FILES) -> ConnectionLimits:
        """Read the limits from a node's typed settings (`quorate.config`).

        `max_connections` is at most the number of files that the process may open, divided by
        `one_file_in`."""
        configured: int = node["max.connections"]
        if configured == NO_LIMIT:
            configured = MAX_CONNECTIONS
        return cls(
            max_connections=min(configured, open_files() // one_file_in),
            max_connections_per_ip=node["max.connections.per.ip"],
            per_ip_overrides=_overrides(node["max.connections.per.ip.overrides"]),
            max_creation_rate=node["max.connection.creation.rate"],
            max_idle_ms=node["connections.max.idle.ms"],
            max_queued_requests=node["queued.max.requests"],
        )

    def max_of_host(self, host: str) -> int:
        """Return the number of connections that `host`, an IP address, may have."""
        return self.per_ip_overrides.get(host, self.max_connections_per_ip)


def _overrides(text: str) -> dict[str, int]:
    """Return the limits by address. Ignore a pair that cannot be parsed.

    The metadata log may hold such a pair from an earlier version, and no node could start with
    it."""
    bounds = {}
    for pair in text.split(",") if text else ():
        host, _, count = pair.strip().rpartition(":")
        try:
            bounds[str(ip_address(host.strip("[]")))] = int(count)
        except ValueError:
            continue
    return bounds


class QuotaConnection(UsedConnection, Protocol):
    """A connection, as its quotas use it."""

    @property
    def peer(self) -> Address:
        """Return the address of the client."""

    def close_with(self, reason: str, level: int) -> None:
        """Close the connection and log the reason. The connection then calls
        `ConnectionQuotas.remove`."""

    def pause_reading_for(self, delay_ms: int) -> None:
        """Do not read the connection for `delay_ms`."""

    def update_reading(self) -> None:
        """Pause or resume reading, as the bounds now require."""


class ConnectionQuotas:
    """The open connections of one or more Kafka ports. The event loop owns it.

    `limits` may be replaced at any time. Open connections remain, even if they exceed the new
    limits. Invariant: `_silent` and `_waiting` are subsets of `_open`."""

    def __init__(self, clock: Clock, limits: ConnectionLimits | None = None) -> None:
        """Create quotas without connections, with `limits` or the default limits."""
        self.limits = limits or ConnectionLimits()
        self._clock = clock
        self._open: dict[QuotaConnection, None] = {}
        self._silent: dict[QuotaConnection, None] = {}  # no valid request yet; oldest first
        self._unused: deque[tuple[int, QuotaConnection]] = (
            deque()
        )  # (used_ms, connection), as of the last scan
        self._lines = LogLimit(clock)
        self.displaced = 0
        """The number of connections that were closed to make room for new ones."""
        self._by_host: dict[str, int] = {}
        self._queued = 0
        self._waiting: dict[QuotaConnection, None] = {}  # not read while the queue is full
        self._creation_due_ms = 0.0
        self._idle_timer: Timer | None = None
        self.rates: ConnectionRates | None = None
        """The rates of new connections per address, or None while no quota bounds them."""

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._open)

    def add(self, connection: QuotaConnection) -> None:
        """Count a new connection. This may close it, or another one, or delay its reading."""
        limits, host = self.limits, connection.peer.host
        self._open[connection] = self._silent[connection] = None
        count = self._by_host[host] = self._by_host.get(host, 0) + 1
        if count > limits.max_of_host(host):
            most = limits.max_of_host(host)
            reason = f"{host} already has the configured maximum of {most} connections"
            connection.close_with(reason, logging.WARNING)
            return
        if self.rates is not None and self._refused_later(self.rates, connection):
            return
        if len(self._open) > limits.max_connections:
            self._make_room(connection)
        self._throttle(connection)
        if self._idle_timer is None and limits.max_idle_ms >= 0:
            self._close_idle_in(limits.max_idle_ms)

    def remove(self, connection: QuotaConnection) -> None:
        """Remove a connection that is closed or about to close. A second call has no effect."""
        if connection not in self._open:
            return
        del self._open[connection]
        self._silent.pop(connection, None)
        self._waiting.pop(connection, None)
        host = connection.peer.host
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
        if not self._open and self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def sent_valid_request(self, connection: QuotaConnection) -> None:
        """Record that `connection` has sent a valid request."""
        self._silent.pop(connection, None)

    @property
    def silent(self) -> int:
        """Return the number of connections that have not sent a valid request."""
        return len(self._silent)

    # --- requests

    @property
    def queue_full(self) -> bool:
        """Return True if connections with ALWAYS_TAKEN requests must not be read now."""
        return self._queued >= self.limits.max_queued_requests

    def add_queued(self, change: int) -> None:
        """Record that `change` more requests wait beyond ALWAYS_TAKEN of their connections. If
        `change` is negative, connections that waited are read again while there is room."""
        self._queued += change
        free = self.limits.max_queued_requests - self._queued
        while change < 0 and free > 0 and self._waiting:
            connection = next(iter(self._waiting))
            del self._waiting[connection]
            connection.update_reading()
            free -= 1

    def wait_for_room(self, connection: QuotaConnection) -> None:
        """Call `connection.update_reading` when the queue has room again.

        A connection that is being closed is not read again, so it does not wait."""
        if connection in self._open:
            self._waiting[connection] = None

    # --- connections

    def _make_room(self, newcomer: QuotaConnection) -> None:
        """Close another connection. Kafka lets the new one wait instead, until a connection
        closes."""
        most = self.limits.max_connections
        oldest = next(iter(self._silent))
        if oldest is not newcomer:
            reason = f"more than {most} connections: it has not sent a valid request"
        else:
            oldest = self._longest_unused(newcomer)
            reason = f"more than {most} connections: it was longest not used"
        self.displaced += 1
        left_out = self._lines.passes("make room")
        if left_out is None:
            oldest.close_with(reason, logging.DEBUG)
        else:
            oldest.close_with(f"{reason}{left_out}", logging.WARNING)

    def _longest_unused(self, newcomer: QuotaConnection) -> QuotaConnection:
        """Return the connection that was unused for the longest time.

        A scan of all connections for each new one would let new connections take the CPU. One scan
        therefore finds the next CANDIDATES. A candidate that was used after the scan is skipped."""
        for _ in range(2):
            while self._unused:
                used_ms, candidate = self._unused.popleft()
                if candidate in self._open and candidate.used_ms == used_ms:
                    return candidate
            others = (each for each in self._open if each is not newcomer)
            oldest = nsmallest(CANDIDATES, others, key=lambda each: each.used_ms)
            self._unused.extend((each.used_ms, each) for each in oldest)
        return newcomer

    def _refused_later(self, rates: ConnectionRates, connection: QuotaConnection) -> bool:
        """Return True if the address of a new connection exceeds its quota (KIP-612).

        The connection is then not read, and closed after the throttle time. A client that connects
        in a loop therefore cannot do so faster. The number of such connections is bounded as that
        of all connections."""
        host = connection.peer.host
        delay_ms = rates.record(host, self._clock.now_ms())
        if not delay_ms:
            return False
        if len(self._open) > self.limits.max_connections:
            self._make_room(connection)
        reason = f"{host} creates more connections than its quota connection_creation_rate allows"
        connection.pause_reading_for(2 * delay_ms)
        self._clock.call_later(delay_ms, lambda: connection.close_with(reason, logging.DEBUG))
        return True

    def _throttle(self, connection: QuotaConnection) -> None:
        rate = self.limits.max_creation_rate
        if rate >= NO_LIMIT:
            return
        now_ms = self._clock.now_ms()
        due_ms = max(self._creation_due_ms, now_ms) + 1000 / max(1, rate)
        delay_ms = due_ms - now_ms - MAX_THROTTLE_MS
        self._creation_due_ms = min(due_ms, now_ms + 2 * MAX_THROTTLE_MS)
        if delay_ms > 0:
            connection.pause_reading_for(min(int(delay_ms) + 1, MAX_THROTTLE_MS))

    def _close_idle_in(self, delay_ms: int) -> None:
        self._idle_timer = self._clock.call_later(delay_ms, self._close_idle)

    def _close_idle(self) -> None:
        self._idle_timer = None
        max_idle_ms = self.limits.max_idle_ms
        if max_idle_ms < 0:
            return
        next_ms = close_idle(list(self._open), max_idle_ms, self._clock.now_ms())
        if self._open:
            self._close_idle_in(next_ms)

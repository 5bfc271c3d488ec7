"""The memory that peers may occupy on a node: one table of budgets, and the rules of their use.

| budget    | counts                                         | key                                |
|-----------|------------------------------------------------|------------------------------------|
| requests  | unfinished frames, and requests in flight      | queued.max.request.bytes           |
| responses | responses that wait for others or are not read | quorate.queued.max.response.bytes  |
| nodes     | both, of the links between nodes               | MAX_NODES_BYTES                    |
| sessions  | partitions in consumers' fetch sessions        | quorate.fetch.sessions.max.bytes   |

Links between nodes have a budget of their own, so that clients cannot put them under pressure.

Rules for requests, responses and nodes:

- A connection is counted only while it holds more than SMALL_BYTES, so ordinary requests cost
  nothing here. The uncounted bytes of clients are at most SMALL_BYTES times `max.connections`.
- A budget is under pressure when more than half of it is used. The server then reads only one of
  the connections that hold more than the share of one connection, because large requests could
  otherwise stop each other. It is the connection that exceeded its share first. The next one
  follows when that one holds no more than its share. A request of up to half of the budget
  therefore always fits. The budget of responses does not stop the reading of connections.
- The less of a budget is left, the fewer bytes a response to a fetch may have (`Budget.room`,
  `node_link_memory.fetch_room`).
- When a budget is used up, connections are closed until RELIEF of it is free. The order is by bytes
  multiplied by the time for which they have been held, the largest product first. A connection that
  finishes its frames and reads its responses holds bytes for milliseconds, so it is last.
- Under pressure, connections that made no progress for STALL_MS are closed in the same order, until
  the pressure ends. Progress means that the changes of the bytes that a connection holds add up to
  PROGRESS of these bytes. The time in which this budget stops the reading of a connection does not
  count.

`broker/replication/fetches/fetch_session_cache.py` keeps the budget of sessions. The members of
groups outlive their connections, and have bounds of their own (`broker/groups/member_memory.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from quorate.quorum.log_limit import LogLimit
from quorate.quorum.seams import Address, Clock

logger = logging.getLogger("quorate.kafka")

MIB = 1 << 20
NO_LIMIT = -1  # the value of queued.max.request.bytes without a limit, as in Kafka
NO_LIMIT_BYTES = 1 << 62
SMALL_BYTES = 16 << 10
PRESSURE = 1 / 2
RELIEF = 1 / 8
SHARE = 1 / 64
"""The part of a budget that one connection may hold under pressure, but at least SMALL_BYTES."""
STALL_MS = 10_000
STALL_CHECK_MS = 1000
PROGRESS = 1 / 8
"""A connection makes no progress if the changes of its bytes in STALL_MS add up to a smaller part
than this."""
LEAST_READ_BYTES = 64 << 10
"""The bytes that every response to a fetch may have, even if the budget is used up."""
MAX_NODES_BYTES = 256 * MIB
"""Eight of the largest frames between nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    """The limits of the budgets, in bytes."""

    request_bytes: int = 256 * MIB
    response_bytes: int = 256 * MIB
    session_bytes: int = 128 * MIB

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> MemoryLimits:
        """Read the limits from a node's typed settings (`quorate.config`). The request limit may be
        -1, which means none."""
        request_bytes = node["queued.max.request.bytes"]
        return cls(
            request_bytes=NO_LIMIT_BYTES if request_bytes == NO_LIMIT else request_bytes,
            response_bytes=node["quorate.queued.max.response.bytes"],
            session_bytes=node["quorate.fetch.sessions.max.bytes"],
        )


class Holder(Protocol):
    """A connection that holds bytes of a budget. Its methods run on the event loop."""

    @property
    def peer(self) -> Address:
        """Return the address of the other end, for log lines."""

    def update_reading(self) -> None:
        """Pause or resume reading, as the bounds now require."""

    def report_memory(self) -> None:
        """Call `Budget.set_held` with the bytes that the connection holds now."""

    def evict(self) -> None:
        """Close the connection immediately and discard its requests and responses."""


class _Holding:
    __slots__ = ("bytes", "moved_bytes", "progress_ms", "since_ms")

    def __init__(self, since_ms: int) -> None:
        self.bytes = 0
        self.since_ms = since_ms
        self.progress_ms = since_ms
        self.moved_bytes = 0  # since progress_ms

    def weight(self, now_ms: int) -> int:
        return self.bytes * (now_ms - self.since_ms + 1)

    def set(self, held_bytes: int, now_ms: int) -> None:
        self.moved_bytes += abs(held_bytes - self.bytes)
        self.bytes = held_bytes
        if self.moved_bytes >= held_bytes * PROGRESS:
            self.progressed(now_ms)

    def progressed(self, now_ms: int) -> None:
        self.moved_bytes = 0
        self.progress_ms = now_ms


class Budget:
    """The bytes of one kind that connections hold. The event loop owns it.

    Invariant: `used_bytes` is the sum of the bytes of all counted connections. `evicted` is the
    number of connections that the budget has closed, for metrics."""

    def __init__(self, name: str, key: str, limit_bytes: int, clock: Clock) -> None:
        """Create an empty budget. `name` and `key` appear in log lines."""
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.evicted = 0
        self._share_bytes = max(SMALL_BYTES, int(limit_bytes * SHARE))
        self._name = name
        self._key = key
        self._clock = clock
        self._holdings: dict[Holder, _Holding] = {}
        self._large: dict[Holder, None] = {}  # holders over their share, the first one first
        self._unread: dict[Holder, None] = {}  # the holders of _large that are not read
        self._evicting = False
        self._checking = False
        self._lines = LogLimit(clock)

    def __len__(self) -> int:
        """Return the number of connections that are counted."""
        return len(self._holdings)

    @property
    def under_pressure(self) -> bool:
        """Return True if more than half of the budget is used."""
        return self.used_bytes > self.limit_bytes * PRESSURE

    def must_wait(self, holder: Holder) -> bool:
        """Return True if `holder` must not be read now.

        The budget remembers it and calls its `update_reading` when it may be read."""
        waits = self._waits(holder)
        if waits:
            self._unread[holder] = None
        else:
            self._unread.pop(holder, None)
        return waits

    def room(self) -> int:
        """Return the number of bytes that one more response may have: a quarter of the free bytes.

        The result is at least LEAST_READ_BYTES, because a response with one batch must remain
        possible."""
        left_bytes = self.limit_bytes - self.used_bytes
        return max(LEAST_READ_BYTES, left_bytes // 4)

    def set_held(self, holder: Holder, held_bytes: int) -> None:
        """Record that `holder` now holds `held_bytes`. This may close connections, including
        `holder`.

        The time for which a connection has held bytes starts when they exceed SMALL_BYTES. It
        starts anew after they were SMALL_BYTES or less. Call this with 0 when the connection
        ends."""
        holding = self._holdings.get(holder)
        if held_bytes <= SMALL_BYTES:
            if holding is not None:
                self._release(holder, holding)
            return
        now_ms = self._clock.now_ms()
        if holding is None:
            holding = self._holdings[holder] = _Holding(now_ms)
        self.used_bytes += held_bytes - holding.bytes
        holding.set(held_bytes, now_ms)
        if held_bytes > self._share_bytes:
            self._large[holder] = None
        else:
            self._large.pop(holder, None)
        if self.used_bytes > self.limit_bytes:
            self._evict_heaviest()
        elif not self._checking and self.under_pressure:
            self._checking = True
            self._clock.call_later(STALL_CHECK_MS, self._check_stalled)
        self._wake()

    def _waits(self, holder: Holder) -> bool:
        return (
            self.under_pressure and holder in self._large and next(iter(self._large)) is not holder
        )

    def _wake(self) -> None:
        """Resume the connections that no longer have to wait."""
        if self._unread:
            for each in [each for each in self._unread if not self._waits(each)]:
                self._unread.pop(each, None)
                each.update_reading()

    def _release(self, holder: Holder, holding: _Holding) -> None:
        del self._holdings[holder]
        self.used_bytes -= holding.bytes
        self._large.pop(holder, None)
        self._unread.pop(holder, None)
        self._wake()

    def _heaviest_first(self, holders: Iterable[Holder]) -> list[Holder]:
        now_ms = self._clock.now_ms()
        return sorted(holders, key=lambda each: self._holdings[each].weight(now_ms), reverse=True)

    def _evict_heaviest(self) -> None:
        if self._evicting:
            return
        target_bytes = self.limit_bytes * (1 - RELIEF)
        for holder in self._heaviest_first(self._holdings):
            if self.used_bytes <= target_bytes:
                break
            self._evict(holder, "the budget is used up and it holds the most for the longest")

    def _check_stalled(self) -> None:
        self._checking = False
        now_ms = self._clock.now_ms()
        for holder in filter(self._waits, self._unread):
            self._holdings[holder].progressed(now_ms)
        oldest_ms = now_ms - STALL_MS
        late = [each for each, its in self._holdings.items() if its.progress_ms <= oldest_ms]
        for holder in self._heaviest_first(late):
            if not self.under_pressure:
                return
            holder.report_memory()
            holding = self._holdings.get(holder)
            if holding is not None and holding.progress_ms <= oldest_ms:
                self._evict(holder, f"it has made no progress for {STALL_MS} ms")
        if self.under_pressure and not self._checking:
            self._checking = True
            self._clock.call_later(STALL_CHECK_MS, self._check_stalled)

    def _evict(self, holder: Holder, reason: str) -> None:
        holding = self._holdings.get(holder)
        if holding is None:  # the connection ended in the meantime
            return
        used_bytes, self._evicting = self.used_bytes, True
        try:
            self._release(holder, holding)
            self.evicted += 1
            self._log(holder, holding.bytes, used_bytes, reason)
            holder.evict()
        finally:
            self._evicting = False

    def _log(self, holder: Holder, held_bytes: int, used_bytes: int, reason: str) -> None:
        left_out = self._lines.passes(self._name)
        if left_out is not None:
            logger.warning(
                "closing the connection from %s, which holds %d bytes of %s: %s. %d bytes are "
                "used, %s allows %d.%s",
                holder.peer,
                held_bytes,
                self._name,
                reason,
                used_bytes,
                self._key,
                self.limit_bytes,
                left_out,
            )


class Memory:
    """The budgets of one node. All of its ports share them.

    `requests`, `responses` and `nodes` are Budgets. Of the budget of sessions there is only the
    limit, `limits.session_bytes`."""

    def __init__(self, clock: Clock, limits: MemoryLimits | None = None) -> None:
        """Create the budgets with `limits`, or with the default limits."""
        self.limits = limits = limits or MemoryLimits()
        self.requests = Budget("requests", "queued.max.request.bytes", limits.request_bytes, clock)
        self.responses = Budget(
            "responses", "quorate.queued.max.response.bytes", limits.response_bytes, clock
        )
        self.nodes = Budget("node links", "MAX_NODES_BYTES", MAX_NODES_BYTES, clock)

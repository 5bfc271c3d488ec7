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
  nothing here. What is not counted is bounded by SMALL_BYTES times `max.connections`.
- Under pressure, when more than half of a budget is used, connections that hold more than the
  `share` of one connection are not read. Fetches are answered with less (`room`).
- When a budget is used up, connections are closed until RELIEF of it is free: first those whose
  bytes, multiplied by the time that they have been held, are most. A connection that finishes its
  frames and reads its responses holds bytes for milliseconds, so it is last.
- Under pressure, a connection that is over its share and has been so for STALL_MS is closed.

The sessions' budget is kept by `broker/replication/session_cache.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from quorate.quorum.seams import Address, Clock

logger = logging.getLogger("quorate.kafka")

MIB = 1 << 20
NO_LIMIT = -1  # of queued.max.request.bytes, as in Kafka
NO_LIMIT_BYTES = 1 << 62
SMALL_BYTES = 16 << 10
PRESSURE = 1 / 2
RELIEF = 1 / 8
SHARE = 1 / 64
"""The part of a budget that one connection may hold under pressure."""
STALL_MS = 10_000
STALL_CHECK_MS = 1000
LINE_INTERVAL_MS = 1000
LEAST_READ_BYTES = 64 << 10
MAX_NODES_BYTES = 256 * MIB
"""Eight of the largest frames between nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    request_bytes: int = 256 * MIB
    response_bytes: int = 256 * MIB
    session_bytes: int = 128 * MIB

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> MemoryLimits:
        """Read the limits from a node's typed settings (`quorate.config`)."""
        request_bytes = node["queued.max.request.bytes"]
        return cls(
            request_bytes=NO_LIMIT_BYTES if request_bytes == NO_LIMIT else request_bytes,
            response_bytes=node["quorate.queued.max.response.bytes"],
            session_bytes=node["quorate.fetch.sessions.max.bytes"],
        )


class Holder(Protocol):
    """A connection that holds bytes of a budget."""

    @property
    def peer(self) -> Address: ...

    def bound(self) -> None:
        """Read the connection or not, as the bounds now require."""

    def evict(self) -> None:
        """Close the connection immediately and discard what it holds."""


class _Holding:
    __slots__ = ("bytes", "since_ms")

    def __init__(self, since_ms: int) -> None:
        self.bytes = 0
        self.since_ms = since_ms


class Budget:
    """The bytes of one kind that connections hold. `evicted` counts for metrics."""

    def __init__(self, name: str, key: str, limit_bytes: int, clock: Clock) -> None:
        """`name` and `key` are for log lines."""
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.evicted = 0
        self._name = name
        self._key = key
        self._clock = clock
        self._holdings: dict[Holder, _Holding] = {}
        self._evicting = False
        self._checking = False
        self._next_line_ms = 0
        self._left_out = 0

    def __len__(self) -> int:
        """The number of connections that are counted."""
        return len(self._holdings)

    @property
    def share_bytes(self) -> int:
        return max(SMALL_BYTES, int(self.limit_bytes * SHARE))

    @property
    def pressed(self) -> bool:
        return self.used_bytes > self.limit_bytes * PRESSURE

    def over_share(self, held_bytes: int) -> bool:
        """Return True if a connection that holds so much must not be read now. A connection may use
        what no other one needs."""
        share_bytes = self.share_bytes
        return (
            held_bytes > share_bytes and self.used_bytes - held_bytes > share_bytes and self.pressed
        )

    def room(self) -> int:
        """Return the bytes that one more response may have. It is positive, because a response with
        one batch must remain possible."""
        left_bytes = self.limit_bytes - self.used_bytes
        return max(LEAST_READ_BYTES, left_bytes // 4)

    def hold(self, holder: Holder, held_bytes: int) -> None:
        """Note that `holder` now holds `held_bytes`. This may close connections, also `holder`.

        The time of a holding starts when it exceeds SMALL_BYTES, and ends when it does not."""
        holding = self._holdings.get(holder)
        if held_bytes <= SMALL_BYTES:
            if holding is not None:
                self._release(holder, holding)
            return
        if holding is None:
            holding = self._holdings[holder] = _Holding(self._clock.now_ms())
        self.used_bytes += held_bytes - holding.bytes
        holding.bytes = held_bytes
        if self.used_bytes > self.limit_bytes:
            self._evict_heaviest()
        elif not self._checking and self.pressed:
            self._checking = True
            self._clock.call_later(STALL_CHECK_MS, self._check_stalled)

    def _release(self, holder: Holder, holding: _Holding) -> None:
        pressed = self.pressed
        del self._holdings[holder]
        self.used_bytes -= holding.bytes
        if pressed and not self.pressed:
            for each in list(self._holdings):
                each.bound()

    def _evict_heaviest(self) -> None:
        if self._evicting:
            return
        now_ms = self._clock.now_ms()
        weights = [
            (each.bytes * (now_ms - each.since_ms + 1), order, holder)
            for order, (holder, each) in enumerate(self._holdings.items())
        ]
        weights.sort(key=lambda each: each[:2], reverse=True)
        target_bytes = self.limit_bytes * (1 - RELIEF)
        for _, _, holder in weights:
            if self.used_bytes <= target_bytes:
                break
            self._evict(holder, "the budget is used up and it holds the most for the longest")

    def _check_stalled(self) -> None:
        self._checking = False
        if not self.pressed:
            return
        oldest_ms = self._clock.now_ms() - STALL_MS
        for holder, holding in list(self._holdings.items()):
            if holding.since_ms <= oldest_ms and self.over_share(holding.bytes):
                self._evict(holder, f"it has made no progress for {STALL_MS} ms")
        if self.pressed:
            self._checking = True
            self._clock.call_later(STALL_CHECK_MS, self._check_stalled)

    def _evict(self, holder: Holder, reason: str) -> None:
        holding = self._holdings[holder]
        used_bytes, self._evicting = self.used_bytes, True
        try:
            self._release(holder, holding)
            self.evicted += 1
            self._log(holder, holding.bytes, used_bytes, reason)
            holder.evict()
        finally:
            self._evicting = False

    def _log(self, holder: Holder, held_bytes: int, used_bytes: int, reason: str) -> None:
        now_ms = self._clock.now_ms()
        if now_ms < self._next_line_ms:
            self._left_out += 1
            return
        self._next_line_ms = now_ms + LINE_INTERVAL_MS
        left_out, self._left_out = self._left_out, 0
        logger.warning(
            "closing the connection from %s, which holds %d bytes of %s: %s. %d bytes are used, "
            "%s allows %d. %d earlier closings were not logged.",
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
    """The budgets of one node, which all its ports share."""

    def __init__(self, clock: Clock, limits: MemoryLimits | None = None) -> None:
        self.limits = limits = limits or MemoryLimits()
        self.requests = Budget("requests", "queued.max.request.bytes", limits.request_bytes, clock)
        self.responses = Budget(
            "responses", "quorate.queued.max.response.bytes", limits.response_bytes, clock
        )
        self.nodes = Budget("node links", "MAX_NODES_BYTES", MAX_NODES_BYTES, clock)

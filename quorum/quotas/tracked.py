"""A bounded map of clients, which drops the ones that were unused for the longest time."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_TRACKED = 5_000
"""Maximum number of entries of one map. Kafka has no bound."""
IDLE_MS = 3_600_000
"""Time after which an unused entry is dropped when another one is added, as Kafka's sensors are."""


class Tracked(Generic[K, V]):
    """The entries by key, the longest unused first. The event loop owns it.

    `dropped` counts the entries that made room for others before they were idle."""

    __slots__ = ("_entries", "dropped")

    def __init__(self) -> None:
        """Create an empty map."""
        self._entries: dict[K, tuple[V, int]] = {}  # (value, time of the last use)
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._entries)

    def use(self, key: K, now_ms: int) -> V | None:
        """Return the value, and note that it was used now. Return None if there is none."""
        found = self._entries.pop(key, None)
        if found is None:
            return None
        self._entries[key] = found[0], now_ms
        return found[0]

    def add(self, key: K, value: V, now_ms: int) -> V:
        """Add an entry and return its value. This drops entries that are idle, and the longest
        unused one if there are too many."""
        self._entries[key] = value, now_ms
        for _ in range(2):
            oldest = next(iter(self._entries))
            idle = now_ms - self._entries[oldest][1] >= IDLE_MS
            if not idle and len(self._entries) <= MAX_TRACKED:
                break
            self.dropped += not idle
            del self._entries[oldest]
        return value

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield the keys and values, the longest unused first."""
        for key, (value, _) in self._entries.items():
            yield key, value

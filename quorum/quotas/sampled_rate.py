"""Kafka's rate over sample windows, and the time for which a client that exceeds it is throttled.

Amounts are collected in samples of one window each. A sample that had no event for the time of all
windows is forgotten. The rate is the sum of the samples, divided by the time since the oldest
sample began. If fewer than `count - 1` full windows have passed, the missing ones are added to that
time. A burst after an idle time therefore counts as if it were spread over all windows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_THROTTLE_MS = 2**31 - 1
"""The largest time that a response can hold."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The number and the length of the sample windows of a quota."""

    count: int = 11
    size_ms: int = 1000

    @classmethod
    def of(cls, node: Mapping[str, Any], prefix: str = "") -> Windows:
        """Read `quota.window.num` and `quota.window.size.seconds` from a node's typed settings.
        `prefix` precedes both names."""
        seconds: int = node[f"{prefix}quota.window.size.seconds"]
        return cls(node[f"{prefix}quota.window.num"], seconds * 1000)


class _Sample:
    """The amounts of one window. `count` is the number of amounts."""

    __slots__ = ("amount", "begun_ms", "count", "last_ms")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.begun_ms = self.last_ms = now_ms
        self.amount = 0.0
        self.count = 0


class SampledRate:
    """The amounts that one client used in the last windows."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        """Create an empty history."""
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Add an amount. A negative one takes back an amount that was recorded before."""
        windows, samples = self._windows, self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.begun_ms >= windows.size_ms:
            # One more sample than windows, because the oldest one is still partly in the window.
            self._current = (self._current + 1) % (windows.count + 1)
            if self._current >= len(samples):
                samples.append(_Sample(now_ms))
            else:
                samples[self._current].reset(now_ms)
            sample = samples[self._current]
        sample.amount += amount
        sample.count += 1
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> tuple[float, int]:
        """Return the rate per second, and the time in ms over which it is measured."""
        windows = self._windows
        if not self._samples:
            return 0.0, max(1, (windows.count - 1) * windows.size_ms)
        self._forget(now_ms)
        elapsed_ms = now_ms - min(each.begun_ms for each in self._samples)
        missing = windows.count - 1 - elapsed_ms // windows.size_ms
        if missing > 0:
            elapsed_ms += missing * windows.size_ms
        elapsed_ms = max(1, elapsed_ms)
        return sum(each.amount for each in self._samples) * 1000 / elapsed_ms, elapsed_ms

    def average(self, now_ms: int) -> float:
        """Return the average of the amounts in the windows, or 0 without amounts."""
        self._forget(now_ms)
        count = sum(each.count for each in self._samples)
        return sum(each.amount for each in self._samples) / count if count else 0.0

    def _forget(self, now_ms: int) -> None:
        expired_ms = self._windows.count * self._windows.size_ms
        for each in self._samples:
            if now_ms - each.last_ms >= expired_ms:
                each.reset(now_ms)


def throttle_ms(rate: float, bound: float, window_ms: int) -> int:
    """Return the time after which `rate`, measured over `window_ms`, falls to `bound`, if the
    client uses nothing in this time. Return 0 if the rate does not exceed the bound."""
    if rate <= bound:
        return 0
    return math.floor(min(MAX_THROTTLE_MS, (rate - bound) / bound * window_ms + 0.5))

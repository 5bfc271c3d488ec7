"""Kafka's token bucket (KIP-599): tokens that refill at a rate, up to a burst.

The burst is the rate multiplied by the time of all sample windows. A bucket starts full. The number
of tokens may become negative, and then the client must wait until it is 0 again.
"""

from __future__ import annotations

import math

from quorate.quorum.quotas.sampled_rate import MAX_THROTTLE_MS, Windows


class TokenBucket:
    """The tokens of one client."""

    __slots__ = ("_refilled_ms", "_tokens", "_windows")

    def __init__(self, windows: Windows, rate: float, now_ms: int) -> None:
        """Create a full bucket. `rate` is the number of tokens per second."""
        self._windows = windows
        self._tokens = self._burst(rate)
        self._refilled_ms = now_ms

    def tokens(self, rate: float, now_ms: int) -> float:
        """Refill the bucket at `rate`, and return the number of tokens in it."""
        elapsed_ms, self._refilled_ms = now_ms - self._refilled_ms, now_ms
        self._tokens = min(self._burst(rate), self._tokens + rate * elapsed_ms / 1000)
        return self._tokens

    def take(self, count: float, rate: float, now_ms: int) -> float:
        """Refill the bucket, take `count` tokens, and return the number of tokens that are left. It
        may be negative."""
        self._tokens = min(self._burst(rate), self.tokens(rate, now_ms) - count)
        return self._tokens

    def _burst(self, rate: float) -> float:
        return self._windows.count * self._windows.size_ms / 1000 * rate


def debt_ms(tokens: float, rate: float) -> int:
    """Return the time in ms until a bucket with `tokens` tokens has no debt. It is 0 for a bucket
    without a debt."""
    return 0 if tokens >= 0 else math.floor(min(MAX_THROTTLE_MS, -tokens / rate * 1000 + 0.5))

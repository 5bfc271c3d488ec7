"""Histories of amounts for Kafka's rates (`tests/kafka/QuotaRates.java`), and ours over them."""

from __future__ import annotations

from random import Random

from quorate.quorum.quotas.sampled_rate import SampledRate, Windows
from quorate.quorum.quotas.token_bucket import TokenBucket

Measured = tuple[float, float, float]
"""The rate, the time in ms over which it is measured, and the tokens that are left."""


def history(random: Random) -> list[str]:
    """Return the lines of one history: bursts, steady use, and pauses of all lengths."""
    count, size_s = random.choice(((11, 1), (2, 1), (1, 1), (3, 2), (11, 5)))
    lines = [f"windows {count} {size_s} {random.choice((0.5, 10, 1000))}"]
    now_ms = 1_700_000_000_000
    for _ in range(random.randrange(1, 60)):
        now_ms += random.choice(
            (0, 1, 7, 300, 999, 1000, 1001, 2500, size_s * 1000, count * size_s * 1000, 60_000)
        )
        lines.append(f"at {now_ms} {random.choice((0, 1, 2.5, 500, 10_000, -1))}")
    return lines


def ours(lines: list[str]) -> list[Measured]:
    """Return what Quorate measures after each line of the histories that records an amount."""
    found: list[Measured] = []
    rate, tokens, bound = SampledRate(Windows()), None, 0.0
    windows = Windows()
    for line in lines:
        kind, *numbers = line.split()
        if kind == "windows":
            windows = Windows(int(numbers[0]), int(numbers[1]) * 1000)
            rate, tokens, bound = SampledRate(windows), None, float(numbers[2])
            continue
        now_ms, amount = int(numbers[0]), float(numbers[1])
        if tokens is None:
            tokens = TokenBucket(windows, bound, now_ms)
        rate.record(amount, now_ms)
        tokens.take(amount, bound, now_ms)
        found.append((*rate.measure(now_ms), tokens.tokens(bound, now_ms)))
    return found

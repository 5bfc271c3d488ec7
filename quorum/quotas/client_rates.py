"""The rates of all clients of a node under one quota, such as `producer_byte_rate`.

Clients are found by user and client id. A change of the quotas takes effect at the next request:
the history of a bucket stays, and is compared with the new bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.quorum.quotas.matching import (
    ANONYMOUS,
    Bucket,
    Match,
    Quotas,
    has_key,
    matching,
)
from quorate.quorum.quotas.sampled_rate import SampledRate, Windows, throttle_ms
from quorate.quorum.quotas.tracked import Tracked

UNMATCHED = Match(0.0, ("", ""))
"""Notes that a client has no quota, so that its next request is not matched again."""


class ClientBucket:
    """The use of the clients that share one bucket, and the bound that applies to it now.

    `throttles` holds the throttle times of the last windows, or None before the first one."""

    __slots__ = ("bound", "rate", "throttles")

    def __init__(self, bound: float, rate: SampledRate) -> None:
        """Create a bucket with an empty history."""
        self.bound = bound
        self.rate = rate
        self.throttles: SampledRate | None = None


class ClientRates:
    """The buckets of one quota. The event loop owns it.

    `enabled` is True while at least one entity has the quota. `throttled` and `throttled_ms` count
    the throttled requests and the sum of their times."""

    def __init__(self, key: str, windows: Windows, max_throttle_ms: int | None = None) -> None:
        """Measure `key` in `windows`. `max_throttle_ms` bounds the throttle times, or None."""
        self.key = key
        self.enabled = False
        self.windows = windows
        self.throttled = self.throttled_ms = 0
        self._max_throttle_ms = max_throttle_ms
        self._quotas: Quotas = {}
        self._matches: Tracked[tuple[str, str], Match] = Tracked()  # by user and client id
        self._buckets: Tracked[Bucket, ClientBucket] = Tracked()

    def configure(self, quotas: Quotas) -> None:
        """Match all clients again, because the quotas changed. The histories stay."""
        self.enabled = has_key(quotas, frozenset({self.key}))
        self._quotas = quotas
        self._matches.clear()

    def bound(self, client_id: str, now_ms: int, user: str = ANONYMOUS) -> float | None:
        """Return the bound of a client, or None if it has no quota."""
        bucket = self._bucket(user, client_id, now_ms)
        return None if bucket is None else bucket.bound

    def record(self, client_id: str, amount: float, now_ms: int, user: str = ANONYMOUS) -> int:
        """Add the amount that a client used. Return the time in ms for which it must be throttled,
        or 0."""
        bucket = self._bucket(user, client_id, now_ms)
        if bucket is None:
            return 0
        bucket.rate.record(amount, now_ms)
        rate, window_ms = bucket.rate.measure(now_ms)
        delay_ms = throttle_ms(rate, bucket.bound, window_ms)
        return delay_ms if self._max_throttle_ms is None else min(delay_ms, self._max_throttle_ms)

    def is_unused(self, client_id: str, now_ms: int, user: str = ANONYMOUS) -> bool:
        """Return True if a client has a quota and has used nothing in its windows."""
        bucket = self._bucket(user, client_id, now_ms)
        return bucket is not None and bucket.rate.measure(now_ms)[0] <= 0

    def add(self, client_id: str, amount: float, now_ms: int, user: str = ANONYMOUS) -> None:
        """Add an amount after the response left. A negative one takes back what `record` added."""
        bucket = self._bucket(user, client_id, now_ms)
        if bucket is not None:
            bucket.rate.record(amount, now_ms)

    def note_throttled(
        self, client_id: str, delay_ms: int, now_ms: int, user: str = ANONYMOUS
    ) -> None:
        """Count, for the metrics, that a client is throttled for `delay_ms` under this quota."""
        self.throttled += 1
        self.throttled_ms += delay_ms
        bucket = self._bucket(user, client_id, now_ms)
        if bucket is not None:
            if bucket.throttles is None:
                bucket.throttles = SampledRate(self.windows)
            bucket.throttles.record(delay_ms, now_ms)

    def buckets(self) -> Iterator[tuple[Bucket, ClientBucket]]:
        """Yield the tracked buckets."""
        return self._buckets.items()

    @property
    def tracked(self) -> int:
        """Return the number of tracked buckets."""
        return len(self._buckets)

    @property
    def dropped(self) -> int:
        """Return the number of buckets that were dropped before they were idle."""
        return self._buckets.dropped

    def _bucket(self, user: str, client_id: str, now_ms: int) -> ClientBucket | None:
        if not self.enabled:
            return None
        client = (user, client_id)
        match = self._matches.use(client, now_ms)
        if match is None:
            match = matching(self._quotas, self.key, user, client_id) or UNMATCHED
            self._matches.add(client, match, now_ms)
        if match is UNMATCHED:
            return None
        bucket = self._buckets.use(match.bucket, now_ms)
        if bucket is None:
            bucket = ClientBucket(match.bound, SampledRate(self.windows))
            self._buckets.add(match.bucket, bucket, now_ms)
        bucket.bound = match.bound
        return bucket

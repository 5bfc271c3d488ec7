"""The quota `controller_mutation_rate`: partitions per second that a client creates and deletes
(KIP-599).

A strict quota refuses a change while the client's bucket has a debt. A change that it accepts may
make a debt. A permissive one, for clients that do not know the error, accepts every change. Both
throttle the client until the debt is paid.
"""

from __future__ import annotations

from quorate.quorum.quotas.matching import Bucket, Quotas, matching
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.quotas.token_bucket import TokenBucket, debt_ms
from quorate.quorum.quotas.tracked import Tracked

CONTROLLER_MUTATION_RATE = "controller_mutation_rate"


class MutationQuota:
    """The quota of one request. `throttle_ms` is the time for which to throttle its client."""

    def __init__(self) -> None:
        """Create a quota without a bound."""
        self.throttle_ms = 0

    def accepts(self, partitions: int) -> bool:
        """Charge the client for a change of `partitions` partitions. Return False if the change
        must be refused; the client is then not charged."""
        return True


class BoundedQuota(MutationQuota):
    """The quota of a request whose client has one."""

    def __init__(self, tokens: TokenBucket, rate: float, now_ms: int, *, strict: bool) -> None:
        """Charge `tokens`, which refill at `rate` per second."""
        super().__init__()
        self._tokens = tokens
        self._rate = rate
        self._now_ms = now_ms
        self._strict = strict

    def accepts(self, partitions: int) -> bool:
        """Return False if the quota is strict and the bucket has a debt."""
        left = self._tokens.tokens(self._rate, self._now_ms)
        accepted = not self._strict or left >= 0
        if accepted:
            left = self._tokens.take(partitions, self._rate, self._now_ms)
        if not accepted or not self._strict:
            self.throttle_ms = debt_ms(left, self._rate)
        return accepted


class MutationQuotas:
    """The token buckets of all clients, on the active controller. The event loop owns it.

    `throttled` and `throttled_ms` count the throttled requests and the sum of their times."""

    def __init__(self, windows: Windows) -> None:
        """Create quotas without any client."""
        self.throttled = self.throttled_ms = 0
        self._windows = windows
        self._buckets: Tracked[Bucket, TokenBucket] = Tracked()

    def of_request(
        self, quotas: Quotas, client_id: str, now_ms: int, *, strict: bool, user: str
    ) -> MutationQuota:
        """Return the quota of a request that arrives now."""
        match = matching(quotas, CONTROLLER_MUTATION_RATE, user, client_id)
        if match is None:
            return MutationQuota()
        tokens = self._buckets.use(match.bucket, now_ms)
        if tokens is None:
            tokens = TokenBucket(self._windows, match.bound, now_ms)
            self._buckets.add(match.bucket, tokens, now_ms)
        return BoundedQuota(tokens, match.bound, now_ms, strict=strict)

    def note(self, quota: MutationQuota) -> None:
        """Count the throttle time of a request that was decided."""
        if quota.throttle_ms:
            self.throttled += 1
            self.throttled_ms += quota.throttle_ms

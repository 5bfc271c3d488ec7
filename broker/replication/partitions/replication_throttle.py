"""The throttle of the replication of some partitions, on the leader's and the follower's side
(KIP-73).

A side is throttled for a partition if the topic config (leader|follower).replication.throttled.
replicas lists the partition and this broker, and the rate of all listed partitions exceeds
(leader|follower).replication.throttled.rate of this broker.

| side     | holds back                                     | counts                           |
|----------|------------------------------------------------|----------------------------------|
| leader   | the records of a partition in the answer to a  | all records of listed partitions |
|          | follower outside of the ISR (`replica_session`)| that followers read              |
| follower | a partition in its request, if this replica is | all records of listed partitions |
|          | outside of the ISR (`replica_fetcher`)         | that this broker fetched         |

Invariant: replicas in the ISR are never held back, because a throttle would then delay acks=all and
shrink the ISR. Their records count, and so may use up the rate of the others.

The rate is compared before a response or request is built, and its records count afterwards. Some
records therefore pass even if the rate is below the size of one batch.
"""

from __future__ import annotations

from collections.abc import Container

from quorate.broker.replication.partitions.simple_rate import SimpleRate
from quorate.config.key import MAX_LONG
from quorate.quorum.seams import Clock

UNLIMITED = MAX_LONG
"""The default rate, in bytes per second. Nothing is held back then."""
NO_PARTITIONS: Container[int] = frozenset[int]()
ALL_PARTITIONS: Container[int] = range(1 << 31)


def throttled_partitions(value: tuple[str, ...], broker_id: int) -> Container[int]:
    """Return the partitions of a topic whose replica on this broker is listed.

    `value` is that of a config of throttled replicas: pairs `partition:broker`, or `*` for all."""
    if not value:
        return NO_PARTITIONS
    if value == ("*",):
        return ALL_PARTITIONS
    pairs = (each.split(":") for each in value)
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)


class ReplicationThrottle:
    """One side of one broker (Kafka's ReplicationQuotaManager). The event loop owns it."""

    def __init__(self, clock: Clock, windows: int, window_ms: int) -> None:
        """Begin with an unlimited rate. The arguments are replication.quota.window.num and
        replication.quota.window.size.seconds in ms."""
        self._clock = clock
        self._rate = SimpleRate(windows, window_ms)
        self.limit = UNLIMITED
        """The highest rate, in bytes per second."""

    def record(self, size_bytes: int) -> None:
        """Count records of a listed partition."""
        self._rate.record(size_bytes, self._clock.now_ms())

    @property
    def byte_rate(self) -> float:
        """Return the present rate of the listed partitions, in bytes per second."""
        return self._rate.per_second(self._clock.now_ms())

    @property
    def exceeded(self) -> bool:
        """Return True if the present rate is above the limit."""
        return self.limit < UNLIMITED and self.byte_rate > self.limit

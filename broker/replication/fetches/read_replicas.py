"""The choice of the replica that a consumer should read from, on the leader's broker (KIP-392).

`broker/partition/replica_selectors.py` has the rules of the choice. This module gives them the
racks of the latest image and counts the readers that were sent away.

A consumer keeps to the named follower for `metadata.max.age.ms`, by default 5 minutes, and then
asks the leader again. The follower therefore counts as read for READER_MS. In this time the leader
sends each new high watermark of the partition to it immediately (`replica_session.py`).
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from quorate.broker.partition.replica_selectors import SELECTORS, readable_followers
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.seams import Clock

LEADER = -1
"""The preferred read replica of a response if the consumer should read from the leader."""
READER_MS = 600_000
"""The time for which a follower counts as read by a consumer that was sent to it. It is twice the
default metadata.max.age.ms of consumers."""
COUNTED_MS = 300_000
"""The period over which readers are counted: the present one and the one before count."""


class Reader(NamedTuple):
    """A consumer that accepts another replica, which Fetch does since version 11.

    `rack` is its client.rack, or "". `listener` is the listener on which it fetches."""

    rack: str
    listener: str


class ReadReplicas:
    """The choices of one broker as a leader. The event loop owns it.

    Invariant: at most two numbers are kept for each registered broker."""

    def __init__(
        self, clock: Clock, registry: PartitionRegistry, broker_id: int, selector: str | None
    ) -> None:
        """Choose by the selector of that name (`SELECTORS`). With None, always choose the
        leader."""
        self._clock = clock
        self._registry = registry
        self._broker_id = broker_id
        self._select = None if selector is None else SELECTORS[selector]
        self.enabled = selector is not None
        """True if there is a selector."""
        self._readers: Counter[int] = Counter()
        self._readers_before: Counter[int] = Counter()
        self._period_began_ms = clock.now_ms()

    def preferred(self, hosted: HostedPartition, offset: int, reader: Reader) -> int:
        """Return the broker from which `reader` should read `offset`, or LEADER.

        The result is LEADER if this broker does not lead the partition. A fenced broker, and one
        without the reader's listener, is never chosen (KAFKA-15390)."""
        leadership = hosted.partition.leadership
        if self._select is None or leadership is None or not leadership.replicas:
            return LEADER
        brokers = self._registry.image.brokers

        def rack_of(broker_id: int) -> tuple[bool, str | None]:
            broker = brokers.get(broker_id)
            if broker is None or broker.fenced or broker.endpoint(reader.listener) is None:
                return False, None
            return True, broker.rack

        followers = readable_followers(leadership, offset, rack_of)
        if not followers:
            return LEADER
        now_ms = self._clock.now_ms()
        self._begin_period(now_ms)
        leader_rack = rack_of(self._broker_id)[1]
        chosen = self._select(
            followers, leader_rack, reader.rack, self._readers + self._readers_before
        )
        if chosen is None:
            return LEADER
        self._readers[chosen] += 1
        hosted.sent_reader(chosen, now_ms + READER_MS)
        return chosen

    def _begin_period(self, now_ms: int) -> None:
        """Begin the next period if the present one is over, and discard older counts."""
        elapsed_ms = now_ms - self._period_began_ms
        if elapsed_ms < COUNTED_MS:
            return
        self._readers_before = self._readers if elapsed_ms < 2 * COUNTED_MS else Counter()
        self._readers = Counter()
        self._period_began_ms = now_ms

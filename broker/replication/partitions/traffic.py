"""Counters of the traffic of each topic, for the metrics.

This broker counts a topic while it hosts one of the topic's partitions. When it hosts none any
more, the topic is a former topic. The next scrape of the metrics removes its counters and adds them
to one sum for all former topics. The totals of the broker therefore never fall.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields

from quorate.quorum.histogram import Histogram
from quorate.quorum.protocol.errors import ErrorCode

TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
"""The errors of batches that are too large for the topic."""


@dataclass(slots=True)
class TopicTraffic:
    """The counters of one topic since this broker began to host it. They never fall.

    `messages_in` and `bytes_in` count the records and bytes that this broker appends as a leader.
    `bytes_out` counts the bytes that consumers read. Replication has its own counters.
    `reassignment_bytes_in` is the part of `replication_bytes_in` that a new replica of a
    reassignment fetched. `keyless_records` counts the records without a key for which a compacted
    topic refused their batch. `rejected_bytes` counts the bytes of batches that are too large, and
    `damaged_batches` those of producers that fail their CRC.

    `produce_requests` and `fetch_requests` count each partition of a request once, also if it
    failed. `failed_produce_requests` counts failed appends, but no failure of the wait for other
    replicas. These are not counted at all:

    - A Produce with invalid acks, and any Produce while too many batches wait for flushes.
    - A batch that waits for producer states, if its request times out meanwhile."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    produce_requests: int = 0
    fetch_requests: int = 0
    failed_produce_requests: int = 0
    failed_fetch_requests: int = 0
    replication_bytes_in: int = 0
    replication_bytes_out: int = 0
    reassignment_bytes_in: int = 0
    keyless_records: int = 0
    rejected_bytes: int = 0
    damaged_batches: int = 0

    def refused(self, error: ErrorCode, batch_bytes: int) -> None:
        """Count a batch that was refused with `error`."""
        if error in TOO_LARGE:
            self.rejected_bytes += batch_bytes
        elif error is ErrorCode.CORRUPT_MESSAGE:
            self.damaged_batches += 1

    def add(self, other: TopicTraffic) -> None:
        """Add the counters of `other` to these."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


TIMED_APPENDS = 16
MIN_PRUNED = 1024
"""The smallest number of topics at which `Traffic.of` looks for former topics."""


class Traffic:
    """The counters of one broker's topics. The event loop owns it.

    `elsewhere` counts the requests for partitions that are not hosted here. It also has the sum of
    the former topics."""

    def __init__(self, hosted: Callable[[], Collection[str]] = tuple) -> None:
        """Begin with no counters. `hosted` returns the topics that have partitions on this
        broker. The default returns none, which suits only a test."""
        self.elsewhere = TopicTraffic()
        """The requests for partitions that are not hosted here, and the sum of former topics."""
        self.append_times = Histogram()
        """One of TIMED_APPENDS appends to each topic by this broker as the leader. To time each of
        them would cost a percent of a small Produce."""
        self._topics: dict[str, TopicTraffic] = {}
        self._hosted = hosted
        self._pruned_at = MIN_PRUNED

    def of(self, topic: str) -> TopicTraffic:
        """Return the counters of `topic`, of which this broker now hosts a partition. Create them
        if the topic has none.

        If `topic` is new and there are at least MIN_PRUNED topics, remove the counters of former
        topics first, as `by_topic` does. The reason is that nothing else removes them if the
        metrics are never scraped. The search is repeated only when the number of topics has
        doubled."""
        found = self._topics.get(topic)
        if found is None:
            if len(self._topics) >= self._pruned_at:
                self.by_topic({topic, *self._hosted()})
                self._pruned_at = max(MIN_PRUNED, 2 * len(self._topics))
            found = self._topics[topic] = TopicTraffic()
        return found

    def by_topic(self, hosted: Collection[str]) -> dict[str, TopicTraffic]:
        """Return the counters by topic, after those of topics outside `hosted` are removed and
        added to `elsewhere`.

        The result is the live dict, which the caller must not change."""
        for topic in [each for each in self._topics if each not in hosted]:
            self.elsewhere.add(self._topics.pop(topic))
        return self._topics

    def total(self) -> TopicTraffic:
        """Return a new sum over all topics and `elsewhere`."""
        sum_ = TopicTraffic()
        for each in (self.elsewhere, *self._topics.values()):
            sum_.add(each)
        return sum_

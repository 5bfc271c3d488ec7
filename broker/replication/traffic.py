"""Counters of the traffic of each topic, for the metrics.

The counters of a topic exist while one of its partitions is hosted here, and then until the next
scrape. The counters of former topics are kept as one sum, so that the totals of the broker never
fall.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields


@dataclass(slots=True)
class TopicTraffic:
    """The counters of one topic since this broker began to host it. Sizes are in bytes.

    `produce_requests` and `fetch_requests` count each partition of a request once, also the failed
    ones and the reads of followers. `messages_in` counts records."""

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

    def add(self, other: TopicTraffic) -> None:
        """Add the counters of `other`."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


MIN_PRUNED = 1024
"""The number of topics above which the counters of former topics are added up and removed."""


class Traffic:
    """The counters of one broker's topics. The event loop owns it.

    `elsewhere` counts the requests for partitions that are not hosted here, and the traffic of
    former topics."""

    def __init__(self, hosted: Callable[[], Collection[str]] = tuple) -> None:
        """Begin with no counters. `hosted` returns the topics that have partitions on this
        broker."""
        self.elsewhere = TopicTraffic()
        """Requests for partitions that are not here, and topics that have gone."""
        self._topics: dict[str, TopicTraffic] = {}
        self._hosted = hosted
        self._pruned_at = MIN_PRUNED

    def of(self, topic: str) -> TopicTraffic:
        """Return the counters of a topic that is hosted here from now on.

        If there are many topics, the counters of former ones are added up first: without scrapes
        nothing else removes them."""
        found = self._topics.get(topic)
        if found is None:
            if len(self._topics) >= self._pruned_at:
                self.by_topic({topic, *self._hosted()})
                self._pruned_at = max(MIN_PRUNED, 2 * len(self._topics))
            found = self._topics[topic] = TopicTraffic()
        return found

    def by_topic(self, hosted: Collection[str]) -> dict[str, TopicTraffic]:
        """Return the counters of those of the `hosted` topics that have any. The counters of all
        other topics are removed and added to `elsewhere`."""
        for topic in [each for each in self._topics if each not in hosted]:
            self.elsewhere.add(self._topics.pop(topic))
        return self._topics

    def total(self) -> TopicTraffic:
        """Return the sum over all topics and `elsewhere`."""
        sum_ = TopicTraffic()
        for each in (self.elsewhere, *self._topics.values()):
            sum_.add(each)
        return sum_

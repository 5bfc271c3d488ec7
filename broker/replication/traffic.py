"""What went in and out per topic, as plain counters; read when somebody asks for metrics.

The counters of a topic live as long as one of its partitions is hosted here; those of topics that
have gone are kept as one sum, so that the totals of the broker never go back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields


@dataclass(slots=True)
class TopicTraffic:
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
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


MIN_PRUNED = 1024
"""Topics with counters below which those that are not hosted any more are not looked for."""


class Traffic:
    def __init__(self, hosted: Callable[[], Collection[str]] = tuple) -> None:
        """`hosted` returns the topics that have partitions on this broker."""
        self.elsewhere = TopicTraffic()
        """Requests for partitions that are not here, and topics that have gone."""
        self._topics: dict[str, TopicTraffic] = {}
        self._hosted = hosted
        self._pruned_at = MIN_PRUNED

    def of(self, topic: str) -> TopicTraffic:
        """Return the counters of a topic, from now on hosted here.

        Without scrapes, topics that come and go would leave their counters behind, so those of
        topics that have gone are added up when there are many."""
        found = self._topics.get(topic)
        if found is None:
            if len(self._topics) >= self._pruned_at:
                self.by_topic({topic, *self._hosted()})
                self._pruned_at = max(MIN_PRUNED, 2 * len(self._topics))
            found = self._topics[topic] = TopicTraffic()
        return found

    def by_topic(self, hosted: Collection[str]) -> dict[str, TopicTraffic]:
        """Of the topics that are `hosted`; the others' is added to what has gone."""
        for topic in [each for each in self._topics if each not in hosted]:
            self.elsewhere.add(self._topics.pop(topic))
        return self._topics

    def total(self) -> TopicTraffic:
        sum_ = TopicTraffic()
        for each in (self.elsewhere, *self._topics.values()):
            sum_.add(each)
        return sum_

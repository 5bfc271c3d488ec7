"""What went in and out per topic, as plain counters; read when somebody asks for metrics.

The counters of a topic live as long as one of its partitions is hosted here; those of topics that
have gone are kept as one sum, so that the totals of the broker never go back.
"""

from __future__ import annotations

from collections.abc import Collection
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


class Traffic:
    def __init__(self) -> None:
        self.elsewhere = TopicTraffic()
        """Requests for partitions that are not here, and topics that have gone."""
        self._topics: dict[str, TopicTraffic] = {}

    def of(self, topic: str) -> TopicTraffic:
        return self._topics.setdefault(topic, TopicTraffic())

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

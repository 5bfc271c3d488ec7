"""The leaders of one topic's partitions, refreshed when a broker reports that it does not lead."""

from __future__ import annotations

import time
from collections.abc import Sequence

from quorate.cli.client.admin import RETRY_DELAY_S, Admin, check
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.errors import ErrorCode


class Partitions:
    """The partitions of one topic with their leaders, as of the last `refresh`.

    `topic_id` is the id of the topic. With `create` a missing topic is created, if the cluster
    allows that. Methods that get a partition raise KeyError if the topic does not have it."""

    def __init__(self, admin: Admin, topic: str, *, create: bool = False) -> None:
        """Look the topic up. Raise as `refresh` does."""
        self.topic = topic
        self.topic_id: Uuid = ZERO_UUID
        self._admin = admin
        self._create = create
        self._leaders: dict[int, int] = {}
        self.refresh()

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of the partitions in ascending order."""
        return sorted(self._leaders)

    def leader(self, partition: int) -> int:
        """Return the id of the partition's leader, or -1 if it has none."""
        return self._leaders[partition]

    def by_leader(self, partitions: Sequence[int]) -> dict[int, list[int]]:
        """Return the partitions of each leader, without the partitions that have no leader."""
        found: dict[int, list[int]] = {}
        for partition in partitions:
            if self._leaders[partition] >= 0:
                found.setdefault(self._leaders[partition], []).append(partition)
        return found

    def refresh(self) -> None:
        """Read the leaders from the cluster.

        Raise Refused on an error of the topic, such as a missing one, and NotReachable if no node
        answers. With `create` the call first waits for a new topic, at most for the timeout of the
        Admin."""
        deadline = time.monotonic() + self._admin.timeout_ms / 1000
        while True:
            (topic,) = self._admin.metadata([self.topic], create=self._create).topics
            if not ErrorCode.of(topic.error_code).retriable or not self._create:
                check(topic.error_code, None, f"topic {self.topic}")
                break
            if time.monotonic() > deadline:
                check(topic.error_code, None, f"topic {self.topic}")
            time.sleep(RETRY_DELAY_S)
        self.topic_id = topic.topic_id
        self._leaders = {each.partition_index: each.leader_id for each in topic.partitions}

"""The partitions hosted on this broker, by id and by name, and the image that says which exist."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.broker.replication.hosted_partition import HostedPartition, Key
from quorate.broker.replication.traffic import Traffic
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode


class PartitionRegistry:
    def __init__(self) -> None:
        self.image = MetadataImage()
        """Acted upon, but for partitions that are still being opened in the background."""
        self.traffic = Traffic(lambda: {topic for topic, _ in self._by_name})
        self._incomplete: dict[HostedPartition, None] = {}
        self._by_key: dict[Key, HostedPartition] = {}
        self._by_name: dict[tuple[str, int], HostedPartition] = {}

    def __iter__(self) -> Iterator[HostedPartition]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, hosted: HostedPartition) -> None:
        assert hosted.key not in self._by_key, f"{hosted!r} is hosted"
        hosted.traffic = self.traffic.of(hosted.topic)
        hosted.incomplete = self._incomplete
        self._by_key[hosted.key] = hosted
        self._by_name[hosted.topic, hosted.key[1]] = hosted

    def remove(self, hosted: HostedPartition) -> None:
        del self._by_key[hosted.key]
        # A topic of the same name may have been created meanwhile.
        if self._by_name.get((hosted.topic, hosted.key[1])) is hosted:
            del self._by_name[hosted.topic, hosted.key[1]]

    def take_incomplete(self) -> list[HostedPartition]:
        """Whose ISR may have to grow, or whose proposal to be made again; settling them notes
        those that still are."""
        found = list(self._incomplete)
        self._incomplete.clear()
        return [each for each in found if not each.gone]

    def get(self, key: Key) -> HostedPartition | None:
        return self._by_key.get(key)

    def find(self, topic: str, topic_id: Uuid, partition_id: int) -> HostedPartition | None:
        """As requests name partitions: by topic id, or by name when that is zero."""
        if topic_id != ZERO_UUID:
            return self._by_key.get((topic_id, partition_id))
        return self._by_name.get((topic, partition_id))

    def why_missing(self, topic: str, topic_id: Uuid, partition_id: int) -> ErrorCode:
        """What `find` found nothing for: clients look for the leader again, or give up. A name
        beside the id is what the topic was called when a fetch session began with it."""
        image = self.image
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic_id != ZERO_UUID:
            found = image.topics.get(topic_id)
            if not topic:
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
            elif image.topic(topic) is not None:
                unknown = ErrorCode.INCONSISTENT_TOPIC_ID
        else:
            found = image.topic(topic)
        if found is None:
            return unknown
        if partition_id not in found.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

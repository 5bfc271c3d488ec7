"""The open partitions of this broker, by id and by name, and the image that says which partitions
exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.traffic import Traffic
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode


class PartitionRegistry:
    """The open partitions of one broker. The event loop owns it.

    `image` is the latest applied image. Its partitions may still be opening in the background.
    Invariant: a partition is in both indexes or in none, except for a name that a newer topic has
    taken."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        """The latest image that `MetadataApplier` has begun to apply."""
        self.traffic = Traffic(lambda: {topic for topic, _ in self._by_name})
        self._incomplete: dict[HostedPartition, None] = {}
        self._by_key: dict[Key, HostedPartition] = {}
        self._by_name: dict[tuple[str, int], HostedPartition] = {}
        self.offline: dict[Key, Uuid | None] = {}
        """The partitions of the image whose log directory on this broker is offline, each with the
        directory for its second log if the broker has reported one (`replica_placement.py`)."""
        self.survives: Callable[[BaseException], bool] = lambda error: False
        """Takes a log directory offline and returns True, or returns False if the node must stop
        because of the error (`ReplicaManager.survives`)."""

    def __iter__(self) -> Iterator[HostedPartition]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, hosted: HostedPartition) -> None:
        """Add an open partition, and give it the counters of its topic."""
        assert hosted.key not in self._by_key, f"{hosted!r} is hosted"
        hosted.traffic = self.traffic.of(hosted.topic)
        hosted.incomplete = self._incomplete
        self._by_key[hosted.key] = hosted
        self._by_name[hosted.topic, hosted.key[1]] = hosted

    def remove(self, hosted: HostedPartition) -> None:
        """Remove a partition."""
        del self._by_key[hosted.key]
        # A newer topic may have taken the name.
        if self._by_name.get((hosted.topic, hosted.key[1])) is hosted:
            del self._by_name[hosted.topic, hosted.key[1]]

    def take_offline(self, hosted: HostedPartition) -> None:
        """Remove a partition whose log directory has failed. Requests that wait for it fail with
        KAFKA_STORAGE_ERROR."""
        self.remove(hosted)
        self.offline[hosted.key] = None
        hosted.offline = hosted.gone = True
        hosted.changed()

    def take_incomplete(self) -> list[HostedPartition]:
        """Return the partitions whose ISR may have to grow, or whose proposal must be sent again,
        and clear the set. `settle` adds those that are still incomplete."""
        found = list(self._incomplete)
        self._incomplete.clear()
        return [each for each in found if not each.gone]

    def get(self, key: Key) -> HostedPartition | None:
        """Return the partition with this key, or None."""
        return self._by_key.get(key)

    def find(self, topic: str, topic_id: Uuid, partition_id: int) -> HostedPartition | None:
        """Return the partition that a request names, by topic id, or by name if the id is zero, or
        None."""
        if topic_id != ZERO_UUID:
            return self._by_key.get((topic_id, partition_id))
        return self._by_name.get((topic, partition_id))

    def why_missing(self, topic: str, topic_id: Uuid, partition_id: int) -> ErrorCode:
        """Return the error for a partition that `find` did not find.

        A partition of the image gives NOT_LEADER_OR_FOLLOWER, because another broker has it or it
        is not open here yet, or KAFKA_STORAGE_ERROR if its directory is offline. A number that the
        topic does not have gives UNKNOWN_TOPIC_OR_PARTITION. So does an unknown topic, unless the
        request has only its id: UNKNOWN_TOPIC_ID. If there are a name and an id, the name is the
        one that the topic had when the fetch session began. If another topic has this name now, the
        error is INCONSISTENT_TOPIC_ID."""
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
        if (found.id, partition_id) in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

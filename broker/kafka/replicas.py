"""What the client port's handlers use of the replica manager, and where they find topics and
leaders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from quorate.broker.replication.appends import Append, AppendResult
from quorate.broker.replication.fetches import Fetch
from quorate.broker.replication.hosted import Hosted, Key
from quorate.broker.replication.reading import FetchedPartition
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.hot import NodeEndpoint

# Errors after which a client does better with the new leader in the answer (KIP-951).
MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class Replicas(Protocol):
    def append(
        self,
        appends: Sequence[Append],
        acks: int,
        timeout_ms: int,
        done: Callable[[Sequence[AppendResult]], None],
    ) -> None: ...

    def fetch(self, fetch: Fetch, done: Callable[[Sequence[FetchedPartition]], None]) -> None: ...

    def hosted(self, key: Key) -> Hosted | None: ...


@dataclass(frozen=True, slots=True)
class TopicDirectory:
    """Topics by name or id, and the leaders that clients of `listener` are told."""

    image: Callable[[], MetadataImage]
    listener: str

    def topic_id(self, name: str, topic_id: Uuid) -> Uuid | None:
        image = self.image()
        if topic_id != ZERO_UUID:
            return topic_id if topic_id in image.topics else None
        return image.topic_ids.get(name)

    def missing(self, topic_id: Uuid) -> ErrorCode:
        """What a topic that is not here is answered with."""
        by_id = topic_id != ZERO_UUID
        return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def leader(self, key: Key) -> tuple[int, int] | None:
        partition = self.image().partition(*key)
        return None if partition is None else (partition.leader, partition.leader_epoch)

    def endpoints(self, leaders: Iterable[tuple[int, int] | None]) -> list[NodeEndpoint]:
        brokers = self.image().brokers
        found = []
        for leader_id in sorted({leader[0] for leader in leaders if leader is not None}):
            broker = brokers.get(leader_id)
            endpoint = broker.endpoint(self.listener) if broker is not None else None
            if broker is not None and endpoint is not None:
                found.append(NodeEndpoint(leader_id, endpoint.host, endpoint.port, broker.rack))
        return found

"""What the client port's handlers use of the replica manager, and where they find topics and
leaders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from quorate.broker.replication.consumer_fetches import Client
from quorate.broker.replication.delete_records import Deleted, ToDelete
from quorate.broker.replication.hosted_partition import HostedPartition
from quorate.broker.replication.replica_sessions import Respond
from quorate.broker.replication.traffic import Traffic
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import (
    FetchRequest,
    NodeEndpoint,
    ProducePartition,
    ProducePartitionResult,
)


class PartitionRegistry(Protocol):
    traffic: Traffic

    def __iter__(self) -> Iterator[HostedPartition]: ...

    def find(self, topic: str, topic_id: Uuid, partition_id: int) -> HostedPartition | None: ...

    def why_missing(self, topic: str, topic_id: Uuid, partition_id: int) -> ErrorCode: ...


class Replicas(Protocol):
    @property
    def registry(self) -> PartitionRegistry: ...

    def append(
        self,
        appends: Sequence[ProducePartition],
        acks: int,
        timeout_ms: int,
        done: Callable[[Sequence[ProducePartitionResult]], None],
    ) -> None: ...

    def delete_records(
        self,
        wanted: Sequence[ToDelete],
        timeout_ms: int,
        done: Callable[[Sequence[Deleted]], None],
    ) -> None: ...

    def load_producers(self, hosted: HostedPartition) -> None:
        """Load the producer states of a partition; `HostedPartition.await_producers` reports the
        end."""

    def fetch_as_consumer(
        self,
        request: FetchRequest,
        max_bytes: int,
        respond: Respond,
        *,
        uses_topic_ids: bool,
        client: Client | None = None,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class TopicDirectory:
    """Where the leaders are that clients of `listener` are told of (KIP-951)."""

    image: Callable[[], MetadataImage]
    listener: str

    def endpoints(self, leaders: Iterable[tuple[int, int]]) -> list[NodeEndpoint]:
        brokers = self.image().brokers
        found = []
        for leader_id in sorted({leader[0] for leader in leaders}):
            broker = brokers.get(leader_id)
            endpoint = broker.endpoint(self.listener) if broker is not None else None
            if broker is not None and endpoint is not None:
                found.append(NodeEndpoint(leader_id, endpoint.host, endpoint.port, broker.rack))
        return found

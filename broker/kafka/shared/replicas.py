"""The handlers' interface to the replica manager, and the addresses of leaders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from quorate.broker.partition.key_check import CheckedKeys
from quorate.broker.replication.appends.delete_records import DeletionRequest, DeletionResult
from quorate.broker.replication.fetches.consumer_fetches import Client, MayRead
from quorate.broker.replication.fetches.read_replicas import Reader
from quorate.broker.replication.fetches.replica_session import Respond
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.traffic import Traffic
from quorate.quorum.ids import Uuid
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.log import Log
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import (
    FetchPartitionResult,
    FetchRequest,
    NodeEndpoint,
    ProducePartition,
    ProducePartitionResult,
)


class PartitionRegistry(Protocol):
    """The replicas on this broker."""

    traffic: Traffic
    survives: Callable[[BaseException], bool]
    """Takes a log directory offline and returns True, or returns False if the node must stop."""

    def __iter__(self) -> Iterator[HostedPartition]:
        """Iterate over all open replicas."""
        ...

    def find(self, topic: str, topic_id: Uuid, partition_id: int) -> HostedPartition | None:
        """Return the open replica of the partition, or None.

        The topic id names the topic. If it is zero, `topic` does.
        """
        ...

    def why_missing(self, topic: str, topic_id: Uuid, partition_id: int) -> ErrorCode:
        """Return the error for a partition that `find` does not find.

        It is NOT_LEADER_OR_FOLLOWER if the partition exists but this broker has no open replica of
        it. Otherwise it says that the topic or the partition is unknown.
        """
        ...


class LogDirectories(Protocol):
    """The log directories of this broker."""

    log_dirs: tuple[str, ...]
    """The paths of all directories, in the order of log.dirs."""

    @property
    def online(self) -> tuple[str, ...]:
        """Return the paths of those that have not failed."""
        ...

    def home_of(self, name: PartitionName) -> str | None:
        """Return the path of the directory of an open log, or None."""
        ...


class Moves(Protocol):
    """The moves of replicas between the log directories of this broker."""

    def alter(self, name: PartitionName, path: str) -> ErrorCode:
        """Move a replica to the log directory `path`. Return the error, or NONE if the move has
        begun or has nothing to do."""
        ...

    def future_log(self, key: Key) -> tuple[str, Log] | None:
        """Return the log directory to which a replica is being moved, and the open future log
        there, or None."""
        ...


class Replicas(Protocol):
    """The replica manager of this broker. All methods run on the broker's event loop."""

    @property
    def registry(self) -> PartitionRegistry:
        """Return the registry of the open replicas."""
        ...

    @property
    def moves(self) -> Moves:
        """Return the moves between log directories."""
        ...

    @property
    def logs(self) -> LogDirectories:
        """Return the log directories."""
        ...

    def append(
        self,
        appends: Sequence[ProducePartition],
        acks: int,
        timeout_ms: int,
        done: Callable[[Sequence[ProducePartitionResult]], None],
        *,
        keys: CheckedKeys | None = None,
    ) -> None:
        """Append batches to partitions that this broker leads.

        Call `done` once with the results in the order of `appends`, when `acks` is satisfied or
        after `timeout_ms`. Each partition has its own error. The call may come before this method
        returns. `keys` is the result of a check of the keys of the only batch, if there was one.
        """
        ...

    def delete_records(
        self,
        wanted: Sequence[DeletionRequest],
        timeout_ms: int,
        done: Callable[[Sequence[DeletionResult]], None],
    ) -> None:
        """Delete the records below the given offsets, and call `done` once with the results, in the
        order of `wanted`.

        `done` is called when the in-sync replicas have deleted them, or after `timeout_ms`. The
        call may come before this method returns.
        """
        ...

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
        reader: Reader | None = None,
        may_read: MayRead | None = None,
    ) -> None:
        """Read up to the high watermark, or for a verification tool (replica id -2) up to the log
        end. Without a `reader`, followers are not read. `may_read` is None on a broker without an
        authorizer.

        Call `respond` once, when `min_bytes` are there or the request's time is over.
        """
        ...

    def withdraw_fetch(
        self, session_id: int, results: Sequence[FetchPartitionResult], *, ends: bool
    ) -> None:
        """Take back results that `fetch_as_consumer` reported, because they are not sent.

        The session sends them again, or it ends if `ends`. Ignore an unknown session."""
        ...


@dataclass(frozen=True, slots=True)
class TopicDirectory:
    """The addresses of leaders on one listener, for Produce and Fetch responses (KIP-951)."""

    image: Callable[[], MetadataImage]
    listener: str

    def endpoints(self, leaders: Iterable[tuple[int, int]]) -> list[NodeEndpoint]:
        """Return the addresses of these leaders, given as (broker id, leader epoch).

        Each broker is listed once, in the order of the ids. A broker that is not registered or
        lacks the listener is omitted.
        """
        brokers = self.image().brokers
        found = []
        for leader_id in sorted({leader[0] for leader in leaders}):
            broker = brokers.get(leader_id)
            endpoint = broker.endpoint(self.listener) if broker is not None else None
            if broker is not None and endpoint is not None:
                found.append(NodeEndpoint(leader_id, endpoint.host, endpoint.port, broker.rack))
        return found

"""One fetcher per broker that is followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quorate.broker.replication.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partition_fetch_state import FetcherContext
from quorate.broker.replication.replica_fetcher import ReplicaFetcher
from quorate.broker.replication.settings import ReplicationSettings
from quorate.quorum.ids import NO_NODE
from quorate.quorum.seams import Address, Seams


class ReplicaFetcherManager:
    def __init__(
        self,
        seams: Seams,
        settings: ReplicationSettings,
        context: FetcherContext,
        address_of: Callable[[int], Address | None],
    ) -> None:
        self._seams = seams
        self._settings = settings
        self._context = context
        self._address_of = address_of
        self._fetchers: dict[int, ReplicaFetcher] = {}  # by leader
        self._leaders: dict[Key, int] = {}
        self._unreachable: dict[Key, HostedPartition] = {}  # leaders without a known address

    def follow(self, hosted: HostedPartition) -> None:
        """A new leader epoch began: fetch from its leader, if it has one, from the log end on."""
        leader_id = hosted.partition.leader_id
        if self._leaders.get(hosted.key, leader_id) != leader_id:
            self.unfollow(hosted.key)
        self._unreachable.pop(hosted.key, None)
        if leader_id == NO_NODE:
            return
        self._leaders[hosted.key] = leader_id
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            address = self._address_of(leader_id)
            if address is None:
                del self._leaders[hosted.key]
                self._unreachable[hosted.key] = hosted
                return
            fetcher = self._fetchers[leader_id] = ReplicaFetcher(
                self._seams, self._settings, self._context, leader_id, address
            )
        fetcher.follow(hosted)

    def unfollow(self, key: Key) -> None:
        self._unreachable.pop(key, None)
        leader_id = self._leaders.pop(key, None)
        if leader_id is None:
            return
        fetcher = self._fetchers[leader_id]
        fetcher.unfollow(key)

    def lags(self) -> Iterator[tuple[HostedPartition, int]]:
        """Every partition that is followed, and how many records it is behind."""
        for fetcher in self._fetchers.values():
            yield from fetcher.lags()

    def metadata_applied(self) -> None:
        """Idle fetchers go; a broker at another address gets a new one; backoffs end."""
        for leader_id, fetcher in list(self._fetchers.items()):
            address = self._address_of(leader_id)
            if not len(fetcher) or (address is not None and address != fetcher.address):
                self._replace(leader_id, fetcher)
            else:
                fetcher.end_backoffs()
        for hosted in list(self._unreachable.values()):
            self.follow(hosted)

    def _replace(self, leader_id: int, fetcher: ReplicaFetcher) -> None:
        fetcher.close()
        del self._fetchers[leader_id]
        for hosted in fetcher.followed():
            self.follow(hosted)

    def close(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._leaders.clear()

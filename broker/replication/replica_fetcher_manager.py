"""The replica fetchers of a broker: one for each broker that leads a followed partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quorate.broker.replication.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partition_fetch_state import FetcherContext
from quorate.broker.replication.replica_fetcher import ReplicaFetcher
from quorate.broker.replication.settings import ReplicationSettings
from quorate.quorum.ids import NO_NODE
from quorate.quorum.seams import Address, Seams


class ReplicaFetcherManager:
    """The replica fetchers by leader. The event loop owns it.

    Invariant: a followed partition with a leader is at exactly one fetcher, or waits for its
    leader's address."""

    def __init__(
        self,
        seams: Seams,
        settings: ReplicationSettings,
        context: FetcherContext,
        address_of: Callable[[int], Address | None],
    ) -> None:
        """Begin without fetchers. `address_of` returns the node port of a broker in the latest
        image, or None."""
        self._seams = seams
        self._settings = settings
        self._context = context
        self._address_of = address_of
        self._fetchers: dict[int, ReplicaFetcher] = {}  # by leader
        self._leaders: dict[Key, int] = {}
        self._unreachable: dict[Key, HostedPartition] = {}  # leaders without a known address

    def follow(self, hosted: HostedPartition) -> None:
        """Fetch a partition from its present leader. Call it when a new leader epoch begins.

        Without a leader, only end the fetches from the earlier one. If the leader's address is
        unknown, wait until `metadata_applied` finds it."""
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
        """Stop fetching a partition. Ignore one that is not followed."""
        self._unreachable.pop(key, None)
        leader_id = self._leaders.pop(key, None)
        if leader_id is None:
            return
        fetcher = self._fetchers[leader_id]
        fetcher.unfollow(key)

    def lags(self) -> Iterator[tuple[HostedPartition, int]]:
        """Yield each followed partition with its lag in records."""
        for fetcher in self._fetchers.values():
            yield from fetcher.lags()

    def metadata_applied(self) -> None:
        """Close idle fetchers, replace the fetcher of a broker with a new address, end all
        backoffs, and follow the partitions whose leader has an address now."""
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
        """Close all fetchers."""
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._leaders.clear()

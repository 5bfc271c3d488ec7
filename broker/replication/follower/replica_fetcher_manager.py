"""The replica fetchers of a broker: some for each broker that leads a followed partition.

num.replica.fetchers is their number for each source broker. `fetcher_numbers.py` says which
partitions each one fetches. A partition that a fetcher waits for therefore delays only the
partitions with the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from quorate.broker.replication.follower.partition_fetch_state import FetcherContext
from quorate.broker.replication.follower.replica_fetcher import ReplicaFetcher
from quorate.broker.replication.partitions.fetcher_numbers import fetcher_of
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.settings import ReplicationSettings
from quorate.quorum.ids import NO_NODE
from quorate.quorum.seams import Address, Seams

MOVED_PER_SLICE = 500
"""The number of partitions that one loop iteration gives to other fetchers."""

Place = tuple[int, int]
"""(broker id of the leader, number of the fetcher)."""


class ReplicaFetcherManager:
    """The replica fetchers by leader and number. The event loop owns it.

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
        self._count = settings.num_replica_fetchers
        self._fetchers: dict[Place, ReplicaFetcher] = {}
        self._places: dict[Key, Place] = {}
        self._unreachable: dict[Key, HostedPartition] = {}  # leaders without a known address
        self._closed = False

    def __len__(self) -> int:
        """Return the number of fetchers."""
        return len(self._fetchers)

    def follow(self, hosted: HostedPartition) -> None:
        """Fetch a partition from its present leader. Call it when a new leader epoch begins.

        Without a leader, only end the fetches from the earlier one. If the leader's address is
        unknown, wait until `metadata_applied` finds it."""
        place = self._place_of(hosted)
        if self._places.get(hosted.key, place) != place:
            self.unfollow(hosted.key)
        self._unreachable.pop(hosted.key, None)
        leader_id, number = place
        if leader_id == NO_NODE:
            return
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            address = self._address_of(leader_id)
            if address is None:
                self._places.pop(hosted.key, None)
                self._unreachable[hosted.key] = hosted
                return
            fetcher = self._fetchers[place] = ReplicaFetcher(
                self._seams, self._settings, self._context, leader_id, number, address
            )
        self._places[hosted.key] = place
        fetcher.follow(hosted)

    def _place_of(self, hosted: HostedPartition) -> Place:
        return hosted.partition.leader_id, fetcher_of(hosted.topic, hosted.key[1], self._count)

    def unfollow(self, key: Key) -> None:
        """Stop fetching a partition. Ignore one that is not followed."""
        self._unreachable.pop(key, None)
        place = self._places.pop(key, None)
        if place is not None:
            self._fetchers[place].unfollow(key)

    def start_moved(self, hosted: HostedPartition) -> None:
        """Tell the followers of a log, or its leader, that retention has moved the log start. A
        leader must not send a consumer to a follower that has deleted the records (KIP-392)."""
        hosted.start_moved()
        place = self._places.get(hosted.key)
        if place is not None:
            self._fetchers[place].report(hosted.key)

    def resize(self, fetchers: int) -> None:
        """Use this number of fetchers for each source broker. The partitions whose fetcher changes
        move in slices of the event loop, and each begins again at its log end."""
        if fetchers != self._count:
            self._count = fetchers
            self._move_some(iter(list(self._places)))

    def _move_some(self, remaining: Iterator[Key]) -> None:
        if self._closed:
            return
        some = list(islice(remaining, MOVED_PER_SLICE))
        for key in some:
            place = self._places.get(key)
            hosted = None if place is None else self._fetchers[place].hosted(key)
            if hosted is not None and self._place_of(hosted) != place:
                self.follow(hosted)
        if len(some) == MOVED_PER_SLICE:
            self._seams.clock.call_soon(lambda: self._move_some(remaining))
        else:
            self._close_idle()

    def lags(self) -> Iterator[tuple[HostedPartition, int]]:
        """Yield each followed partition with its lag in records."""
        for fetcher in self._fetchers.values():
            yield from fetcher.lags()

    def metadata_applied(self) -> None:
        """Close idle fetchers, replace the fetchers of a broker with a new address, end all
        backoffs, and follow the partitions whose leader has an address now."""
        for place, fetcher in list(self._fetchers.items()):
            address = self._address_of(place[0])
            if not len(fetcher) or (address is not None and address != fetcher.address):
                self._replace(place, fetcher)
            else:
                fetcher.end_backoffs()
        for hosted in list(self._unreachable.values()):
            self.follow(hosted)

    def _close_idle(self) -> None:
        for place, fetcher in list(self._fetchers.items()):
            if not len(fetcher):
                self._replace(place, fetcher)

    def _replace(self, place: Place, fetcher: ReplicaFetcher) -> None:
        fetcher.close()
        del self._fetchers[place]
        for hosted in fetcher.followed():
            self._places.pop(hosted.key, None)  # the fetcher there is closed
            self.follow(hosted)

    def close(self) -> None:
        """Close all fetchers."""
        self._closed = True
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._places.clear()

"""Fetch of consumers and verification tools, without a session. Followers: see `sessions.py`.

Answered at once when there is enough, an error, a diverging epoch or no time to wait; else parked
until the high watermark (for those who read to the end: the log end) moves, the partition changes,
or `max_wait_ms` is over. Beyond the bound of parked fetches a request is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorate.broker.replication.delayed import Deadlines, Wakeups
from quorate.broker.replication.hosted import Hosted
from quorate.broker.replication.reading import read
from quorate.broker.replication.registry import Registry
from quorate.quorum.rpc.kafka.hot.fetch_request import CONSUMER, FetchPartition
from quorate.quorum.rpc.kafka.hot.fetch_response import FetchedPartition

Done = Callable[[Sequence[FetchedPartition]], None]
Abandon = Callable[[], None]
NO_BOUND = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """`replica_id`: CONSUMER or DEBUGGING_CONSUMER."""

    partitions: Sequence[FetchPartition]
    replica_id: int = CONSUMER
    max_wait_ms: int
    min_bytes: int
    max_bytes: int


class Fetches:
    def __init__(
        self,
        deadlines: Deadlines,
        wakeups: Wakeups,
        registry: Registry,
        max_parked: int,
        room: Callable[[], int] = lambda: NO_BOUND,
    ) -> None:
        """`room` returns the bytes that one more response may have (`quorum/rpc/budget.py`)."""
        self.parked = 0
        self.deadlines = deadlines
        self.wakeups = wakeups
        self.registry = registry
        self._max_parked = max_parked
        self._room = room

    def fetch(self, fetch: Fetch, done: Done) -> Abandon | None:
        """Call `done` exactly once, perhaps before this returns.

        Return None if `done` has been called. Otherwise return the function that discards the fetch
        instead, for a client that has gone: a fetch may wait for weeks."""
        results, missing_bytes = self.read(fetch)
        if not missing_bytes or fetch.max_wait_ms <= 0 or self.parked >= self._max_parked:
            done(results)
            return None
        return ParkedFetch(self, fetch, missing_bytes, done).abandon

    def read(self, fetch: Fetch) -> tuple[list[FetchedPartition], int]:
        """The results, and how many bytes are missing before they should be answered."""
        results = []
        left_bytes = min(fetch.max_bytes, self._room())
        read_bytes = 0
        enough = not fetch.partitions
        to_log_end = fetch.replica_id != CONSUMER
        for wanted in fetch.partitions:
            limit = min(wanted.max_bytes, left_bytes if read_bytes else max(1, left_bytes))
            result = read(self.registry, wanted, limit, to_log_end=to_log_end)
            size = len(result.records)
            # Only the first partition with data may exceed the limit of the whole response.
            if read_bytes and size > left_bytes:
                result = result._replace(records=b"")
                enough = True
            else:
                read_bytes += size
                left_bytes -= size
            enough = enough or bool(result.error) or result.diverging is not None
            results.append(result)
        return results, 0 if enough else max(0, fetch.min_bytes - read_bytes)


class ParkedFetch:
    """One fetch that waits; a Watcher of all its partitions."""

    __slots__ = ("_done", "_fetch", "_fetches", "_missing_bytes", "_tick", "_watched")

    def __init__(self, fetches: Fetches, fetch: Fetch, missing_bytes: int, done: Done) -> None:
        self._fetches = fetches
        self._fetch = fetch
        self._missing_bytes = missing_bytes
        self._done: Done | None = done
        self._watched: list[Hosted] = []
        for wanted in fetch.partitions:
            hosted = fetches.registry.find(wanted.topic, wanted.topic_id, wanted.partition)
            if hosted is not None:
                hosted.watchers[self] = None
                self._watched.append(hosted)
        self._tick = fetches.deadlines.add(self, fetch.max_wait_ms)
        fetches.parked += 1

    def appended(self, hosted: Hosted, size_bytes: int) -> None:
        if self._fetch.replica_id != CONSUMER:
            self._arrived(size_bytes)

    def moved(self, hosted: Hosted, size_bytes: int) -> None:
        if self._fetch.replica_id == CONSUMER:
            self._arrived(size_bytes)

    def _arrived(self, size_bytes: int) -> None:
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self._fetches.wakeups.wake(self._try)

    def changed(self, hosted: Hosted) -> None:
        self._fetches.wakeups.wake(self._try)

    def expire(self) -> None:
        self._answer(self._fetches.read(self._fetch)[0])

    def abandon(self) -> None:
        if self._done is not None:
            self._done = None
            self._fetches.deadlines.remove(self, self._tick)
            self._leave()

    def _try(self) -> None:
        if self._done is None:
            return
        results, self._missing_bytes = self._fetches.read(self._fetch)
        if not self._missing_bytes:
            self._fetches.deadlines.remove(self, self._tick)
            self._answer(results)

    def _answer(self, results: Sequence[FetchedPartition]) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        self._leave()
        done(results)

    def _leave(self) -> None:
        for hosted in self._watched:
            hosted.watchers.pop(self, None)
        self._fetches.parked -= 1

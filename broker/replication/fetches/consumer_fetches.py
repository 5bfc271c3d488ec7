"""Fetch of consumers and of verification tools, without a session. `replica_sessions.py` serves
followers.

A fetch is answered immediately if it has enough bytes, an error, a diverging epoch, no partition,
no time to wait, or a partition that the consumer should read from another replica
(`read_replicas.py`). Such a partition is not read here (KAFKA-13767). It is also answered if a
partition has more records than fit into the answer, because a wait would add none.

Otherwise the fetch is delayed until enough bytes are committed, a partition changes its role, epoch
or existence, or `max_wait_ms` is over. For a fetch of a tool, bytes count when they are appended.

The number of delayed fetches is bounded. Beyond the bound, the oldest one is answered with what
there is, so that a client with many fetches cannot make others poll.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from quorate.broker.replication.appends.delayed_operations import (
    CoalescedCallbacks,
    DelayedOperations,
)
from quorate.broker.replication.fetches.read_replicas import LEADER, Reader, ReadReplicas
from quorate.broker.replication.fetches.reading import fetched, has_more, is_refused, read
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.fetch_request import CONSUMER, FetchPartition
from quorate.quorum.protocol.hot.fetch_response import FetchPartitionResult
from quorate.quorum.protocol.hot.primitives import chunks

Done = Callable[[Sequence[FetchPartitionResult]], None]
ReadSome = Callable[..., tuple[int, int, bool]]
MayRead = Callable[[FetchPartition], bool]
"""Returns True if the client may read the partition now."""
SLICED_ABOVE = 256
"""The number of partitions above which a fetch is read in steps."""
NO_BOUND = 1 << 62
"""The `room` for a response if nothing bounds it."""


class Client(Protocol):
    """The request of a client (`RequestContext`)."""

    on_abandoned: Callable[[], None] | None

    def run(self, steps: IncrementalWork[None]) -> None:
        """Run `steps` in slices of the event loop."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """One Fetch without a session. `replica_id` is CONSUMER or DEBUGGING_CONSUMER.

    `max_bytes` bounds the records of all partitions together, but the first batch is returned even
    if it is larger. If there is a `client`, it runs long work in slices, and the delayed fetch is
    discarded when its connection closes. Only a consumer with a `reader` may read from followers,
    and be sent to them. `may_read` is None on a broker without an authorizer."""

    partitions: Sequence[FetchPartition]
    replica_id: int = CONSUMER
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    client: Client | None = None
    reader: Reader | None = None
    may_read: MayRead | None = None

    @property
    def from_follower(self) -> bool:
        """Return True if a follower may serve the fetch: a verification tool compares replicas."""
        return self.reader is not None or self.replica_id != CONSUMER


class ConsumerFetches:
    """The fetches of one broker's consumers and tools. The event loop owns it.

    `delayed` holds the delayed fetches, the oldest first."""

    def __init__(
        self,
        delayed_operations: DelayedOperations,
        callbacks: CoalescedCallbacks,
        registry: PartitionRegistry,
        max_parked: int,
        room: Callable[[], int] = lambda: NO_BOUND,
        read_replicas: ReadReplicas | None = None,
    ) -> None:
        """Serve the partitions of `registry`. `max_parked` is the maximum number of delayed
        fetches. `read_replicas` sends consumers to followers. `room` returns the bytes that one
        more response may have (`quorum/rpc/budget.py`)."""
        self.delayed: dict[DelayedFetch, None] = {}  # the oldest is first
        self.delayed_operations = delayed_operations
        self.callbacks = callbacks
        self.registry = registry
        self._max_delayed = max_parked
        self._room = room
        enabled = read_replicas is not None and read_replicas.enabled
        self._read_replicas = read_replicas if enabled else None

    def fetch(self, fetch: Fetch, done: Done) -> None:
        """Answer a fetch: call `done` once, perhaps before this returns, or never if the client's
        connection closes or this broker stops. The results are in the order of the fetch's
        partitions."""
        if fetch.client is not None and len(fetch.partitions) > SLICED_ABOVE:
            fetch.client.run(self._fetch_steps(fetch, done))
        else:
            self._answer_or_delay(done, fetch, *self.read(fetch))

    def _fetch_steps(self, fetch: Fetch, done: Done) -> IncrementalWork[None]:
        results, missing_bytes = yield from self.read_steps(fetch)
        self._answer_or_delay(done, fetch, results, missing_bytes)

    def _answer_or_delay(
        self, done: Done, fetch: Fetch, results: list[FetchPartitionResult], missing_bytes: int
    ) -> None:
        if not missing_bytes or fetch.max_wait_ms <= 0:
            done(results)
            return
        delayed = DelayedFetch(self, fetch, missing_bytes, done)
        if fetch.client is not None:
            fetch.client.on_abandoned = delayed.abandon
        if len(self.delayed) > self._max_delayed:
            oldest = next(iter(self.delayed))
            del self.delayed[oldest]
            oldest.expire()
        if fetch.client is None or len(fetch.partitions) <= SLICED_ABOVE:
            delayed.watch(fetch.partitions)
        else:
            fetch.client.run(delayed.watch_steps())

    def read(self, fetch: Fetch) -> tuple[list[FetchPartitionResult], int]:
        """Return the results of a fetch, and the number of bytes that are missing to answer it
        before `max_wait_ms`; 0 if it can be answered now."""
        results: list[FetchPartitionResult] = []
        so_far = (min(fetch.max_bytes, self._room()), 0, not fetch.partitions)
        so_far = self._read_of(fetch)(fetch, fetch.partitions, results, *so_far)
        return results, missing_bytes(fetch, *so_far)

    def read_steps(self, fetch: Fetch) -> IncrementalWork[tuple[list[FetchPartitionResult], int]]:
        """Return the same as `read`, in steps."""
        results: list[FetchPartitionResult] = []
        so_far = (min(fetch.max_bytes, self._room()), 0, not fetch.partitions)
        for some in chunks(fetch.partitions):
            so_far = self._read_of(fetch)(fetch, some, results, *so_far)
            yield
        return results, missing_bytes(fetch, *so_far)

    def _read_some(
        self,
        fetch: Fetch,
        partitions: Sequence[FetchPartition],
        results: list[FetchPartitionResult],
        left_bytes: int,
        read_bytes: int,
        enough: bool,
    ) -> tuple[int, int, bool]:
        """Read some partitions of a fetch into `results`. Return the new values of the last three
        arguments."""
        to_log_end, from_follower = fetch.replica_id != CONSUMER, fetch.from_follower
        sends_away = self._read_replicas is not None and fetch.reader is not None and not to_log_end
        for wanted in partitions:
            if sends_away and (result := self._sent_away(wanted, fetch)) is not None:
                results.append(result)
                enough = True
                continue
            limit = min(wanted.max_bytes, left_bytes)
            if not read_bytes:  # also with a limit of 0, because the client must make progress
                limit = max(1, limit)
            result = read(self.registry, wanted, limit, from_follower, to_log_end=to_log_end)
            size = len(result.records)
            # Only the first partition with data may exceed the limit of the whole response.
            if read_bytes and size > left_bytes:
                result = result._replace(records=b"")
                enough = True
            else:
                read_bytes += size
                left_bytes -= size
            enough = enough or bool(result.error) or result.diverging is not None
            if not enough and read_bytes < fetch.min_bytes:
                enough = has_more(self.registry, wanted, result)
            results.append(result)
        return left_bytes, read_bytes, enough

    def _read_of(self, fetch: Fetch) -> ReadSome:
        return self._read_some if fetch.may_read is None else self._read_permitted

    def _read_permitted(
        self,
        fetch: Fetch,
        partitions: Sequence[FetchPartition],
        results: list[FetchPartitionResult],
        *so_far: Any,
    ) -> tuple[int, int, bool]:
        """Read the partitions that the client may read, as `_read_some` does. The result of any
        other has an error, and the fetch does not wait."""
        assert fetch.may_read is not None
        left_bytes, read_bytes, enough = so_far
        for wanted in partitions:
            if fetch.may_read(wanted):
                left_bytes, read_bytes, enough = self._read_some(
                    fetch, (wanted,), results, left_bytes, read_bytes, enough
                )
                continue
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            results.append(
                FetchPartitionResult(wanted.topic, wanted.topic_id, wanted.partition, error)
            )
            enough = True
        return left_bytes, read_bytes, enough

    def _sent_away(self, wanted: FetchPartition, fetch: Fetch) -> FetchPartitionResult | None:
        """Return the result that names the follower to read from, or None if the consumer should
        read the partition here."""
        hosted = self.registry.find(wanted.topic, wanted.topic_id, wanted.partition)
        if hosted is None or hosted.partition.leader_error(wanted.current_leader_epoch):
            return None
        assert self._read_replicas is not None
        assert fetch.reader is not None
        chosen = self._read_replicas.preferred(hosted, wanted.fetch_offset, fetch.reader)
        if chosen == LEADER:
            return None
        return fetched(wanted, hosted)._replace(preferred_read_replica=chosen)


def missing_bytes(fetch: Fetch, left_bytes: int, read_bytes: int, enough: bool) -> int:
    """Return the bytes that are missing to answer the fetch; 0 if it has `enough`, such as an
    error. `left_bytes` does not matter."""
    return 0 if enough else max(0, fetch.min_bytes - read_bytes)


class DelayedFetch:
    """One delayed fetch, which watches all its partitions.

    From its creation to its answer, it is in `ConsumerFetches.delayed` and in the delayed
    operations. From `watch` on, or the end of `watch_steps`, it is among the watchers of its
    partitions. If there are too many delayed fetches, the oldest is answered early. Invariant:
    after its answer, it is in none of these."""

    __slots__ = (
        "_done",
        "_fetch",
        "_fetches",
        "_missing_bytes",
        "_reading",
        "_tick",
        "_watched",
    )

    def __init__(
        self, fetches: ConsumerFetches, fetch: Fetch, missing_bytes: int, done: Done
    ) -> None:
        self._fetches = fetches
        self._fetch = fetch
        self._missing_bytes = missing_bytes
        self._reading = False  # True while the fetch is read again in steps
        self._done: Done | None = done
        self._watched: set[HostedPartition] = set()
        self._tick = fetches.delayed_operations.add(self, fetch.max_wait_ms)
        fetches.delayed[self] = None

    def watch(self, partitions: Sequence[FetchPartition]) -> None:
        """Watch these partitions."""
        find = self._fetches.registry.find
        for wanted in partitions:
            hosted = find(wanted.topic, wanted.topic_id, wanted.partition)
            if hosted is not None:
                hosted.watchers[self] = None
                self._watched.add(hosted)

    def watch_steps(self) -> IncrementalWork[None]:
        """Watch all partitions of the fetch, in steps, until it is answered.

        If a partition changed between its read and its watch, read all of them again."""
        late = False
        for some in chunks(self._fetch.partitions):
            if self._done is None:
                return
            self.watch(some)
            late = late or any(map(self._has_news, some))
            yield
        if late:
            self._fetches.callbacks.wake(self._try)

    def _has_news(self, wanted: FetchPartition) -> bool:
        hosted = self._fetches.registry.find(wanted.topic, wanted.topic_id, wanted.partition)
        if hosted is None:
            return False
        partition = hosted.partition
        to_log_end = self._fetch.replica_id != CONSUMER
        end_offset = hosted.log.end_offset if to_log_end else partition.high_watermark
        if end_offset > wanted.fetch_offset:
            return True
        error = partition.leader_error(wanted.current_leader_epoch)
        return bool(error) and is_refused(error, from_follower=self._fetch.from_follower)

    def appended(self, hosted: HostedPartition, size_bytes: int) -> None:
        """Count the bytes that a tool may read now."""
        if self._fetch.replica_id != CONSUMER:
            self._arrived(size_bytes)

    def moved(self, hosted: HostedPartition, size_bytes: int) -> None:
        """Count the bytes that a consumer may read now."""
        if self._fetch.replica_id == CONSUMER:
            self._arrived(size_bytes)

    def _arrived(self, size_bytes: int) -> None:
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self._fetches.callbacks.wake(self._try)

    def changed(self, hosted: HostedPartition) -> None:
        """Read again soon, because the partition's role, epoch or existence has changed."""
        self._fetches.callbacks.wake(self._try)

    def read_at(self, hosted: HostedPartition, broker_id: int) -> None:
        """Do nothing: the present offsets are known here."""

    def expire(self) -> None:
        """Answer with what there is, because `max_wait_ms` is over."""
        self._read(last=True)

    def abandon(self) -> None:
        """Discard the fetch, because its client's connection closed."""
        if self._done is not None:
            self._done = None
            self._fetches.delayed_operations.remove(self, self._tick)
            self._leave()

    def _try(self) -> None:
        if self._done is not None:
            self._read(last=False)

    def _read(self, *, last: bool) -> None:
        """Read again. Answer if there are enough bytes, or in any case if this is the `last`
        time."""
        client = self._fetch.client
        if client is None or len(self._fetch.partitions) <= SLICED_ABOVE:
            self._answer_if(last, *self._fetches.read(self._fetch))
        elif last or not self._reading:
            self._reading = True
            client.run(self._read_steps(last))

    def _read_steps(self, last: bool) -> IncrementalWork[None]:
        results, missing_bytes = yield from self._fetches.read_steps(self._fetch)
        self._reading = False
        self._answer_if(last, results, missing_bytes)

    def _answer_if(
        self, last: bool, results: Sequence[FetchPartitionResult], missing_bytes: int
    ) -> None:
        self._missing_bytes = missing_bytes
        if last or not missing_bytes:
            self._fetches.delayed_operations.remove(self, self._tick)
            self._answer(results)

    def _answer(self, results: Sequence[FetchPartitionResult]) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        self._leave()
        done(results)

    def _leave(self) -> None:
        for hosted in self._watched:
            hosted.watchers.pop(self, None)
        self._fetches.delayed.pop(self, None)
        if self._fetch.client is not None:  # otherwise each delayed fetch is a reference cycle
            self._fetch.client.on_abandoned = None

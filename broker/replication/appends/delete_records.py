"""DeleteRecords: the leader moves its log start, and the answer waits until all in-sync replicas
have moved theirs (KIP-107).

A follower learns the new start from the answer to its waiting fetch, and reports its own start with
its next fetch. If the timeout is over first, the answer is REQUEST_TIMED_OUT; the leader's records
are deleted nevertheless.

A deletion only moves the log start, in memory. The next checkpoint of the log start offsets makes
it durable (log.flush.offset.checkpoint.interval.ms), and retention removes whole segments later.
After a crash of the leader, deleted records may be readable again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from quorate.broker.replication.appends.delayed_operations import DelayedOperations
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.protocol.errors import ErrorCode, KafkaError

UNKNOWN_OFFSET = -1


class DeletionRequest(NamedTuple):
    """The deletion of one partition's records. `offset` is the first to keep, or -1 for the high
    watermark."""

    topic: str
    partition_id: int
    offset: int


class DeletionResult(NamedTuple):
    """The result for one partition: the low watermark of the in-sync replicas (UNKNOWN_OFFSET with
    an error), and an error code or 0."""

    low_watermark: int
    error: int


Done = Callable[[Sequence[DeletionResult]], None]


class DeleteRecords:
    """The DeleteRecords requests of one broker. The event loop owns it."""

    def __init__(self, delayed_operations: DelayedOperations, registry: PartitionRegistry) -> None:
        self._delayed_operations = delayed_operations
        self._registry = registry

    def delete_records(
        self, wanted: Sequence[DeletionRequest], timeout_ms: int, done: Done
    ) -> None:
        """Delete records, and call `done` once, perhaps before this returns. The results are in the
        order of `wanted`.

        Errors of a partition: that of a missing replica, NOT_LEADER_OR_FOLLOWER,
        OFFSET_OUT_OF_RANGE, POLICY_VIOLATION, and REQUEST_TIMED_OUT."""
        request = DelayedDeleteRecords(self._delayed_operations, len(wanted), done)
        moved: list[HostedPartition] = []
        for index, each in enumerate(wanted):
            hosted = self._registry.find(each.topic, ZERO_UUID, each.partition_id)
            if hosted is None:
                error = self._registry.why_missing(each.topic, ZERO_UUID, each.partition_id)
                request.deleted(index, UNKNOWN_OFFSET, error)
                continue
            try:
                offset = hosted.partition.delete_records(each.offset)
            except KafkaError as refused:
                request.deleted(index, UNKNOWN_OFFSET, refused.code)
                continue
            hosted.await_low_watermark(offset, request, index)
            moved.append(hosted)
        request.tick = self._delayed_operations.add(request, timeout_ms)
        for hosted in moved:
            hosted.start_moved()
            hosted.settle()
        request.finish()


class DelayedDeleteRecords:
    """One request. It is answered when all partitions have a result and `finish` was called."""

    def __init__(self, delayed_operations: DelayedOperations, count: int, done: Done) -> None:
        self.tick = 0
        self._delayed_operations = delayed_operations
        self._results: list[DeletionResult | None] = [None] * count
        self._open = count
        self._done: Done | None = done
        self._complete = False

    def deleted(self, index: int, low_watermark: int, error: int) -> None:
        """Set the result of the partition at `index`. Ignore it if there is one. Answer the request
        if it was the last one and `finish` was called."""
        if self._results[index] is None:
            self._results[index] = DeletionResult(low_watermark, error)
            self._open -= 1
        if self._complete:
            self.finish()

    def waits(self, index: int) -> bool:
        """Return True if the partition at `index` has no result yet."""
        return self._done is not None and self._results[index] is None

    def finish(self) -> None:
        """Answer as soon as all partitions have a result."""
        self._complete = True
        if self._open == 0 and self._done is not None:
            self._delayed_operations.remove(self, self.tick)
            self._answer()

    def expire(self) -> None:
        """Answer now, because the timeout is over."""
        self._answer()

    def _answer(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            timed_out = DeletionResult(UNKNOWN_OFFSET, ErrorCode.REQUEST_TIMED_OUT)
            done([each or timed_out for each in self._results])

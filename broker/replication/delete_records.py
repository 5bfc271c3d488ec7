"""DeleteRecords: the leader's log begins later at once; answered when all in-sync replicas' do.

Followers hear of it with the answer to the fetch that waits, and say where their logs begin with
the next one. `done` is called exactly once, perhaps before `delete_records` returns. A request
whose time is over is answered REQUEST_TIMED_OUT, and the records are gone all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from quorate.broker.replication.delayed_operations import DelayedOperations
from quorate.broker.replication.hosted_partition import HostedPartition
from quorate.broker.replication.partition_registry import PartitionRegistry
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.protocol.errors import ErrorCode, KafkaError

UNKNOWN_OFFSET = -1


class ToDelete(NamedTuple):
    topic: str
    partition_id: int
    offset: int  # the first to keep; -1: the high watermark


class Deleted(NamedTuple):
    low_watermark: int
    error: int


Done = Callable[[Sequence[Deleted]], None]


class DeleteRecords:
    def __init__(self, delayed_operations: DelayedOperations, registry: PartitionRegistry) -> None:
        self._delayed_operations = delayed_operations
        self._registry = registry

    def delete_records(self, wanted: Sequence[ToDelete], timeout_ms: int, done: Done) -> None:
        """The results are in the order of `wanted`."""
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
    """One request; its answer leaves when all partitions have one, after `finish`."""

    def __init__(self, delayed_operations: DelayedOperations, count: int, done: Done) -> None:
        self.tick = 0
        self._delayed_operations = delayed_operations
        self._results: list[Deleted | None] = [None] * count
        self._open = count
        self._done: Done | None = done
        self._complete = False

    def deleted(self, index: int, low_watermark: int, error: int) -> None:
        if self._results[index] is None:
            self._results[index] = Deleted(low_watermark, error)
            self._open -= 1
        if self._complete:
            self.finish()

    def waits(self, index: int) -> bool:
        return self._done is not None and self._results[index] is None

    def finish(self) -> None:
        self._complete = True
        if self._open == 0 and self._done is not None:
            self._delayed_operations.remove(self, self.tick)
            self._answer()

    def expire(self) -> None:
        self._answer()

    def _answer(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            timed_out = Deleted(UNKNOWN_OFFSET, ErrorCode.REQUEST_TIMED_OUT)
            done([each or timed_out for each in self._results])

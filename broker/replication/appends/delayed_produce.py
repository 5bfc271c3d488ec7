"""A produce request that waits, and the results of its partitions.

A partition may wait for its producer states, for a recompression, for a flush, and for the high
watermark, in this order (`produce.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.broker.replication.appends.delayed_operations import DelayedOperations
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.produce import ProducePartition, ProducePartitionResult

Done = Callable[[Sequence[ProducePartitionResult]], None]
"""A callback that receives the final results of one call of `RecordAppender.append`."""


def detached(each: ProducePartition) -> ProducePartition:
    """Return the batch with a copy of its records. A view would keep the whole request in memory,
    which the connection counts only until it has answered."""
    return each._replace(records=memoryview(bytearray(each.records or b"")))


def failed(
    each: ProducePartition,
    error: ErrorCode,
    message: str | None = None,
    hosted: HostedPartition | None = None,
) -> ProducePartitionResult:
    """Return the result of a failed append. If `hosted` is given and the error is
    NOT_LEADER_OR_FOLLOWER, the result names the leader that this broker knows (KIP-951)."""
    leader = None
    if hosted is not None and error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = (hosted.partition.leader_id, hosted.partition.leader_epoch)
    return ProducePartitionResult(
        each.topic, each.topic_id, each.partition, error, error_message=message, leader=leader
    )


class DelayedProduce:
    """A produce request that waits for some of its partitions. `open` holds their indexes in the
    request. To answer the request means to call `done` with all results."""

    __slots__ = ("_delayed_operations", "_done", "_results", "open", "tick")

    def __init__(
        self,
        delayed_operations: DelayedOperations,
        results: list[ProducePartitionResult],
        done: Done,
    ) -> None:
        self.open: dict[int, None] = {}
        self.tick = 0
        self._delayed_operations = delayed_operations
        self._results = results
        self._done = done

    def acknowledged(self, index: int, error: int) -> None:
        """End the wait of the partition at `index`, with an error code or 0. An error replaces that
        of the partition's stored result. Answer the request if no other partition waits. Do
        nothing if the request has timed out."""
        if index not in self.open:  # the request has timed out
            return
        del self.open[index]
        if error:
            self._results[index] = self._results[index]._replace(error=error)
        if not self.open:
            self._delayed_operations.remove(self, self.tick)
            self._answer()

    def waits(self, index: int) -> bool:
        """Return True if the partition at `index` has no final result yet."""
        return index in self.open

    def set_result(self, index: int, result: ProducePartitionResult) -> None:
        """Store the result that the partition gets if its wait ends without an error. The wait
        continues. Call this only while `waits` returns True."""
        self._results[index] = result

    def finished(self, index: int, result: ProducePartitionResult) -> None:
        """Set the final result of a partition and end its wait. Answer the request if no other
        partition waits. Call this only while `waits` returns True."""
        self._results[index] = result
        self.acknowledged(index, result.error)

    def expire(self) -> None:
        """Answer the request now, because the timeout is over. Each partition that waits gets
        REQUEST_TIMED_OUT."""
        for index in self.open:
            self._results[index] = self._results[index]._replace(error=ErrorCode.REQUEST_TIMED_OUT)
        self.open.clear()
        self._answer()

    def _answer(self) -> None:
        """Answer once, and release the request: a partition may still refer to this object."""
        results, done = self._results, self._done
        self._results, self._done = [], _answered
        done(results)


def _answered(results: Sequence[ProducePartitionResult]) -> None:
    raise AssertionError("a produce request was answered twice")

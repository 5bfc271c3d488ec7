"""Produce: append to the logs of the partitions led here and answer as `acks` demands.

acks 0 and 1 are answered when the leader has appended, -1 when every member of the maximal ISR has,
by NOT_ENOUGH_REPLICAS(_AFTER_APPEND) where min.insync.replicas is not met, or by REQUEST_TIMED_OUT.
`done` is called exactly once, perhaps before `append` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.broker.partition.partition import ACKS_ALL
from quorate.broker.replication.damage import unreadable
from quorate.broker.replication.delayed_operations import DelayedOperations
from quorate.broker.replication.hosted_partition import HostedPartition
from quorate.broker.replication.partition_registry import PartitionRegistry
from quorate.quorum.log.errors import CorruptBatch, CorruptLog
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.hot.produce import ProducePartition, ProducePartitionResult
from quorate.quorum.seams import Clock

"""Their coordinators read them whole, and could not go on after a record that is not theirs."""

Done = Callable[[Sequence[ProducePartitionResult]], None]


class RecordAppender:
    def __init__(
        self,
        clock: Clock,
        delayed_operations: DelayedOperations,
        registry: PartitionRegistry,
        on_disk_failure: Callable[[OSError], None],
    ) -> None:
        self._clock = clock
        self._delayed_operations = delayed_operations
        self._registry = registry
        self._on_disk_failure = on_disk_failure

    def append(
        self,
        appends: Sequence[ProducePartition],
        acks: int,
        timeout_ms: int,
        done: Done,
        *,
        internal: bool = False,
    ) -> None:
        """The results are in the order of `appends`, one batch each; batches are patched in place
        where their buffer is writable and copied else. `internal`: the broker's own coordinators,
        which alone write to internal topics, control batches too."""
        if acks not in (-1, 0, 1):
            done([failed(each, ErrorCode.INVALID_REQUIRED_ACKS) for each in appends])
            return
        results: list[ProducePartitionResult] = []
        waits: list[tuple[int, HostedPartition, int]] = []
        for index, each in enumerate(appends):
            result = self._append(each, acks, internal, waits, index)
            if result.error:
                self._count_failure(each)
            results.append(result)
        delayed: DelayedProduce | None = None
        for index, hosted, required_offset in waits:
            error = hosted.partition.acks_all_error(required_offset)
            if error is None:
                delayed = delayed or DelayedProduce(self._delayed_operations, results, done)
                delayed.open[index] = None
                hosted.await_acks(required_offset, delayed, index)
            elif error:
                results[index] = results[index]._replace(error=error)
        if delayed is None:
            done(results)
        else:
            delayed.tick = self._delayed_operations.add(delayed, timeout_ms)

    def _append(
        self,
        each: ProducePartition,
        acks: int,
        internal: bool,
        waits: list[tuple[int, HostedPartition, int]],
        index: int,
    ) -> ProducePartitionResult:
        topic, topic_id, partition_id, records = each
        hosted = self._registry.find(topic, topic_id, partition_id)
        if hosted is None:
            return failed(each, self._registry.why_missing(topic, topic_id, partition_id))
        if hosted.topic in INTERNAL_TOPICS and not internal:
            text = f"{hosted.topic} is written by its coordinators only"
            return failed(each, ErrorCode.INVALID_TOPIC_EXCEPTION, text)
        partition = hosted.partition
        if records is None:
            records = memoryview(b"")
        data = bytearray(records) if records.readonly else records
        end_offset = hosted.log.end_offset
        try:
            appended = partition.append_as_leader(
                data,
                acks,
                now_ms=self._clock.now_ms(),
                wall_ms=self._clock.wall_ms(),
                internal=internal,
            )
        except KafkaError as error:
            return failed(each, error.code, error.message, hosted)
        except CorruptLog as damage:  # where its producers were to be read from
            return failed(each, unreadable(hosted, damage), str(damage))
        except CorruptBatch as error:
            return failed(each, ErrorCode.CORRUPT_MESSAGE, str(error))
        except OSError as error:
            self._on_disk_failure(error)
            return failed(each, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        traffic = hosted.traffic
        traffic.produce_requests += 1
        if hosted.log.end_offset != end_offset:
            traffic.messages_in += hosted.log.end_offset - end_offset
            traffic.bytes_in += len(data)
            hosted.appended(len(data))
        hosted.settle()
        if acks == ACKS_ALL:
            waits.append((index, hosted, appended.end_offset))
        return ProducePartitionResult(
            topic,
            topic_id,
            partition_id,
            0,
            appended.base_offset,
            appended.append_time_ms,
            hosted.log.start_offset,
        )

    def _count_failure(self, each: ProducePartition) -> None:
        hosted = self._registry.find(each.topic, each.topic_id, each.partition)
        traffic = self._registry.traffic.elsewhere if hosted is None else hosted.traffic
        traffic.produce_requests += 1
        traffic.failed_produce_requests += 1


def failed(
    each: ProducePartition,
    error: ErrorCode,
    message: str | None = None,
    hosted: HostedPartition | None = None,
) -> ProducePartitionResult:
    """With the newer leader where that explains the error (KIP-951)."""
    leader = None
    if hosted is not None and error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = (hosted.partition.leader_id, hosted.partition.leader_epoch)
    return ProducePartitionResult(
        each.topic, each.topic_id, each.partition, error, error_message=message, leader=leader
    )


class DelayedProduce:
    """One acks=all request whose partitions are not all replicated yet."""

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
        if index not in self.open:  # it timed out before
            return
        del self.open[index]
        if error:
            self._results[index] = self._results[index]._replace(error=error)
        if not self.open:
            self._delayed_operations.remove(self, self.tick)
            self._answer()

    def waits(self, index: int) -> bool:
        return index in self.open

    def expire(self) -> None:
        for index in self.open:
            self._results[index] = self._results[index]._replace(error=ErrorCode.REQUEST_TIMED_OUT)
        self.open.clear()
        self._answer()

    def _answer(self) -> None:
        """Answer once, and keep nothing of the request: a partition may still refer to this."""
        results, done = self._results, self._done
        self._results, self._done = [], _answered
        done(results)


def _answered(results: Sequence[ProducePartitionResult]) -> None:
    raise AssertionError("a produce request was answered twice")

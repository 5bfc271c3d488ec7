"""Produce: appends to the partitions that this broker leads, and the answers that `acks` demands.

| acks  | the result of a partition is final                                              |
|-------|---------------------------------------------------------------------------------|
| 0, 1  | when the leader has appended the batch                                          |
| -1    | when the high watermark is above the batch: each member of the maximal ISR has  |
|       | it (`isr_states.py`)                                                            |

An appended batch is in the page cache. A result waits for a flush only if flush.messages makes the
append flush the log. A batch waits before its append if compression.type demands another codec
(`recompressions.py`). An idempotent batch waits, with any acks, if the producer states of its
partition must be loaded first (`producer_loader.py`).

Errors that depend on `acks`, or that end a wait:

- NOT_ENOUGH_REPLICAS (acks=-1): the committed ISR was smaller than min.insync.replicas before the
  append. Nothing was appended.
- NOT_ENOUGH_REPLICAS_AFTER_APPEND (acks=-1): the batch is committed, but when the high watermark
  reached its end, the maximal ISR was smaller than min.insync.replicas.
- NOT_LEADER_OR_FOLLOWER: this broker stopped leading the partition while the result waited.
- REQUEST_TIMED_OUT: the timeout is over, or too many batches wait for producer states or for
  flushes.

The other errors of an append are those of `Partition.append_as_leader` and of a missing replica
(`PartitionRegistry.why_missing`). CORRUPT_MESSAGE means that the batch is malformed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.broker.partition.key_check import CheckedKeys, KeylessRecords
from quorate.broker.partition.partition import ACKS_ALL
from quorate.broker.partition.partition_producers import ProducersNotLoaded
from quorate.broker.replication.appends.delayed_operations import DelayedOperations
from quorate.broker.replication.appends.delayed_produce import (
    DelayedProduce,
    Done,
    detached,
    failed,
)
from quorate.broker.replication.appends.recompressions import Recompressions
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.broker.replication.partitions.traffic import TIMED_APPENDS
from quorate.quorum.log.files.errors import CorruptBatch, OutOfFiles
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.hot.produce import (
    ProducePartition,
    ProducePartitionResult,
    RecordError,
)
from quorate.quorum.seams import Clock, Disk

MAX_WAITING_BYTES = 64 << 20
"""The bound of the memory of the batches that wait for producer states. While it is reached, a
further batch is refused with REQUEST_TIMED_OUT, and its producer retries. The last batch that is
accepted may exceed the bound. A batch whose request timed out counts until the load ends."""
WAITING_BATCH_BYTES = 1024
"""The memory counted for each such batch in addition to its records."""
MAX_FLUSH_WAITS = 100_000
"""Maximum number of batches that wait for flushes. While there are so many, because the disk does
not answer, every request is answered with REQUEST_TIMED_OUT and appends nothing. Batches whose
requests timed out count until their flush ends."""
Flush = Callable[[HostedPartition, Callable[[], None]], None]
"""A function that begins a flush of a partition's log. It calls back when all records that the log
has now are durable."""
Wait = tuple[int, HostedPartition, int]
"""(index in the request, partition, high watermark that the answer waits for). The offset is
NO_COMMIT if the answer waits for a flush only."""
NO_COMMIT = -1


class MustRecompress(Exception):
    """The batch must be rewritten with another codec, or wait for an earlier one that must."""

    def __init__(self, hosted: HostedPartition) -> None:
        super().__init__(hosted)
        self.hosted = hosted


class RecordAppender:
    """The appends of one broker. The event loop owns it."""

    def __init__(
        self,
        clock: Clock,
        delayed_operations: DelayedOperations,
        registry: PartitionRegistry,
        load_producers: Callable[[HostedPartition], None],
        flush: Flush,
        disk: Disk,
        on_disk_failure: Callable[[OSError], None],
    ) -> None:
        """`load_producers` starts a load of producer states, and `HostedPartition.await_producers`
        reports its end. `flush` is called for flush.messages. `on_disk_failure` gets the error of
        a failed append, and stops the node. The result of that append is KAFKA_STORAGE_ERROR. A
        lack of file descriptors fails the append alone, with the same error."""
        self._clock = clock
        self._delayed_operations = delayed_operations
        self._registry = registry
        self._load_producers = load_producers
        self._flush = flush
        self.recompressions = Recompressions(clock, disk)
        self._on_disk_failure = on_disk_failure
        self._waiting_bytes = 0  # of batches that wait for producer states
        self._flush_waits = 0

    def append(
        self,
        appends: Sequence[ProducePartition],
        acks: int,
        timeout_ms: int,
        done: Done,
        *,
        internal: bool = False,
        keys: CheckedKeys | None = None,
    ) -> None:
        """Append one batch to each partition, and call `done` once, also with acks=0. The call may
        come before this method returns. If the request still waits at `ReplicaManager.stop`, the
        call never comes.

        After `timeout_ms`, or MAX_TIMEOUT_MS if that is less, each partition that still waits gets
        REQUEST_TIMED_OUT. Its batch may have been appended and may be committed later.

        The results are in the order of `appends`, and one may fail without the others. All of them
        are INVALID_REQUIRED_ACKS if `acks` is not -1, 0 or 1. The append writes the offsets and the
        leader epoch into the batch: in place in a writable buffer, otherwise in a copy.

        `internal` marks the appends of this broker's coordinators. Only they may write to internal
        topics: another append gets INVALID_TOPIC_EXCEPTION. Only they may write control
        batches."""
        if acks not in (-1, 0, 1):
            done([failed(each, ErrorCode.INVALID_REQUIRED_ACKS) for each in appends])
            return
        if self._flush_waits >= MAX_FLUSH_WAITS:
            done([failed(each, ErrorCode.REQUEST_TIMED_OUT) for each in appends])
            return
        results: list[ProducePartitionResult] = []
        waits: list[Wait] = []
        unloaded: list[tuple[int, HostedPartition]] = []
        recompressed: list[tuple[int, HostedPartition]] = []
        for index, each in enumerate(appends):
            try:
                result = self._append(each, acks, internal, waits, index, keys=keys)
            except MustRecompress as wait:
                recompressed.append((index, wait.hosted))
                result = failed(each, ErrorCode.REQUEST_TIMED_OUT)  # unless it ends in time
            except ProducersNotLoaded:
                hosted = self._registry.find(each.topic, each.topic_id, each.partition)
                assert hosted is not None, "the replica that refused the batch is hosted"
                unloaded.append((index, hosted))
                result = failed(each, ErrorCode.REQUEST_TIMED_OUT)  # unless the load ends in time
            else:
                if result.error:
                    self._count_failure(each)
            results.append(result)
        self._finish(
            appends, results, done, waits, unloaded, recompressed, acks, timeout_ms, internal
        )

    def _finish(
        self,
        appends: Sequence[ProducePartition],
        results: list[ProducePartitionResult],
        done: Done,
        waits: list[Wait],
        unloaded: list[tuple[int, HostedPartition]],
        recompressed: list[tuple[int, HostedPartition]],
        acks: int,
        timeout_ms: int,
        internal: bool,
    ) -> None:
        """Let the partitions wait that must, or answer the request now if none must."""
        delayed: DelayedProduce | None = None
        for index, hosted, required_offset in waits:
            if hosted.log.must_flush:
                delayed = delayed or DelayedProduce(self._delayed_operations, results, done)
                delayed.open[index] = None
                self._await_flush(hosted, delayed, index, required_offset)
                continue
            error = hosted.partition.acks_all_error(required_offset)
            if error is None:
                delayed = delayed or DelayedProduce(self._delayed_operations, results, done)
                delayed.open[index] = None
                hosted.await_acks(required_offset, delayed, index)
            elif error:
                results[index] = results[index]._replace(error=error)
        for index, hosted in unloaded:
            if self._waiting_bytes >= MAX_WAITING_BYTES:
                self._count_failure(appends[index])
                continue
            delayed = delayed or DelayedProduce(self._delayed_operations, results, done)
            delayed.open[index] = None
            self._await_producers(hosted, delayed, index, detached(appends[index]), acks)
        for index, hosted in recompressed:
            delayed = delayed or DelayedProduce(self._delayed_operations, results, done)
            delayed.open[index] = None
            self._recompress(hosted, delayed, index, appends[index], acks, internal)
        if delayed is None:
            done(results)
        else:
            delayed.tick = self._delayed_operations.add(delayed, timeout_ms)

    def _await_producers(
        self,
        hosted: HostedPartition,
        delayed: DelayedProduce,
        index: int,
        each: ProducePartition,
        acks: int,
    ) -> None:
        """Append the batch when the producer states of its partition are loaded, unless the request
        times out before. Only clients' batches come here: the broker's own have no producer id."""
        waiting_bytes = WAITING_BATCH_BYTES + len(each.records or b"")
        self._waiting_bytes += waiting_bytes

        def loaded(error: KafkaError | None) -> None:
            self._waiting_bytes -= waiting_bytes
            if not delayed.waits(index):
                return
            if error is not None:
                self._count_failure(each)
                delayed.finished(index, failed(each, error.code, error.message))
                return
            self._append_waiting(hosted, delayed, index, each, acks, internal=False)

        hosted.await_producers(loaded)
        self._load_producers(hosted)

    def _recompress(
        self,
        hosted: HostedPartition,
        delayed: DelayedProduce,
        index: int,
        each: ProducePartition,
        acks: int,
        internal: bool,
    ) -> None:
        """Append the batch when it has the codec of its topic and all earlier batches of this
        partition are appended, unless the request times out before."""

        def ready(records: memoryview | None, error: KafkaError | None) -> None:
            if not delayed.waits(index):
                return
            if error is not None:
                self._count_failure(each)
                delayed.finished(index, failed(each, error.code, error.message))
                return
            rewritten = each._replace(records=records)
            self._append_waiting(hosted, delayed, index, rewritten, acks, internal=internal)

        each = detached(each)
        assert each.records is not None
        self.recompressions.submit(hosted, each.records, ready, internal=internal)

    def _append_waiting(
        self,
        hosted: HostedPartition,
        delayed: DelayedProduce,
        index: int,
        each: ProducePartition,
        acks: int,
        *,
        internal: bool,
    ) -> None:
        """Append a batch after a wait for its producer states or its recompression."""
        waits: list[Wait] = []
        try:
            result = self._append(each, acks, internal, waits, index, waited=True)
        except ProducersNotLoaded:  # also if the replica was truncated, and leads again
            self._await_producers(hosted, delayed, index, each, acks)
            return
        if result.error:
            self._count_failure(each)
        for _, _, required_offset in waits:
            delayed.set_result(index, result)
            if hosted.log.must_flush:
                self._await_flush(hosted, delayed, index, required_offset)
            else:
                self._await_acks(hosted, delayed, index, required_offset)
            return
        delayed.finished(index, result)

    def _await_flush(
        self, hosted: HostedPartition, delayed: DelayedProduce, index: int, required_offset: int
    ) -> None:
        """Flush the log before the batch is acknowledged, because flush.messages says so. If this
        broker has stopped leading meanwhile, the result is NOT_LEADER_OR_FOLLOWER."""
        epoch = hosted.partition.leader_epoch
        self._flush_waits += 1

        def flushed() -> None:
            self._flush_waits -= 1
            if not delayed.waits(index):
                return
            partition = hosted.partition
            if hosted.gone or partition.leadership is None or partition.leader_epoch != epoch:
                delayed.acknowledged(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif required_offset == NO_COMMIT:
                delayed.acknowledged(index, ErrorCode.NONE)
            else:
                self._await_acks(hosted, delayed, index, required_offset)

        self._flush(hosted, flushed)

    @staticmethod
    def _await_acks(
        hosted: HostedPartition, delayed: DelayedProduce, index: int, required_offset: int
    ) -> None:
        error = hosted.partition.acks_all_error(required_offset)
        if error is None:
            hosted.await_acks(required_offset, delayed, index)
        else:
            delayed.acknowledged(index, error)

    def _append(
        self,
        each: ProducePartition,
        acks: int,
        internal: bool,
        waits: list[Wait],
        index: int,
        *,
        waited: bool = False,
        keys: CheckedKeys | None = None,
    ) -> ProducePartitionResult:
        topic, topic_id, partition_id, records = each
        hosted = self._registry.find(topic, topic_id, partition_id)
        if hosted is None:
            return failed(each, self._registry.why_missing(topic, topic_id, partition_id))
        if hosted.topic in INTERNAL_TOPICS and not internal:
            text = f"{hosted.topic} is written by its coordinators only"
            return failed(each, ErrorCode.INVALID_TOPIC_EXCEPTION, text)
        partition = hosted.partition
        records = memoryview(b"") if records is None else records
        if not waited and self.recompressions.must_wait(hosted, records):
            raise MustRecompress(hosted)
        data = bytearray(records) if records.readonly else records
        end_offset = hosted.log.end_offset
        traffic = hosted.traffic
        timed = traffic.produce_requests % TIMED_APPENDS == 0
        begun_us = self._clock.now_us() if timed else 0
        try:
            appended = partition.append_as_leader(
                data,
                acks,
                now_ms=self._clock.now_ms(),
                wall_ms=self._clock.wall_ms(),
                internal=internal,
                keys=keys,
            )
        except KeylessRecords as error:
            traffic.keyless_records += error.count
            text, record_text = error.texts(repr(hosted))
            errors = [RecordError(index, record_text) for index in error.indexes]
            return failed(each, error.code, text)._replace(record_errors=errors)
        except KafkaError as error:
            traffic.refused(error.code, len(data))
            return failed(each, error.code, error.message, hosted)
        except CorruptBatch as error:
            return failed(each, ErrorCode.CORRUPT_MESSAGE, str(error))
        except OutOfFiles as error:  # the log is unchanged
            return failed(each, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        except OSError as error:
            self._on_disk_failure(error)
            return failed(each, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        if timed:
            self._registry.traffic.append_times.observe(self._clock.now_us() - begun_us)
        traffic.produce_requests += 1
        if hosted.log.end_offset != end_offset:
            traffic.messages_in += hosted.log.end_offset - end_offset
            traffic.bytes_in += len(data)
            hosted.appended(len(data))
        hosted.settle()
        if acks == ACKS_ALL:
            waits.append((index, hosted, appended.end_offset))
        elif hosted.log.must_flush:
            waits.append((index, hosted, NO_COMMIT))
        base_offset, time_ms = appended.base_offset, appended.append_time_ms
        return ProducePartitionResult(*each[:3], 0, base_offset, time_ms, hosted.log.start_offset)

    def _count_failure(self, each: ProducePartition) -> None:
        hosted = self._registry.find(each.topic, each.topic_id, each.partition)
        traffic = self._registry.traffic.elsewhere if hosted is None else hosted.traffic
        traffic.produce_requests += 1
        traffic.failed_produce_requests += 1

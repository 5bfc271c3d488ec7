"""Produce: append to the logs of the partitions led here and answer as `acks` demands.

acks 0 and 1 are answered when the leader has appended, -1 when every member of the maximal ISR has,
by NOT_ENOUGH_REPLICAS(_AFTER_APPEND) where min.insync.replicas is not met, or by REQUEST_TIMED_OUT.
`done` is called exactly once, perhaps before `append` returns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quorate.broker.partition.partition import ACKS_ALL, NO_TIMESTAMP
from quorate.broker.replication.delayed import Deadlines
from quorate.broker.replication.hosted import Hosted, Key
from quorate.quorum.log.errors import CorruptBatch
from quorate.quorum.rpc.kafka.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Clock

logger = logging.getLogger("quorate.broker.replication")


class Append(NamedTuple):
    """One client batch for one partition. A read-only `data` is copied, a writable one kept."""

    key: Key
    data: memoryview | bytearray


class AppendResult(NamedTuple):
    error: int
    base_offset: int = -1
    append_time_ms: int = NO_TIMESTAMP
    start_offset: int = -1
    message: str | None = None


Done = Callable[[Sequence[AppendResult]], None]


class Appends:
    def __init__(
        self,
        clock: Clock,
        deadlines: Deadlines,
        hosted: Callable[[Key], Hosted | None],
        on_disk_failure: Callable[[OSError], None],
    ) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._hosted = hosted
        self._on_disk_failure = on_disk_failure

    def append(
        self,
        appends: Sequence[Append],
        acks: int,
        timeout_ms: int,
        done: Done,
        *,
        internal: bool = False,
    ) -> None:
        """`internal`: the broker's own coordinators, which may write control batches."""
        if acks not in (-1, 0, 1):
            done([AppendResult(ErrorCode.INVALID_REQUIRED_ACKS)] * len(appends))
            return
        results: list[AppendResult] = []
        waits: list[tuple[int, Hosted, int]] = []
        for index, each in enumerate(appends):
            results.append(self._append(each, acks, internal, waits, index))
        delayed: DelayedAppend | None = None
        for index, hosted, required_offset in waits:
            error = hosted.partition.acks_all_error(required_offset)
            if error is None:
                delayed = delayed or DelayedAppend(self._deadlines, results, done)
                delayed.open[index] = None
                hosted.await_acks(required_offset, delayed, index)
            elif error:
                results[index] = results[index]._replace(error=error)
        if delayed is None:
            done(results)
        else:
            delayed.tick = self._deadlines.add(delayed, timeout_ms)

    def _append(
        self,
        each: Append,
        acks: int,
        internal: bool,
        waits: list[tuple[int, Hosted, int]],
        index: int,
    ) -> AppendResult:
        hosted = self._hosted(each.key)
        if hosted is None:
            return AppendResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition = hosted.partition
        data = each.data
        if type(data) is memoryview and data.readonly:
            data = bytearray(data)
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
            return AppendResult(error.code, message=error.message)
        except CorruptBatch as error:
            return AppendResult(ErrorCode.CORRUPT_MESSAGE, message=str(error))
        except OSError as error:
            self._on_disk_failure(error)
            return AppendResult(ErrorCode.KAFKA_STORAGE_ERROR, message=str(error))
        if hosted.log.end_offset != end_offset:
            hosted.appended()
        hosted.settle()
        if acks == ACKS_ALL:
            waits.append((index, hosted, appended.end_offset))
        return AppendResult(
            ErrorCode.NONE,
            appended.base_offset,
            appended.append_time_ms,
            hosted.log.start_offset,
        )


class DelayedAppend:
    """One acks=all request whose partitions are not all replicated yet."""

    __slots__ = ("_deadlines", "_done", "_results", "open", "tick")

    def __init__(self, deadlines: Deadlines, results: list[AppendResult], done: Done) -> None:
        self.open: dict[int, None] = {}
        self.tick = 0
        self._deadlines = deadlines
        self._results = results
        self._done = done

    def acknowledged(self, index: int, error: int) -> None:
        if index not in self.open:  # it timed out before
            return
        del self.open[index]
        if error:
            self._results[index] = self._results[index]._replace(error=error)
        if not self.open:
            self._deadlines.remove(self, self.tick)
            self._done(self._results)

    def expire(self) -> None:
        for index in self.open:
            self._results[index] = self._results[index]._replace(error=ErrorCode.REQUEST_TIMED_OUT)
        self.open.clear()
        self._done(self._results)

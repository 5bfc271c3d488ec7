"""The batches that wait until they have the codec of their topic (compression.type).

The thread of long work rewrites one batch at a time, in steps. No flush waits for it. The memory is
that of the waiting batches and of one decompressed payload, and both are bounded. Topics with
`compression.type=producer` cost one comparison for each batch.

Invariant: the batches of one partition are appended in the order in which they arrived. While a
batch of a partition waits, each later one of this partition waits, too, also if it has the right
codec.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from quorate.broker.partition.validation import validate_client_batch
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.recompression import Compression, must_recompress, recompress
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Clock, Disk

MAX_WAITING_BYTES = 64 << 20
"""Memory of the batches that wait for a recompression, above which a further batch is refused. Its
answer is REQUEST_TIMED_OUT, and its producer retries. One batch more than this may wait."""
WAITING_BATCH_BYTES = 1024
"""The memory counted for each such batch in addition to its records."""
Ready = Callable[[memoryview | None, KafkaError | None], None]
"""Gets the batch with the right codec, or the error for the producer."""

logger = logging.getLogger("quorate.broker.replication")


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A batch that waits. `compression` is None if it only waits for earlier ones."""

    hosted: HostedPartition
    records: memoryview
    compression: Compression | None
    ready: Ready

    @property
    def size_bytes(self) -> int:
        """Return the memory that counts for this batch."""
        return WAITING_BATCH_BYTES + len(self.records)


class Recompressions:
    """The recompressions of one broker. The event loop owns it.

    `batches` counts the batches that were rewritten, `waiting_bytes` those that wait."""

    def __init__(self, clock: Clock, disk: Disk) -> None:
        """Work in the thread of `disk`."""
        self.batches = 0
        self.waiting_bytes = 0
        self._clock = clock
        self._disk = disk
        self._waiting: deque[_Waiting] = deque()
        self._running = False
        self._closed = False
        self._failures = LogLimit(clock)

    def must_wait(self, hosted: HostedPartition, records: memoryview) -> bool:
        """Return True if the batch may not be appended now.

        A replica that does not lead never waits, because its append is refused."""
        partition = hosted.partition
        compression = partition.settings.compression
        if compression is None and not hosted.recompressing:
            return False
        return partition.leadership is not None and (
            hosted.recompressing > 0
            or (compression is not None and must_recompress(records, compression))
        )

    def submit(
        self, hosted: HostedPartition, records: memoryview, ready: Ready, *, internal: bool
    ) -> None:
        """Rewrite a batch if it has the wrong codec, after all earlier batches. Call `ready` later,
        once, but not after `close`. The caller must not change `records`.

        The error is that of `validate_client_batch`, INVALID_RECORD if the payload cannot be
        decompressed within its bound, or REQUEST_TIMED_OUT if too many batches wait."""
        settings = hosted.partition.settings
        error: KafkaError | None = None
        if self.waiting_bytes >= MAX_WAITING_BYTES:
            error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too many batches are recompressed")
        else:
            try:
                validate_client_batch(records, settings, self._clock.wall_ms(), internal=internal)
            except KafkaError as refused:
                error = refused
        if error is not None:
            self._clock.call_soon(partial(self._refuse, ready, error))
            return
        compression = settings.compression
        if compression is not None and not must_recompress(records, compression):
            compression = None
        waiting = _Waiting(hosted, records, compression, ready)
        self._waiting.append(waiting)
        self.waiting_bytes += waiting.size_bytes
        hosted.recompressing += 1
        if not self._running:
            self._run()

    def _refuse(self, ready: Ready, error: KafkaError) -> None:
        if not self._closed:
            ready(None, error)

    def close(self) -> None:
        """Discard all waiting batches. A step that runs is completed in vain."""
        self._closed = True
        self._waiting.clear()

    def _run(self) -> None:
        """Work on the first batch, and complete those that only wait for earlier ones."""
        while self._waiting and not self._closed:
            first = self._waiting[0]
            if first.compression is not None:
                self._running = True
                self._step(first, recompress(first.records, first.compression))
                return
            self._complete(first.records, None)

    def _step(self, waiting: _Waiting, steps: IncrementalWork[bytearray]) -> None:
        def work() -> bytearray | None:
            try:
                next(steps)
            except StopIteration as end:
                rewritten: bytearray = end.value
                return rewritten
            return None

        def done(rewritten: bytearray | None, error: BaseException | None) -> None:
            if self._closed:
                return
            if rewritten is None and error is None:
                self._step(waiting, steps)
                return
            self._running = False
            if rewritten is not None:
                self.batches += 1
                self._complete(memoryview(rewritten), None)
            else:
                self._complete(None, self._error_of(waiting, error))
            if not self._running:
                self._run()

        self._disk.submit_long(work, done)

    def _complete(self, records: memoryview | None, error: KafkaError | None) -> None:
        """Remove the first batch from the queue, and hand it over."""
        waiting = self._waiting.popleft()
        self.waiting_bytes -= waiting.size_bytes
        waiting.hosted.recompressing -= 1
        waiting.ready(records, error)

    def _error_of(self, waiting: _Waiting, error: BaseException | None) -> KafkaError:
        if isinstance(error, CorruptBatch):
            return KafkaError(ErrorCode.INVALID_RECORD, str(error))
        if (left_out := self._failures.passes(type(error).__name__)) is not None:
            logger.error(
                "%r: a batch could not be recompressed and is refused: %r%s",
                waiting.hosted,
                error,
                left_out,
                exc_info=error,
            )
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the batch could not be recompressed")

"""The loader: it replays the metadata log and resolves metadata transactions (KIP-868).

A transaction may span several batches. The loader buffers the records between Begin and End, and
replays them together at End. Abort discards them. While a transaction is open, the image stays at
the last stable offset, the one before Begin. No reader therefore sees half a transaction, and no
snapshot ends inside one. If the log ends inside a transaction, the next active controller aborts
it.

The loader does not know the high watermark. A node feeds only committed batches.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.batches import MetadataBatch
from quorate.quorum.metadata.delta import EMPTY_DELTA, ImageDelta
from quorate.quorum.metadata.errors import ReplayError
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from quorate.quorum.metadata.replay import replay

MAX_TRANSACTION_RECORDS = 1_000_000
"""The maximum number of records that one transaction may buffer."""
MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
"""The records that begin or end a metadata transaction."""


class Loader:
    """The newest stable image of a log, and the position in the log.

    `image` is the newest stable image. `position` is the offset that must be fed next, at first the
    one after the image. Invariant: `image.last.offset < position`.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.position = image.last.offset + 1
        self._held: list[MetadataRecord] | None = None

    @property
    def in_transaction(self) -> bool:
        """Return True if the records up to `position` end inside a transaction."""
        return self._held is not None

    def feed(self, batches: Iterable[MetadataBatch]) -> ImageDelta:
        """Replay the batches without a pause. Return the changes from the old image to the new one.

        The first batch must begin at `position`. The delta is empty if no record became stable. It
        is also empty if `image.last` advanced without a change, over control records, NoOp records
        or an aborted transaction.

        Raise ReplayError if the batches leave a gap, misplace a transaction marker, exceed
        MAX_TRANSACTION_RECORDS, or contradict the image. Errors of `batches` itself, such as
        CorruptBatch, are passed on. The loader must not be used after an error.
        """
        ready: list[MetadataRecord] = []
        last, timestamp_ms = self.image.last, self.image.last_timestamp_ms
        for batch in batches:
            if batch.base_offset != self.position:
                raise ReplayError(
                    f"the loader received a batch at offset {batch.base_offset}, but expects "
                    f"offset {self.position}: the log must be fed without gaps"
                )
            self.position = batch.last.offset + 1
            stable_offset = self._take(batch, ready)
            if stable_offset is not None:
                last = EpochOffset(batch.last.epoch, stable_offset)
                timestamp_ms = batch.timestamp_ms
        if last == self.image.last:
            return EMPTY_DELTA
        self.image, delta = replay(self.image, ready, last, timestamp_ms)
        return delta

    def _take(self, batch: MetadataBatch, ready: list[MetadataRecord]) -> int | None:
        """Move the batch's stable records to `ready`. Return the last stable offset of the batch,
        or None if it has none."""
        if self._held is None and not any(isinstance(each, MARKERS) for each in batch.records):
            ready.extend(batch.records)
            return batch.last.offset
        stable_offset = None
        for offset, record in enumerate(batch.records, batch.base_offset):
            if isinstance(record, BeginTransactionRecord):
                if self._held is not None:
                    raise ReplayError(
                        f"{record} at offset {offset} begins a transaction inside another one"
                    )
                self._held = []
            elif isinstance(record, MARKERS):
                if self._held is None:
                    raise ReplayError(f"{record} at offset {offset} ends no open transaction")
                if isinstance(record, EndTransactionRecord):
                    ready.extend(self._held)
                self._held = None
            elif self._held is None:
                ready.append(record)
            elif len(self._held) >= MAX_TRANSACTION_RECORDS:
                raise ReplayError(f"a transaction holds over {MAX_TRANSACTION_RECORDS} records")
            else:
                self._held.append(record)
            if self._held is None:
                stable_offset = offset
        return stable_offset

"""Batches of metadata records from the bytes of the metadata log or of a snapshot.

Control batches (LeaderChange, snapshot header and footer, voters) carry no metadata. They are
returned without records, because they occupy offsets and the image's `last` must advance over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batch import BatchHeader, batches, records_of
from quorate.quorum.metadata.errors import MalformedRecord, MetadataError
from quorate.quorum.metadata.framing import decode_record
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.seams import Buffer

MAX_KEPT_BYTES = 1 << 20
"""The maximum size of the batches that CheckedBatches keeps. A standby controller replays a commit
after 20 ms at most (`BEHIND_MS`), so a follower needs a fraction of it."""


class MetadataBatch(NamedTuple):
    """One batch of the metadata log.

    Data batches have no gaps: record i has the offset `base_offset + i`. `last` is the epoch and
    offset of the last record. `timestamp_ms` is the batch's wall time. `records` is empty for a
    control batch.
    """

    base_offset: int
    last: EpochOffset
    timestamp_ms: int
    records: Sequence[MetadataRecord]


def metadata_batches(data: Buffer) -> Iterator[MetadataBatch]:
    """Yield the batches in `data`, which consists of whole batches as `Log.read` returns them.

    The CRC of every batch is checked, because the disk may return damaged bytes and opening a log
    does not read flushed bytes. If a batch is damaged, raise CorruptBatch. If a record cannot be
    replayed, raise a MetadataError that names the offset. The batches before it are yielded first.
    """
    view = memoryview(data)
    for position, header in batches(view):
        yield _batch(header, records_in_batch(view, position, header))


def records_in_batch(
    buffer: memoryview, position: int, header: BatchHeader
) -> Sequence[MetadataRecord]:
    """Return the records of the batch at `position`, none for a control batch. The CRC is not
    checked. Raise CorruptBatch, or a MetadataError that names the offset."""
    if header.is_control:
        return ()
    records = []
    for record in records_of(buffer, position, header):
        if record.value is None:
            raise MalformedRecord(f"offset {record.offset} holds no value")
        try:
            records.append(decode_record(record.value))
        except MetadataError as error:
            error.add_note(f"at offset {record.offset} of the metadata log")
            raise
    return records


class CheckedBatches:
    """The records of batches that were decoded before their append, kept until their replay.

    A node decodes a leader's batch before it appends it, because a batch that cannot be replayed
    would stop the node. It replays the batch after the commit. This object saves the second
    decoding. Invariant: records are returned only for the very bytes that they were decoded from,
    because a leader may replace a batch that is not committed.

    At most MAX_KEPT_BYTES of batches are kept. The oldest are removed first; they are decoded
    again. The event loop owns it.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[bytes, MetadataBatch]] = {}  # by base offset
        self._kept_bytes = 0

    def check(self, buffer: memoryview, position: int, header: BatchHeader) -> None:
        """Decode the batch at `position` and keep its records, if they are not too large.

        The CRC is not checked, because the log checks it in the append. Raise CorruptBatch or
        MetadataError if the batch cannot be decoded. A contradiction to the image is found only by
        the replay."""
        records = records_in_batch(buffer, position, header)
        if header.base_offset in self._kept:
            self._remove(header.base_offset)
        size_bytes = header.size_bytes
        if size_bytes > MAX_KEPT_BYTES:
            return
        while self._kept_bytes + size_bytes > MAX_KEPT_BYTES:
            self._remove(next(iter(self._kept)))
        data = bytes(buffer[position : position + size_bytes])
        self._kept[header.base_offset] = data, _batch(header, records)
        self._kept_bytes += size_bytes

    def batches(self, data: Buffer) -> Iterator[MetadataBatch]:
        """Do what `metadata_batches` does, but yield kept batches as they are.

        Their bytes are compared instead of their CRC, because the append has checked the CRC of the
        same bytes. A batch that was yielded is no longer kept."""
        view = memoryview(data)
        position = 0
        while position < len(view):
            kept = self._kept.pop(int.from_bytes(view[position : position + 8], "big"), None)
            if kept is not None:
                checked, batch = kept
                self._kept_bytes -= len(checked)
                end = position + len(checked)
                if bytes(view[position:end]) == checked:
                    position = end
                    yield batch
                    continue
            _, header = next(batches(view[position:]))
            yield _batch(header, records_in_batch(view, position, header))
            position += header.size_bytes

    def _remove(self, base_offset: int) -> None:
        self._kept_bytes -= len(self._kept.pop(base_offset)[0])


def _batch(header: BatchHeader, records: Sequence[MetadataRecord]) -> MetadataBatch:
    last = EpochOffset(header.leader_epoch, header.last_offset)
    return MetadataBatch(header.base_offset, last, header.max_timestamp_ms, records)

"""Batches of metadata records from the bytes of the metadata log or of a snapshot.

Control batches (LeaderChange, snapshot header and footer, voters) carry no metadata. They are
returned without records, because they occupy offsets and the image's `last` must advance over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import BatchHeader, batches, records_of
from quorate.quorum.metadata.errors import MalformedRecord, MetadataError
from quorate.quorum.metadata.framing import decode_record
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.seams import Buffer


class MetadataBatch(NamedTuple):
    """One batch of the metadata log.

    Data batches have no gaps: record i has the offset `base_offset + i`. `last` is the epoch and
    offset of the last record. `timestamp_ms` is the batch's wall time. `size_bytes` is the size of
    the whole batch. `records` is empty for a control batch.
    """

    base_offset: int
    last: EpochOffset
    timestamp_ms: int
    size_bytes: int
    records: Sequence[MetadataRecord]


def metadata_batches(data: Buffer) -> Iterator[MetadataBatch]:
    """Yield the batches in `data`, which consists of whole batches as `Log.read` returns them.

    The CRC of every batch is checked, because the disk may return damaged bytes and opening a log
    does not read flushed bytes. If a batch is damaged, raise CorruptBatch. If a record cannot be
    replayed, raise a MetadataError that names the offset. The batches before it are yielded first.
    """
    view = memoryview(data)
    for position, header in batches(view):
        yield decoded_batch(view, position, header)


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


def decoded_batch(buffer: memoryview, position: int, header: BatchHeader) -> MetadataBatch:
    """Return the batch at `position`. Errors as in `records_in_batch`."""
    records = records_in_batch(buffer, position, header)
    last = EpochOffset(header.leader_epoch, header.last_offset)
    return MetadataBatch(
        header.base_offset, last, header.max_timestamp_ms, header.size_bytes, records
    )

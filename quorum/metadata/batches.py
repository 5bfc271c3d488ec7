"""Batches of metadata records from the bytes of the metadata log or of a snapshot.

Control batches (LeaderChange, snapshot header and footer, voters) carry no metadata. They are
returned without records, because they occupy offsets and the image's `last` must advance over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batch import batches, records_of
from quorate.quorum.metadata.errors import MalformedRecord, MetadataError
from quorate.quorum.metadata.framing import decode_record
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True)
class MetadataBatch:
    """One batch of the metadata log.

    Data batches have no gaps: record i has the offset `base_offset + i`. `last` is the epoch and
    offset of the last record. `timestamp_ms` is the batch's wall time.
    """

    base_offset: int
    last: EpochOffset
    timestamp_ms: int
    records: Sequence[MetadataRecord]


def check_value(value: Buffer | None) -> None:
    """Raise a MetadataError for the value of a record that no node could replay."""
    if value is None:
        raise MalformedRecord("a record of metadata without a value")
    decode_record(value)


def metadata_batches(data: Buffer) -> Iterator[MetadataBatch]:
    """Yield the batches in `data`, which consists of whole batches as `Log.read` returns them.

    Every batch is checked, because the disk may return damaged bytes and opening a log does not
    read what was flushed. Raise CorruptBatch, or a MetadataError that names the offset.
    """
    view = memoryview(data)
    for position, header in batches(view):
        records = []
        if not header.is_control:
            for record in records_of(view, position, header):
                if record.value is None:
                    raise MalformedRecord(f"offset {record.offset} holds no value")
                try:
                    records.append(decode_record(record.value))
                except MetadataError as error:
                    error.add_note(f"at offset {record.offset} of the metadata log")
                    raise
        last = EpochOffset(header.leader_epoch, header.last_offset)
        yield MetadataBatch(header.base_offset, last, header.max_timestamp_ms, records)

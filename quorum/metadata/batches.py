"""From the bytes of the metadata log, or of a snapshot, to batches of metadata records.

Control batches (LeaderChange, snapshot header and footer, voters) carry no metadata; they come out
as batches without records, because they take offsets: the image's `last` moves over them.
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
    """Data batches of the metadata log have no gaps: record i is at `base_offset + i`."""

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
    """`data` is whole batches, as `Log.read` gives them: what the disk gives back may be damaged,
    and a log that was flushed is not read when it is opened. Raises CorruptBatch, or a
    MetadataError that names the offset."""
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

"""Record batches, format v2: the 61-byte header, its checksum, and batches made of records.

The CRC-32C covers everything from the attributes on. Base offset, length, leader epoch and magic
lie outside of it. A leader therefore assigns offset and epoch in place, and the payload stays
opaque.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from quorate.quorum.log.batches.compression import Codec, compress, decompress
from quorate.quorum.log.batches.record import Record, decode_records, encode_records, write_varint
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.seams import Buffer

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
PREFIX_BYTES = 12
"""Bytes of the base offset and the length, which the field `length` does not count."""
CRC_FROM = 21
"""The position, in a batch, of the first byte that its CRC covers: the attributes."""
MIN_LENGTH = HEADER_BYTES - PREFIX_BYTES
MAGIC = 2
NO_PRODUCER = -1
"""The producer id of a batch without an idempotent producer."""

CODEC_MASK = 0x07
"""The bits of the attributes that hold the compression codec. The other bits follow."""
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
"""Set by the log cleaner: the base timestamp is the time from which tombstones may be removed."""

_PREFIX_AND_EPOCH = struct.Struct(">qii")
_UINT32 = struct.Struct(">I")


class BatchHeader(NamedTuple):
    """The header of one batch, field by field in the order of the format."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole batch, header included."""
        return PREFIX_BYTES + self.length

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset that follows the last record."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        """Number of the compression codec, or 0 if the payload is not compressed."""
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        """True for a batch of control records, which consumers do not see."""
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """True for a batch that is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The wall time from which the batch's tombstones may be removed, or None if
        there is no such time."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON else None

    @property
    def is_log_append_time(self) -> bool:
        """True if all records have the time of the append, `max_timestamp_ms`."""
        return bool(self.attributes & LOG_APPEND_TIME)


Placed = Sequence[tuple[int, BatchHeader]]
"""The position and the header of each batch in a buffer."""


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Return the header at `position`. Its batch may reach beyond the buffer.

    Raise CorruptBatch if the bytes cannot be a header: too few bytes, another magic, a length below
    the header's own, or a negative last offset delta. The CRC is not checked."""
    if len(buffer) - position < HEADER_BYTES:
        raise CorruptBatch(
            f"{len(buffer) - position} bytes at byte {position} are too few for a batch header"
        )
    header = BatchHeader._make(HEADER.unpack_from(buffer, position))
    if header.magic != MAGIC:
        raise CorruptBatch(f"batch at byte {position} has magic {header.magic}, not {MAGIC}")
    if header.length < MIN_LENGTH or header.last_offset_delta < 0:
        raise CorruptBatch(
            f"batch at byte {position} has length {header.length}"
            f" and last offset delta {header.last_offset_delta}"
        )
    return header


def checksum_is_valid(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Return True if the batch at `position`, which the buffer holds entirely, has the CRC of its
    header."""
    return checksum_of(buffer, position, header) == header.crc


def checksum_of(buffer: Buffer, position: int, header: BatchHeader) -> int:
    """Return the CRC-32C of the bytes of the batch at `position`. For an undamaged batch it is
    `header.crc`."""
    return crc32c(memoryview(buffer)[position + CRC_FROM : position + header.size_bytes])


def batches(buffer: Buffer, *, verify: bool = True) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch in the buffer.

    Raise CorruptBatch at a batch that is cut off or invalid, or that fails its CRC if `verify`. The
    batches before it have been yielded by then."""
    view = memoryview(buffer)
    position, size = 0, len(view)
    while position < size:
        # The valid case needs no call, because every append and fetch runs this loop.
        header = (
            BatchHeader._make(HEADER.unpack_from(view, position))
            if size - position >= HEADER_BYTES
            else read_header(view, position)
        )
        if header[3] != MAGIC or header[1] < MIN_LENGTH or header[6] < 0:
            read_header(view, position)  # raises the error with its reason
        end = position + PREFIX_BYTES + header[1]
        if end > size:
            raise CorruptBatch(f"batch at byte {position} ends at {end}, the data at {size}")
        if verify and crc32c(view[position + CRC_FROM : end]) != header[4]:
            raise CorruptBatch(
                f"batch at byte {position} (base offset {header.base_offset}) fails its CRC-32C"
            )
        yield position, header
        position = end


def records_of(buffer: Buffer, position: int, header: BatchHeader) -> Iterator[Record]:
    """Return the records of one batch, one after another. The CRC is not checked.

    The call itself decompresses the payload. The call and the iteration raise CorruptBatch, and no
    other error, if the payload cannot be read. Valid records before the fault may have been yielded
    by then."""
    payload = payload_of(buffer, position, header)
    if header.codec:
        payload = decompress(header.codec, payload)
    return records_in(payload, header)


def payload_of(buffer: Buffer, position: int, header: BatchHeader) -> Buffer:
    """Return the payload as it is stored: compressed, if the header says that it is."""
    return buffer[position + HEADER_BYTES : position + header.size_bytes]


def records_in(payload: Buffer, header: BatchHeader) -> Iterator[Record]:
    """Yield the records of a payload that is not compressed any more. Raise CorruptBatch.

    The producer's timestamps have no meaning if the topic uses LogAppendTime, and no leader checks
    them."""
    count, base_offset = header.record_count, header.base_offset
    if header.is_log_append_time:
        records = decode_records(payload, count, base_offset, 0)
        return (each._replace(timestamp_ms=header.max_timestamp_ms) for each in records)
    return decode_records(payload, count, base_offset, header.base_timestamp_ms)


def assign(
    buffer: bytearray | memoryview, base_offset: int, leader_epoch: int, position: int = 0
) -> None:
    """Write a leader's base offset and leader epoch into the header of a client's batch.

    Both fields lie outside of the CRC."""
    (length,) = struct.unpack_from(">i", buffer, position + 8)
    _PREFIX_AND_EPOCH.pack_into(buffer, position, base_offset, length, leader_epoch)


def set_append_time(buffer: bytearray | memoryview, wall_ms: int, position: int = 0) -> None:
    """Set the timestamps of the batch to `wall_ms` (LogAppendTime), and renew its CRC. Raise
    CorruptBatch if the header is invalid."""
    header = read_header(buffer, position)
    struct.pack_into(">h", buffer, position + CRC_FROM, header.attributes | LOG_APPEND_TIME)
    struct.pack_into(">q", buffer, position + 35, wall_ms)
    body = memoryview(buffer)[position + CRC_FROM : position + header.size_bytes]
    _UINT32.pack_into(buffer, position + 17, crc32c(body))


def build_batch(
    records: Sequence[Record],
    *,
    leader_epoch: int,
    codec: Codec = Codec.NONE,
    flags: int = 0,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytearray:
    """Return one batch of at least one record. The offsets of `records` must rise.

    `flags` are TRANSACTIONAL and CONTROL, combined by `|`."""
    payload: Buffer = encode_records(records)
    return assemble(
        compress(codec, payload) if codec else payload,
        BatchHeader(
            base_offset=records[0].offset,
            length=0,
            leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=codec | flags,
            last_offset_delta=records[-1].offset - records[0].offset,
            base_timestamp_ms=records[0].timestamp_ms,
            max_timestamp_ms=max(record.timestamp_ms for record in records),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(records),
        ),
    )


def build_value_batch(
    values: Sequence[Buffer], *, base_offset: int, leader_epoch: int, timestamp_ms: int
) -> bytearray:
    """Return one batch of at least one record, without keys and headers, which all have the same
    timestamp.

    The records of the metadata log, apart from control records, are written as such batches. This
    is a faster way to build them than `build_batch`."""
    payload = bytearray()
    for delta, value in enumerate(values):
        body = bytearray(b"\x00\x00")
        write_varint(body, delta)
        body.append(1)  # no key
        write_varint(body, len(value))
        write_varint(payload, len(body) + len(value) + 1)
        payload += body
        payload += value
        payload.append(0)  # no headers
    count = len(values)
    return assemble(
        payload,
        BatchHeader(
            base_offset,
            0,
            leader_epoch,
            MAGIC,
            0,
            0,
            count - 1,
            timestamp_ms,
            timestamp_ms,
            NO_PRODUCER,
            -1,
            -1,
            count,
        ),
    )


def assemble(payload: Buffer, header: BatchHeader) -> bytearray:
    """Return a batch of this payload, compressed as `header` says. The length and the CRC of
    `header` are ignored."""
    length = MIN_LENGTH + len(payload)
    batch = bytearray(HEADER.pack(*header._replace(length=length)))
    batch += payload
    _UINT32.pack_into(batch, 17, crc32c(memoryview(batch)[CRC_FROM:]))
    return batch

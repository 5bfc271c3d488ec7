"""The records of an uncompressed payload as slices, for a filter that copies most of them unread.

A batch keeps its base offset when records are removed, so the bytes of a record that stays are
valid in the new batch. Only a new base timestamp changes them (`moved`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quorate.quorum.log.batch import BatchHeader, payload_of
from quorate.quorum.log.compression import decompress
from quorate.quorum.log.errors import CorruptBatch
from quorate.quorum.log.record import ZIGZAG, read_varint, write_varint
from quorate.quorum.seams import Buffer

COPIED_BYTES = 1 << 20
"""A payload up to this size is copied, because Python reads `bytes` faster than a view. The copy of
a larger one would hold the interpreter's lock for milliseconds."""


class RecordSpan(NamedTuple):
    """One record: its bytes are `start` to `stop` of the payload, its length field included."""

    start: int
    stop: int
    timestamp_delta_ms: int
    offset_delta: int
    key: Buffer | None
    has_value: bool


def payload_to_read(batch: Buffer, header: BatchHeader) -> Buffer:
    """Return the uncompressed payload of a batch. Block. Raise CorruptBatch."""
    payload = payload_of(memoryview(batch), 0, header)
    if header.codec:
        return decompress(header.codec, payload)
    return bytes(payload) if len(payload) <= COPIED_BYTES else payload


def spans_of(payload: Buffer, count: int) -> Iterator[RecordSpan]:
    """Yield the spans of `count` records. Headers are not read.

    Raise CorruptBatch if a record does not fit, or if the payload does not end behind the last
    record. Spans before the fault have been yielded by then."""
    position, start, size = 0, 0, len(payload)
    make = RecordSpan._make
    key: Buffer | None
    try:
        for _ in range(count):
            start = position
            # Nearly all numbers have one byte, and the length has two. These need no call.
            if (byte := payload[position]) < 0x80:
                length, position = ZIGZAG[byte], position + 1
            elif (second := payload[position + 1]) < 0x80:
                value = byte & 0x7F | second << 7
                length, position = (value >> 1) ^ -(value & 1), position + 2
            else:
                length, position = read_varint(payload, position)
            stop = position + length
            position += 1  # the attributes
            if (byte := payload[position]) < 0x80:
                timestamp_delta_ms, position = ZIGZAG[byte], position + 1
            else:
                timestamp_delta_ms, position = read_varint(payload, position)
            if (byte := payload[position]) < 0x80:
                offset_delta, position = ZIGZAG[byte], position + 1
            else:
                offset_delta, position = read_varint(payload, position)
            if (byte := payload[position]) < 0x80:
                key_bytes, position = ZIGZAG[byte], position + 1
            else:
                key_bytes, position = read_varint(payload, position)
            if key_bytes < 0:
                key = None
            else:
                key = payload[position : position + key_bytes]
                position += key_bytes
            value_bytes, position = read_varint(payload, position)
            if position + max(0, value_bytes) >= stop or stop > size:
                raise CorruptBatch(f"record at byte {start} of the payload exceeds its {length}")
            yield make((start, stop, timestamp_delta_ms, offset_delta, key, value_bytes >= 0))
            position = stop
    except IndexError:
        raise CorruptBatch(f"the payload ends within the record at byte {start}") from None
    if position != size:
        raise CorruptBatch(f"{size - position} bytes follow the last of {count} records")


def wrong_offset(header: BatchHeader, offset: int) -> CorruptBatch:
    """Return the error for a record whose offset does not rise, or is not one of its batch.

    A producer chooses the offset deltas in the payload. The map of offsets relies on them."""
    return CorruptBatch(
        f"a record has offset {offset}, its batch {header.base_offset} to {header.last_offset}"
    )


def joined(payload: Buffer, spans: Sequence[RecordSpan]) -> bytearray:
    """Return the bytes of these records, one after another. Adjacent spans are copied together."""
    out = bytearray()
    start = stop = 0
    for span in spans:
        if span.start != stop:
            out += payload[start:stop]
            start = span.start
        stop = span.stop
    out += payload[start:stop]
    return out


def moved(payload: Buffer, spans: Sequence[RecordSpan], delta_ms: int) -> bytearray:
    """Return the same records with `delta_ms` added to each timestamp delta."""
    out = bytearray()
    for span in spans:
        _, body = read_varint(payload, span.start)
        _, after = read_varint(payload, body + 1)
        timestamp = bytearray()
        write_varint(timestamp, span.timestamp_delta_ms + delta_ms)
        write_varint(out, 1 + len(timestamp) + span.stop - after)
        out += payload[body : body + 1]
        out += timestamp
        out += payload[after : span.stop]
    return out

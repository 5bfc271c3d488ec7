"""The records of an uncompressed payload as slices, for a filter that copies most of them unread.

A batch keeps its base offset when records are removed, so the bytes of a record that stays are
valid in the new batch. Only a new base timestamp changes them (`moved`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorate.quorum.log.batches.batch import BatchHeader, payload_of
from quorate.quorum.log.batches.compression import decompress
from quorate.quorum.log.batches.record import ZIGZAG, read_varint, write_varint
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.seams import Buffer

COPIED_BYTES = 1 << 20
"""A payload up to this size is copied, because Python reads `bytes` faster than a view. The copy of
a larger one would hold the interpreter's lock for milliseconds."""


RecordSpan = tuple[int, int, int, int, Buffer | None, bool]
"""One record: the start and the stop of its bytes in the payload, its length field included, its
timestamp delta in ms, its offset delta, its key, and True if it has a value. A plain tuple costs a
fifth of a named one."""
RECORDS_PER_STEP = 64
"""Records that one step looks at, in about a twentieth of a millisecond. The event loop may have to
wait that long for the interpreter's lock."""


def payload_to_read(batch: Buffer, header: BatchHeader) -> Buffer:
    """Return the uncompressed payload of a batch. Block. Raise CorruptBatch."""
    payload = payload_of(memoryview(batch), 0, header)
    if header.codec:
        return decompress(header.codec, payload)
    return bytes(payload) if len(payload) <= COPIED_BYTES else payload


def spans_of(payload: Buffer, count: int) -> Iterator[list[RecordSpan]]:
    """Yield the spans of `count` records, RECORDS_PER_STEP in each list. Headers are not read.

    Raise CorruptBatch if a record does not fit, or if the payload does not end behind the last
    record. Lists before the fault have been yielded by then."""
    if count < 0:
        raise CorruptBatch(f"the batch states {count} records")
    position, start, size = 0, 0, len(payload)
    key: Buffer | None
    try:
        for first in range(0, count, RECORDS_PER_STEP):
            spans: list[RecordSpan] = []
            for _ in range(min(RECORDS_PER_STEP, count - first)):
                start = position
                # Nearly all numbers have one or two bytes. These need no call.
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
                elif (second := payload[position + 1]) < 0x80:
                    value = byte & 0x7F | second << 7
                    offset_delta, position = (value >> 1) ^ -(value & 1), position + 2
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
                if (byte := payload[position]) < 0x80:
                    value_bytes, position = ZIGZAG[byte], position + 1
                elif (second := payload[position + 1]) < 0x80:
                    value = byte & 0x7F | second << 7
                    value_bytes, position = (value >> 1) ^ -(value & 1), position + 2
                else:
                    value_bytes, position = read_varint(payload, position)
                if position + (value_bytes if value_bytes > 0 else 0) >= stop or stop > size:
                    raise CorruptBatch(
                        f"record at byte {start} of the payload exceeds its {length}"
                    )
                spans.append((start, stop, timestamp_delta_ms, offset_delta, key, value_bytes >= 0))
                position = stop
            yield spans
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
    for begin, end, *_ in spans:
        if begin != stop:
            out += payload[start:stop]
            start = begin
        stop = end
    out += payload[start:stop]
    return out


def moved(payload: Buffer, spans: Sequence[RecordSpan], delta_ms: int) -> bytearray:
    """Return the same records with `delta_ms` added to each timestamp delta."""
    out = bytearray()
    for start, stop, timestamp_delta_ms, *_ in spans:
        _, body = read_varint(payload, start)
        _, after = read_varint(payload, body + 1)
        timestamp = bytearray()
        write_varint(timestamp, timestamp_delta_ms + delta_ms)
        write_varint(out, 1 + len(timestamp) + stop - after)
        out += payload[body : body + 1]
        out += timestamp
        out += payload[after:stop]
    return out

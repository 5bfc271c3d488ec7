"""The records inside a batch: encode and decode of an uncompressed payload.

A record is `length, attributes, timestamp delta, offset delta, key, value, headers`. All numbers
are zigzag varints (Kafka's record format v2). Keys and values are slices of the given payload:
views of a view, bytes of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.seams import Buffer

MAX_VARINT_BYTES = 10
NULL = 0x01  # length -1
ODD_OR_LONG = 0x81  # of a length: negative, or more than one byte
INT32_RANGE = range(-(2**31), 2**31)
INT64_RANGE = range(-(2**63), 2**63)
ONE_BYTE_DELTA_MS = 64
"""No timestamp delta of one byte is larger, in either direction."""
ZIGZAG = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))


class Record(NamedTuple):
    """One record with its absolute offset and timestamp."""

    offset: int
    timestamp_ms: int
    key: Buffer | None
    value: Buffer | None
    headers: tuple[tuple[str, Buffer | None], ...] = ()


def encode_records(records: Sequence[Record]) -> bytearray:
    """Return the payload of at least one record. Offsets must rise; deltas count from the first
    record."""
    out = bytearray()
    base_offset, base_timestamp_ms = records[0].offset, records[0].timestamp_ms
    for record in records:
        body = bytearray(b"\x00")
        write_varint(body, record.timestamp_ms - base_timestamp_ms)
        write_varint(body, record.offset - base_offset)
        write_bytes(body, record.key)
        write_bytes(body, record.value)
        write_varint(body, len(record.headers))
        for name, value in record.headers:
            write_bytes(body, name.encode())
            write_bytes(body, value)
        write_varint(out, len(body))
        out += body
    return out


def decode_records(
    payload: Buffer, count: int, base_offset: int, base_timestamp_ms: int
) -> Iterator[Record]:
    """Yield `count` records of a payload. Record attributes are ignored.

    Raise CorruptBatch if the payload is not `count` whole records, or if a number leaves its range:
    timestamps are int64, offset deltas int32. A base timestamp within ONE_BYTE_DELTA_MS of the
    limits of int64 is also refused. Records before the fault have been yielded by then."""
    if count < 0:
        raise CorruptBatch(f"the batch states {count} records")
    if not (
        base_timestamp_ms - ONE_BYTE_DELTA_MS in INT64_RANGE
        and base_timestamp_ms + ONE_BYTE_DELTA_MS in INT64_RANGE
    ):
        raise CorruptBatch(f"base timestamp {base_timestamp_ms} leaves no room for deltas")
    position = 0
    make = Record._make
    key: Buffer | None
    value: Buffer | None
    headers: tuple[tuple[str, Buffer | None], ...]
    try:
        for _ in range(count):
            # Nearly all numbers have one byte. A table decodes these without a call.
            if (byte := payload[position]) < 0x80:
                length, position = ZIGZAG[byte], position + 1
            else:
                length, position = read_varint(payload, position)
            end = position + length
            position += 1  # no attributes yet
            if (byte := payload[position]) < 0x80:
                timestamp_delta_ms, position = ZIGZAG[byte], position + 1
            else:
                timestamp_delta_ms, position = read_varint(payload, position)
                if base_timestamp_ms + timestamp_delta_ms not in INT64_RANGE:
                    raise CorruptBatch(f"timestamp before byte {position} exceeds int64")
            if (byte := payload[position]) < 0x80:
                offset_delta, position = ZIGZAG[byte], position + 1
            else:
                offset_delta, position = read_varint(payload, position)
                if offset_delta not in INT32_RANGE:
                    raise CorruptBatch(f"offset delta before byte {position} exceeds int32")
            if (byte := payload[position]) == NULL:
                key, position = None, position + 1
            else:
                key, position = _read_bytes(payload, position)
            if not (byte := payload[position]) & ODD_OR_LONG:
                start = position + 1
                position = start + ZIGZAG[byte]
                value = payload[start:position]
            else:
                value, position = _read_bytes(payload, position)
            if payload[position]:
                headers, position = _read_headers(payload, *read_varint(payload, position))
            else:
                headers, position = (), position + 1
            if position != end:
                raise CorruptBatch(f"record ends at byte {position} of the payload, not at {end}")
            timestamp_ms = base_timestamp_ms + timestamp_delta_ms
            yield make((base_offset + offset_delta, timestamp_ms, key, value, headers))
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptBatch(f"record near byte {position} of the payload: {error}") from error
    if position != len(payload):
        raise CorruptBatch(f"{len(payload) - position} bytes follow the last of {count} records")


def write_varint(out: bytearray, value: int) -> None:
    """Append a number as zigzag varint."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_varint(payload: Buffer, position: int) -> tuple[int, int]:
    """Return the zigzag varint at `position` and the position after it.

    Raise CorruptBatch if it is longer than MAX_VARINT_BYTES, IndexError if the payload ends within
    it."""
    byte = payload[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value = byte & 0x7F
    for shift in range(7, 7 * MAX_VARINT_BYTES, 7):
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise CorruptBatch(f"varint before byte {position} is longer than {MAX_VARINT_BYTES} bytes")


def write_bytes(out: bytearray, value: Buffer | None) -> None:
    """Append a length and the bytes, or the length -1 for None."""
    if value is None:
        out.append(1)
        return
    write_varint(out, len(value))
    out += value


def _read_bytes(payload: Buffer, position: int) -> tuple[Buffer | None, int]:
    length, position = read_varint(payload, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(payload):
        raise CorruptBatch(f"field of {length} bytes at {position} exceeds the payload")
    return payload[position:end], end


def _read_headers(
    payload: Buffer, count: int, position: int
) -> tuple[tuple[tuple[str, Buffer | None], ...], int]:
    if not 0 <= count <= len(payload) - position:
        raise CorruptBatch(f"{count} headers at byte {position} do not fit the payload")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(payload, position)
        if name is None:
            raise CorruptBatch(f"header without a name before byte {position} of the payload")
        value, position = _read_bytes(payload, position)
        headers.append((bytes(name).decode(), value))
    return tuple(headers), position

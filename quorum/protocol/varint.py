"""Kafka's unsigned varints (protobuf's: seven bits a byte, lowest first)."""

from __future__ import annotations

from quorate.quorum.seams import Buffer, ProtocolError

MAX_UVARINT_BYTES = 5


class DecodeError(ProtocolError):
    """The bytes are not what the schema says: truncated, a length out of bounds, not UTF-8."""


class EncodeError(ValueError):
    """A value does not fit the schema of that version; a fault of ours, not of the other end."""


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """(value, position after it); an IndexError at the buffer's end is the caller's to name."""
    value = 0
    for shift in range(0, 7 * MAX_UVARINT_BYTES, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise DecodeError(f"varint at {position - MAX_UVARINT_BYTES} is longer than 5 bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)

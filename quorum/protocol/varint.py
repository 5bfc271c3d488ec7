"""Kafka's unsigned varints: seven bits per byte, the lowest first, as in protobuf."""

from __future__ import annotations

from quorate.quorum.seams import Buffer, ProtocolError

MAX_UVARINT_BYTES = 5


class DecodeError(ProtocolError):
    """The bytes do not match the schema: truncated, a length out of bounds, or invalid UTF-8.

    As a ProtocolError it closes the peer's link."""


class EncodeError(ValueError):
    """A value does not fit the schema of the version that is written. This is a defect of this
    node, not of its peer."""


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return the value, which may have up to 35 bits, and the position after it.

    Raise DecodeError if the varint has more than five bytes. Raise IndexError if the buffer ends in
    it; the caller turns it into a DecodeError."""
    value = 0
    for shift in range(0, 7 * MAX_UVARINT_BYTES, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise DecodeError(f"varint at {position - MAX_UVARINT_BYTES} is longer than 5 bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    """Append `value`, which is not negative, to `out`."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)

"""Kafka's unsigned varints: seven bits per byte, the lowest bits first, as in protobuf.

The module also defines the two errors of all codecs."""

from __future__ import annotations

from quorate.quorum.seams import Buffer, ProtocolError

MAX_UVARINT_BYTES = 5
"""The bytes of the longest varint. Kafka's lengths and tags have at most 32 bits."""


class DecodeError(ProtocolError):
    """The bytes do not match the schema: they are truncated, a length is out of bounds, or a string
    is not UTF-8.

    If a peer sent the bytes, the receiver closes the link, as for every ProtocolError."""


class EncodeError(ValueError):
    """A value does not fit the schema of the version that is written. This is a defect of this
    node, not of its peer."""


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return the value, which is not negative, and the position after it.

    The value may have up to 35 bits, because the unused bits of the fifth byte are not checked.
    Raise DecodeError if the varint has more than five bytes. Raise IndexError if the buffer ends
    within it. The caller must turn the IndexError into a DecodeError."""
    value = buffer[position]
    position += 1
    if value < 0x80:  # nearly all
        return value, position
    value &= 0x7F
    for shift in range(7, 7 * MAX_UVARINT_BYTES, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise DecodeError(f"varint at {position - MAX_UVARINT_BYTES} is longer than 5 bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    """Append `value` to `out`. Raise ValueError if it is negative. The caller makes sure that it
    has at most 35 bits, because readers refuse a longer varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)

"""The headers of requests and responses, read and written by hand because they precede every
message.

The client id is a classic string in every version (KIP-482), and the first eight bytes never
change. The API, version and correlation id of every request can therefore be read.
"""

from __future__ import annotations

import struct

from quorate.quorum.protocol.field_bounds import CLIENT_ID, MAX_TAGGED_FIELDS
from quorate.quorum.protocol.varint import DecodeError, read_uvarint
from quorate.quorum.seams import Buffer

_FIXED = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")
FIXED_BYTES = 8
"""The bytes of the API key, the version and the correlation id of a request."""


def read_fixed(frame: Buffer) -> tuple[int, int, int]:
    """Return the API key, the version and the correlation id. Raise DecodeError for a shorter
    frame."""
    if len(frame) < FIXED_BYTES:
        raise DecodeError(f"a request of {len(frame)} bytes is shorter than its header")
    api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
    return api_key, version, correlation_id


def read_client_id(frame: Buffer, header_version: int) -> tuple[str | None, int]:
    """Return the client id or None, and the position of the body in the frame.

    `header_version` is that of `Api.request_header_version`. Raise DecodeError if the header is cut
    off, the client id is too long or not UTF-8, or the tagged fields are malformed."""
    try:
        (length,) = struct.unpack_from(">h", frame, FIXED_BYTES)
        position = FIXED_BYTES + 2
        client_id = None
        if length >= 0:
            if length > CLIENT_ID.limit:
                raise DecodeError(f"a client id of {length} bytes, at most {CLIENT_ID.limit}")
            if position + length > len(frame):
                raise DecodeError(f"a client id of {length} bytes in a request of {len(frame)}")
            client_id = str(frame[position : position + length], "utf-8")
            position += length
        return client_id, skip_tags(frame, position) if header_version >= 2 else position
    except (IndexError, struct.error):
        raise DecodeError(f"a request of {len(frame)} bytes ends in its header") from None
    except UnicodeDecodeError as error:
        raise DecodeError(f"the client id is not UTF-8: {error}") from None


def skip_tags(buffer: Buffer, position: int) -> int:
    """Return the position after a section of tagged fields, whose contents are ignored.

    Raise DecodeError if it is malformed, or IndexError if the buffer ends in it."""
    count, position = read_uvarint(buffer, position)
    if count > MAX_TAGGED_FIELDS:
        raise DecodeError(f"{count} tagged fields, at most {MAX_TAGGED_FIELDS}")
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
        if position > len(buffer):
            raise DecodeError(f"a tagged field of {size} bytes runs over the end at {len(buffer)}")
    return position


def request_header(
    api_key: int, version: int, correlation_id: int, client_id: str, header_version: int
) -> bytes:
    """Return the header of a request. `header_version` is that of `Api.request_header_version`."""
    name = client_id.encode()
    head = _FIXED.pack(api_key, version, correlation_id, len(name)) + name
    return head + b"\x00" if header_version >= 2 else head


def response_header(correlation_id: int, header_version: int) -> bytes:
    """Return the header of a response. `header_version` is that of
    `Api.response_header_version`."""
    head = _CORRELATION.pack(correlation_id)
    return head + b"\x00" if header_version >= 1 else head


def read_correlation_id(frame: Buffer) -> int:
    """Return the correlation id of a response. Raise DecodeError if the frame is too short."""
    if len(frame) < _CORRELATION.size:
        raise DecodeError(f"a response of {len(frame)} bytes is shorter than its header")
    correlation_id: int = _CORRELATION.unpack_from(frame)[0]
    return correlation_id


def response_body(frame: memoryview, header_version: int) -> memoryview:
    """Return the body of a response. Raise DecodeError if the frame ends in its header."""
    try:
        return frame[skip_tags(frame, _CORRELATION.size) if header_version >= 1 else 4 :]
    except IndexError:
        raise DecodeError(f"a response of {len(frame)} bytes ends in its header") from None

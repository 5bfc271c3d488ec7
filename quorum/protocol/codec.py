"""Encodes and decodes declared messages and records, with readers and writers compiled on first
use.

`encode` and `decode` find the first flexible version of a request or response by its `API_KEY`. All
other classes, metadata and control records, are always flexible. `reader` and `writer` work inside
larger buffers.

`decode` ignores trailing bytes, as Kafka does. It never copies `bytes` and `records` out of the
buffer. Malformed bytes raise DecodeError. A message that does not fit the schema of that version,
for example because of null where it is not allowed, raises EncodeError. A request or a record whose
declaration lacks a bound raises TypeError on first use.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.apis import is_flexible
from quorate.quorum.protocol.incremental_reader_compiler import (
    ReadInSteps,
    compile_reader_in_steps,
)
from quorate.quorum.protocol.reader_compiler import Read, compile_reader
from quorate.quorum.protocol.varint import DecodeError, EncodeError
from quorate.quorum.protocol.wire import Message
from quorate.quorum.protocol.writer_compiler import (
    SLICE_BYTES,
    Write,
    WriteInSteps,
    compile_writer,
    compile_writer_in_steps,
)
from quorate.quorum.seams import Buffer

__all__ = [
    "DecodeError",
    "EncodeError",
    "decode",
    "decode_steps",
    "encode",
    "encode_steps",
    "reader",
    "writer",
]

T = TypeVar("T")
M = TypeVar("M", bound=Message)


def encode(message: object, version: int) -> bytes:
    """Return `message` encoded in `version`. Raise EncodeError if it does not fit the schema."""
    out = bytearray()
    cls = type(message)
    writer(cls, version, flexible(cls, version))(out, message)
    return bytes(out)


def encode_steps(message: object, version: int) -> IncrementalWork[bytes]:
    """Encode like `encode`, but pause between two elements of an array when SLICE_BYTES of
    `writer_compiler.py` have been written since the last pause.

    A short message takes one step. The caller must not change the message between steps."""
    cls = type(message)
    write = steps_writer(cls, version, flexible(cls, version))
    out = bytearray()
    try:
        yield from write(out, message, [SLICE_BYTES])
    except _NOT_ENCODABLE as error:
        raise _not_encodable(cls, version, error) from error
    return bytes(out)


def decode(cls: type[T], version: int, buffer: Buffer, position: int = 0) -> T:
    """Return the message of class `cls` at `position`. Raise DecodeError if the bytes are
    malformed."""
    value: T
    value, _ = reader(cls, version, flexible(cls, version))(buffer, position)
    return value


def decode_steps(cls: type[M], version: int, buffer: Buffer) -> IncrementalWork[tuple[M, int]]:
    """Decode a request like `decode`, but pause between two elements of an array when SLICE_BYTES
    of `incremental_reader_compiler.py` have been read since the last pause.

    Return the message and the number of its array elements, at all levels. The elements of a
    response are not counted. The caller must not change the buffer between steps."""
    left = [cls.MAX_ELEMENTS, 0]
    read = steps_reader(cls, version, flexible(cls, version))
    try:
        message, _ = yield from read(buffer, 0, left)
    except _CUT_OFF:
        raise _cut_off(cls, version, buffer, 0) from None
    except UnicodeDecodeError as error:
        raise _no_utf8(cls, version, error) from None
    return message, cls.MAX_ELEMENTS - left[0]


def _flexible(cls: type, version: int) -> bool:
    return is_flexible(cls.API_KEY, version) if issubclass(cls, Message) else True


def _reader(cls: type, version: int, flexible: bool) -> Read:
    compiled = compile_reader(cls, version, flexible)

    def read(buffer: Buffer, position: int) -> tuple[object, int]:
        try:
            return compiled(buffer, position)
        except _CUT_OFF:
            raise _cut_off(cls, version, buffer, position) from None
        except UnicodeDecodeError as error:
            raise _no_utf8(cls, version, error) from None

    return read


_CUT_OFF = (IndexError, struct.error)


def _cut_off(cls: type, version: int, buffer: Buffer, position: int) -> DecodeError:
    return DecodeError(f"{cls.__name__} v{version} is cut off: {len(buffer)} bytes from {position}")


def _no_utf8(cls: type, version: int, error: UnicodeDecodeError) -> DecodeError:
    return DecodeError(f"{cls.__name__} v{version} contains invalid UTF-8: {error}")


def _writer(cls: type, version: int, flexible: bool) -> Write:
    compiled = compile_writer(cls, version, flexible)

    def write(out: bytearray, value: object) -> None:
        try:
            compiled(out, value)
        except _NOT_ENCODABLE as error:
            raise _not_encodable(cls, version, error) from error

    return write


# ValueError: a string that is too long, or that cannot be encoded as UTF-8.
_NOT_ENCODABLE = (struct.error, AttributeError, TypeError, ValueError)


def _not_encodable(cls: type, version: int, error: Exception) -> EncodeError:
    return EncodeError(f"{cls.__name__} v{version} cannot encode its value: {error}")


# Typed by hand, because mypy considers classes unhashable.
flexible: Callable[[type, int], bool] = cache(_flexible)
"""Returns True if a class is encoded with flexible lengths and tags in a version (KIP-482)."""
reader: Callable[[type, int, bool], Read] = cache(_reader)
"""Returns `read(buffer, position) -> (value, position after it)`, which raises DecodeError only."""
steps_reader: Callable[[type, int, bool], ReadInSteps] = compile_reader_in_steps
"""Returns the bare reader in steps, which also raises IndexError, struct.error and
UnicodeDecodeError for malformed bytes."""
steps_writer: Callable[[type, int, bool], WriteInSteps] = compile_writer_in_steps
"""Returns the bare writer in steps, whose errors are not EncodeError yet."""
writer: Callable[[type, int, bool], Write] = cache(_writer)
"""Returns `write(out, value)`, which appends to `out`. If it raises EncodeError, `out` may hold a
part of the value."""

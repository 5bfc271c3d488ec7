"""Bytes from and to declared messages and records, by readers and writers compiled on first use.

`encode` and `decode` know a request or response by its `API_KEY`, and so from which version on it
is flexible; everything else (metadata and control records) always is. `reader` and `writer` work
inside larger buffers.

`decode` tolerates trailing bytes, as Kafka does; it never copies `bytes` and `records` out of the
buffer. Whatever is wrong with the bytes is a `DecodeError`; a message that the schema cannot say in
that version (too long a string, null where it is not allowed) is an `EncodeError`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import TypeVar

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
from quorate.quorum.steps import Steps

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
    out = bytearray()
    cls = type(message)
    writer(cls, version, flexible(cls, version))(out, message)
    return bytes(out)


def encode_steps(message: object, version: int) -> Steps[bytes]:
    """Encode like `encode`, but pause after every SLICE_BYTES of an array's elements.

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
    value: T
    value, _ = reader(cls, version, flexible(cls, version))(buffer, position)
    return value


def decode_steps(cls: type[M], version: int, buffer: Buffer) -> Steps[tuple[M, int]]:
    """Decode like `decode`, but pause after every SLICE_BYTES of an array's elements.

    Return the message and the number of its array's elements, at all levels. The caller must not
    change the buffer between steps."""
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
    return DecodeError(f"{cls.__name__} v{version} holds no UTF-8: {error}")


def _writer(cls: type, version: int, flexible: bool) -> Write:
    compiled = compile_writer(cls, version, flexible)

    def write(out: bytearray, value: object) -> None:
        try:
            compiled(out, value)
        except _NOT_ENCODABLE as error:
            raise _not_encodable(cls, version, error) from error

    return write


# ValueError: a string that is too long, or that is no UTF-8.
_NOT_ENCODABLE = (struct.error, AttributeError, TypeError, ValueError)


def _not_encodable(cls: type, version: int, error: Exception) -> EncodeError:
    return EncodeError(f"{cls.__name__} v{version} cannot say its value: {error}")


# Typed by hand, because mypy takes classes for unhashable.
flexible: Callable[[type, int], bool] = cache(_flexible)
reader: Callable[[type, int, bool], Read] = cache(_reader)
"""`read(buffer, position) -> (value, position after it)`; it raises DecodeError only."""
steps_reader: Callable[[type, int, bool], ReadInSteps] = compile_reader_in_steps
steps_writer: Callable[[type, int, bool], WriteInSteps] = compile_writer_in_steps
writer: Callable[[type, int, bool], Write] = cache(_writer)
"""`write(out, value)` appends; when it raises EncodeError, `out` is left with a part of it."""

"""A file as a stream of its expanded bytes, with a bounded part of it in memory.

The file may be compressed by gzip, bzip2 or xz. The bytes of any other file are returned as they
are.

The stream only moves forward, except within the last WINDOW_BYTES, which is enough for the reader
of tar archives. A read of more than MAX_READ_BYTES is refused, because that reader takes the length
of an extended header from the archive and would hold the whole header in memory."""

from __future__ import annotations

import bz2
import lzma
import os
import zlib
from typing import IO, Protocol

MAX_READ_BYTES = 4 << 20
"""The most bytes that one call of `DecompressedStream.read` returns."""
WINDOW_BYTES = 64 << 10
"""The number of bytes before the position that stay in memory."""
STEP_BYTES = 256 << 10
"""The most bytes that one step reads, and the most that it expands."""
MAX_LZMA_BYTES = 256 << 20
"""The most memory for the dictionary of an .xz archive; `xz -9` needs 65 MiB."""

_GZIP = 31  # zlib's window bits for a gzip stream


class StreamTooLarge(Exception):
    """A read asks for more bytes than allowed, or the file expands to more bytes than allowed."""


class Decompressor(Protocol):
    """An incremental decompressor, whose output per step is bounded."""

    @property
    def eof(self) -> bool:
        """Return True if the compressed stream has ended."""
        ...

    @property
    def unused_data(self) -> bytes:
        """Return the bytes after the end of the compressed stream."""
        ...

    def expand(self, data: bytes) -> bytes:
        """Return at most STEP_BYTES of expanded data.

        With b"", continue with the data given before."""

    @property
    def needs_input(self) -> bool:
        """Return True if `expand` needs more compressed bytes to return anything."""
        ...


class _Plain:
    eof = False
    unused_data = b""
    needs_input = True

    def expand(self, data: bytes) -> bytes:
        return data


class _Zlib:
    def __init__(self) -> None:
        self._object = zlib.decompressobj(_GZIP)

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._object.unconsumed_tail

    def expand(self, data: bytes) -> bytes:
        return self._object.decompress(self._object.unconsumed_tail + data, STEP_BYTES)


class _Other:
    """The decompressor of bzip2 or xz."""

    def __init__(self, made: bz2.BZ2Decompressor | lzma.LZMADecompressor) -> None:
        self._object = made

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data

    @property
    def needs_input(self) -> bool:
        return self._object.needs_input

    def expand(self, data: bytes) -> bytes:
        return self._object.decompress(data, STEP_BYTES)


def _decompressor(head: bytes) -> Decompressor:
    if head.startswith(b"\x1f\x8b"):
        return _Zlib()
    if head.startswith(b"BZh"):
        return _Other(bz2.BZ2Decompressor())
    if head.startswith(b"\xfd7zXZ\0"):
        return _Other(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_LZMA_BYTES))
    return _Plain()


class DecompressedStream:
    """The expanded bytes of a file with the methods that `tarfile` needs: read, seek, tell."""

    def __init__(self, file: IO[bytes], max_bytes: int) -> None:
        """Detect the compression from the first bytes. `max_bytes` bounds all expanded bytes."""
        self._file = file
        head = file.read(6)
        file.seek(0)
        self._decompressor = _decompressor(head)
        self._compressed = not isinstance(self._decompressor, _Plain)
        self._left_bytes = max_bytes
        self._buffer = b""
        self._start = 0
        """The position of the buffer's first byte."""
        self._position = 0
        self._ended = False

    def tell(self) -> int:
        """Return the position in the expanded bytes."""
        return self._position

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        """Move to `position`, or to the end if the stream is shorter. Return the new position.

        Raise ValueError if `position` is before the window, or `whence` is not SEEK_SET. Raise as
        `read` does if bytes must be expanded."""
        if whence != os.SEEK_SET or position < self._start:
            raise ValueError(f"the archive cannot be read backwards, from byte {position}")
        while self._start + len(self._buffer) < position and self._fill():
            self._trim()
        self._position = min(position, self._start + len(self._buffer))
        return self._position

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end.

        Raise StreamTooLarge if `size` or the expanded bytes exceed their bound, and EOFError if the
        file is cut off. Raise the error of the decompressor (zlib.error, lzma.LZMAError or OSError)
        if the data is damaged or an .xz dictionary is too large."""
        if not 0 <= size <= MAX_READ_BYTES:
            raise StreamTooLarge(
                f"one of its parts has {size} bytes, more than {MAX_READ_BYTES}. Unpack it "
                "yourself if you trust it, and give the directory"
            )
        end = self._position + size
        while self._start + len(self._buffer) < end and self._fill():
            pass
        begin = self._position - self._start
        data = self._buffer[begin : begin + size]
        self._position += len(data)
        self._trim()
        return data

    def close(self) -> None:
        """Do nothing, because the caller closes the file."""

    def _trim(self) -> None:
        end = min(self._position, self._start + len(self._buffer))
        if not self._buffer or self._position >= self._start + len(self._buffer):
            end = self._start + len(self._buffer)
        surplus = end - self._start - WINDOW_BYTES
        if surplus > 0:
            self._buffer = self._buffer[surplus:]
            self._start += surplus

    def _fill(self) -> bool:
        """Expand some more bytes into the buffer. Return False at the end.

        Raise StreamTooLarge if the stream exceeds its bound, EOFError if it is cut off."""
        more = b""
        while not more and not self._ended:
            more = self._step()
        self._left_bytes -= len(more)
        if self._left_bytes < 0:
            raise StreamTooLarge(
                "it expands to more bytes than allowed. Unpack it yourself if you trust it, and "
                "give the directory"
            )
        self._buffer += more
        return bool(more)

    def _step(self) -> bytes:
        decompressor = self._decompressor
        data = b""
        if decompressor.eof:
            data = decompressor.unused_data or self._file.read(STEP_BYTES)
            if not data.strip(b"\0"):
                self._ended = True
                return b""
            decompressor = self._decompressor = _decompressor(data)
        elif decompressor.needs_input:
            data = self._file.read(STEP_BYTES)
            if not data:
                self._ended = True
                if self._compressed:
                    raise EOFError("the file ends within its compressed data")
                return b""
        return decompressor.expand(data)

"""Kafka's compression codecs over whole payloads, with a bound on the size of the result.

A few bytes can claim gigabytes: 33 KB of zstd expand to 2.1 GB. Every reader therefore decompresses
into a buffer of its own, which grows in steps up to `largest(payload)`. A payload that does not fit
raises CorruptBatch before memory beyond the bound is written. Kafka itself has no such bound.

cramjam is imported when the first compressed batch is met. It releases the interpreter's lock while
it works. A caller may therefore decompress in another thread while the event loop runs on.
"""

from __future__ import annotations

import enum
import struct
import zlib
from typing import Any, NamedTuple

from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.seams import Buffer

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES = len(XERIAL_MAGIC) + 8
XERIAL_BLOCK_BYTES = 32 * 1024
INT32 = struct.Struct(">i")

MAX_DECOMPRESSED_BYTES = 64 << 20
"""The bound for the payload of one batch."""
LARGE_PAYLOAD_RATIO = 4
"""A payload above a quarter of the bound may expand to this many times its size, because the
max.message.bytes of a topic may itself exceed the bound."""
FIRST_STEP_BYTES = 16 * 1024
"""The least size of the first output buffer. If it is full, one STEP_FACTOR times as large is
tried."""
STEP_FACTOR = 4
_SENTINEL = b"\x9d\x1b\xe7\x43\xf8\x06\xc5\x7a"
"""See `_fill`. A producer that ends its content with these bytes, exactly at the end of the output,
makes only its own batch unreadable."""
GZIP_MEMBERS_BYTES = 64 * 1024
"""`decompress_beginning` reads only the first member of a longer gzip payload, because many small
members cost microseconds each."""
XERIAL_SMALL_BLOCKS = 64
XERIAL_AVERAGE_BLOCK_BYTES = 256
"""Above XERIAL_SMALL_BLOCKS blocks, snappy blocks must have this average size. Even blocks of zeros
do."""


class Codec(enum.IntEnum):
    """Kafka's compression codecs. The numbers are the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


DEFAULT_LEVELS = {Codec.GZIP: 6, Codec.ZSTD: 3}
"""The levels that Kafka uses by default."""


class Decompressed(NamedTuple):
    """The beginning of a payload, or all of it if `whole`."""

    data: Buffer
    whole: bool


class ExpandsTooFar(CorruptBatch):
    """The payload expands to more bytes than the caller allows."""


class _Full(Exception):
    """The output does not fit into the buffer."""


def compress(codec: Codec, payload: Buffer) -> bytes:
    """Return the payload as Kafka's clients write it with this codec."""
    if codec is Codec.NONE:
        return bytes(payload)
    if codec is Codec.SNAPPY:
        return _snappy_blocks(payload)
    if codec is Codec.LZ4:
        return _lz4_frame(payload)
    return bytes(_module(codec).compress(payload))


def compressor(codec: Codec, level: int | None) -> Any:
    """Return a writer for gzip, lz4 or zstd, with the methods `compress` and `finish` of cramjam.

    None is the default level of Kafka."""
    if codec is Codec.LZ4:
        levels = {} if level is None else {"level": level}
        # Kafka's reader rejects dependent blocks.
        return _cramjam().lz4.Compressor(content_checksum=False, block_linked=False, **levels)
    return _module(codec).Compressor(level=DEFAULT_LEVELS[codec] if level is None else level)


def largest(payload: Buffer) -> int:
    """Return the number of bytes to which this compressed payload may expand, before it is
    rejected."""
    return max(MAX_DECOMPRESSED_BYTES, LARGE_PAYLOAD_RATIO * len(payload))


def decompress(codec: int, payload: Buffer, max_bytes: int | None = None) -> Buffer:
    """Return the decompressed payload. The call blocks; see the module's docstring.

    For codec 0 that is `payload` itself, whatever its size. Raise CorruptBatch if the payload is
    not valid for the codec, and ExpandsTooFar if it expands to more than `max_bytes`
    (`largest(payload)` if None)."""
    if codec == Codec.NONE:
        return payload
    known = known_codec(codec)
    limit = largest(payload) if max_bytes is None else max_bytes
    try:
        if known is Codec.SNAPPY:
            return _from_snappy(payload, limit)
        size = min(limit, max(FIRST_STEP_BYTES, STEP_FACTOR * len(payload)))
        while True:
            try:
                return _within(known, payload, size)
            except _Full:
                if size == limit:
                    raise
                size = min(limit, size * STEP_FACTOR)
    except _Full:
        raise ExpandsTooFar(
            f"{known.name} payload of {len(payload)} bytes expands to more than {limit} bytes"
        ) from None


def decompress_beginning(codec: int, payload: Buffer, max_bytes: int) -> Decompressed:
    """Return the first `max_bytes` of the decompressed payload, or all of it if it is not longer.

    The codec must not be 0. The result may be shorter: of snappy it holds only whole blocks,
    perhaps none, and of a long gzip payload only the first member. `whole` is then False. It may
    also be False for a long gzip payload of exactly `max_bytes`. Raise CorruptBatch if the
    decompressed part is not valid for the codec."""
    known = known_codec(codec)
    if known is Codec.SNAPPY:
        return _beginning_of_snappy(payload, max_bytes)
    if known is Codec.GZIP and len(payload) > GZIP_MEMBERS_BYTES:
        return _beginning_of_gzip(payload, max_bytes)
    output = bytearray(max_bytes + len(_SENTINEL))
    try:
        data = _fill(known, payload, output)
    except _Full:
        data = memoryview(output)
    return Decompressed(data[:max_bytes], len(data) <= max_bytes)


def known_codec(codec: int) -> Codec:
    """Return the codec of this number. Raise CorruptBatch if Kafka has no such codec."""
    try:
        return Codec(codec)
    except ValueError:
        raise CorruptBatch(f"compression codec {codec} does not exist: Kafka has 0 to 4") from None


def _within(codec: Codec, payload: Buffer, size: int) -> Buffer:
    """Decompress into `size` bytes. Raise _Full if the output is larger."""
    data = _fill(codec, payload, bytearray(size + len(_SENTINEL)))
    if len(data) > size:
        raise _Full
    return data


def _fill(codec: Codec, payload: Buffer, output: bytearray) -> Buffer:
    """Decompress into `output` and return the part that was written.

    cramjam reports damage and a full output by the same exception. A sentinel at the end of the
    output distinguishes them: the last bytes change only if the output was written to its end."""
    end = len(output) - len(_SENTINEL)
    output[end:] = _SENTINEL
    try:
        written = _module(codec).decompress_into(payload, output)
    except (_cramjam().DecompressionError, ValueError) as error:
        if output[end:] != _SENTINEL:
            raise _Full from None
        raise _broken(codec, payload, error) from error
    return memoryview(output)[:written]


def _beginning_of_gzip(payload: Buffer, max_bytes: int) -> Decompressed:
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        data = reader.decompress(payload, max_bytes)
    except zlib.error as error:
        raise _broken(Codec.GZIP, payload, error) from error
    return Decompressed(data, reader.eof and not reader.unused_data)


def _broken(codec: Codec, payload: Buffer, error: object) -> CorruptBatch:
    return CorruptBatch(
        f"{codec.name} payload of {len(payload)} bytes cannot be decompressed: {error}"
    )


def _cramjam() -> Any:
    import cramjam

    return cramjam


def _module(codec: Codec) -> Any:
    return getattr(_cramjam(), codec.name.lower())


def _lz4_frame(payload: Buffer) -> bytes:
    """Return an lz4 frame of independent blocks."""
    frame = compressor(Codec.LZ4, None)
    frame.compress(bytes(payload))
    return bytes(frame.finish())


# -- snappy ----------------------------------------------------------------------------------------


def _snappy_blocks(payload: Buffer) -> bytes:
    """Return the framing of xerial's SnappyOutputStream, which Kafka's clients read and write."""
    view = memoryview(payload)
    raw = _cramjam().snappy
    parts = [XERIAL_MAGIC, INT32.pack(1), INT32.pack(1)]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(raw.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        parts += (INT32.pack(len(block)), block)
    return b"".join(parts)


def snappy_blocks(payload: Buffer) -> list[tuple[memoryview, int]]:
    """Return each block with the size that it declares; a payload without framing is one block.

    Raise CorruptBatch if the framing does not cover the payload."""
    view = memoryview(payload)
    raw = _cramjam().snappy
    try:
        if view[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
            return [(view, raw.decompress_raw_len(view))]
        if len(view) < XERIAL_HEADER_BYTES:
            raise ValueError("the framing's header is cut")
        blocks: list[tuple[memoryview, int]] = []
        most_blocks = XERIAL_SMALL_BLOCKS + len(view) // XERIAL_AVERAGE_BLOCK_BYTES
        position = XERIAL_HEADER_BYTES
        while position < len(view):
            if len(blocks) == most_blocks:
                raise ValueError(f"more than {most_blocks} blocks, most of them almost empty")
            (size,) = INT32.unpack_from(view, position)
            position += INT32.size
            if size <= 0 or position + size > len(view):
                raise ValueError(f"block of {size} bytes at {position} exceeds the payload")
            block = view[position : position + size]
            blocks.append((block, raw.decompress_raw_len(block)))
            position += size
        return blocks
    except (_cramjam().DecompressionError, ValueError, struct.error) as error:
        raise _broken(Codec.SNAPPY, payload, error) from error


def _from_snappy(payload: Buffer, limit: int) -> Buffer:
    blocks = snappy_blocks(payload)
    if sum(size for _, size in blocks) > limit:
        raise _Full
    return _joined(payload, blocks)


def _beginning_of_snappy(payload: Buffer, max_bytes: int) -> Decompressed:
    blocks = snappy_blocks(payload)
    fitting, size_bytes = 0, 0
    while fitting < len(blocks) and size_bytes + blocks[fitting][1] <= max_bytes:
        size_bytes += blocks[fitting][1]
        fitting += 1
    return Decompressed(_joined(payload, blocks[:fitting]), fitting == len(blocks))


def _joined(payload: Buffer, blocks: list[tuple[memoryview, int]]) -> Buffer:
    """Decompress these blocks, whose declared sizes are bounded already."""
    raw = _cramjam().snappy
    try:
        parts = [bytes(raw.decompress_raw(block)) for block, _ in blocks]
    except (_cramjam().DecompressionError, ValueError) as error:
        raise _broken(Codec.SNAPPY, payload, error) from error
    return parts[0] if len(parts) == 1 else b"".join(parts)

"""Kafka's compression codecs over whole payloads. cramjam is imported when the first one is met."""

from __future__ import annotations

import enum
import struct
from typing import Any

from quorate.quorum.log.errors import CorruptBatch
from quorate.quorum.seams import Buffer

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES = len(XERIAL_MAGIC) + 8
XERIAL_BLOCK_BYTES = 32 * 1024
INT32 = struct.Struct(">i")


class Codec(enum.IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, payload: Buffer) -> bytes:
    if codec is Codec.NONE:
        return bytes(payload)
    if codec is Codec.SNAPPY:
        return _snappy_blocks(payload)
    if codec is Codec.LZ4:
        return _lz4_frame(payload)
    return bytes(_module(codec).compress(payload))


def decompress(codec: int, payload: Buffer) -> Buffer:
    """CorruptBatch when `payload` is not what the codec wrote."""
    if codec == Codec.NONE:
        return payload
    try:
        known = Codec(codec)
    except ValueError:
        raise CorruptBatch(f"compression codec {codec} does not exist: Kafka has 0 to 4") from None
    cramjam = _cramjam()
    try:
        if known is Codec.SNAPPY:
            return _from_snappy(payload)
        return bytes(_module(known).decompress(payload))
    except (cramjam.DecompressionError, ValueError, struct.error) as error:
        raise CorruptBatch(f"{known.name} payload of {len(payload)} bytes: {error}") from error


def _cramjam() -> Any:
    import cramjam

    return cramjam


def _module(codec: Codec) -> Any:
    return getattr(_cramjam(), codec.name.lower())


def _lz4_frame(payload: Buffer) -> bytes:
    """Kafka's reader refuses blocks that depend on one another ("Dependent block stream")."""
    frame = _cramjam().lz4.Compressor(content_checksum=False, block_linked=False)
    frame.compress(bytes(payload))
    return bytes(frame.finish())


def _snappy_blocks(payload: Buffer) -> bytes:
    """The framing of xerial's SnappyOutputStream, which is what Kafka's clients read and write."""
    view = memoryview(payload)
    raw = _cramjam().snappy
    parts = [XERIAL_MAGIC, INT32.pack(1), INT32.pack(1)]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(raw.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        parts += (INT32.pack(len(block)), block)
    return b"".join(parts)


def _from_snappy(payload: Buffer) -> bytes:
    """Framed blocks, or one bare block as some clients send it."""
    view = memoryview(payload)
    raw = _cramjam().snappy
    if view[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        return bytes(raw.decompress_raw(view))
    if len(view) < XERIAL_HEADER_BYTES:
        raise ValueError("the framing's header is cut")
    blocks = []
    position = XERIAL_HEADER_BYTES
    while position < len(view):
        (size,) = INT32.unpack_from(view, position)
        position += INT32.size
        if size < 0 or position + size > len(view):
            raise ValueError(f"block of {size} bytes at {position} leaves the payload")
        blocks.append(bytes(raw.decompress_raw(view[position : position + size])))
        position += size
    return b"".join(blocks)

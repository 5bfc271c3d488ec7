"""Bounds of the decompressed size of a payload, read from its frames without decompressing it.

zstd and lz4 payloads are frames of blocks, and each block starts with its size. A walk over the
block headers shows that the frame is complete, and bounds its decompressed size from below and from
above. The walk ends after MAX_BLOCKS blocks, and the rest of a longer payload stays unchecked. Of
gzip only the first header is checked. A reader that later decompresses the payload applies the
bound of `compression.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from quorate.quorum.log.batches.compression import Codec, known_codec, largest, snappy_blocks
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.seams import Buffer

MAX_BLOCKS = 1024
GZIP_MAGIC = b"\x1f\x8b\x08"
GZIP_LEAST_BYTES = 18
GZIP_MOST_RATIO = 1032
"""No deflate stream expands to more than this many times its size (zlib's technical notes)."""
ZSTD_MAGIC = 0xFD2FB528
ZSTD_SKIPPABLE_MASK, ZSTD_SKIPPABLE = 0xFFFFFFF0, 0x184D2A50
ZSTD_BLOCK_BYTES = 128 * 1024
ZSTD_RAW, ZSTD_RUN, ZSTD_RESERVED = 0, 1, 3
ZSTD_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
LZ4_MAGIC = 0x184D2204
LZ4_BLOCK_BYTES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
LZ4_STORED = 0x80000000

_UINT16 = struct.Struct("<H")
_UINT32 = struct.Struct("<I")
_UINT64 = struct.Struct("<Q")


class Expansion(NamedTuple):
    """Bounds of the decompressed size of a payload, in bytes."""

    least: int
    most: int


def expansion(codec: int, payload: Buffer) -> Expansion:
    """Return the bounds of the decompressed size. `most` is at most `largest(payload)`.

    Raise CorruptBatch if the checked part shows that the payload is no frame of this codec, that it
    is cut, or that it expands to more than `largest(payload)`."""
    known = known_codec(codec)
    try:
        found = _MEASURES[known](payload)
    except (struct.error, IndexError):
        raise CorruptBatch(f"{known.name} payload of {len(payload)} bytes is cut") from None
    limit = largest(payload)
    if found.least > limit:
        raise CorruptBatch(
            f"{known.name} payload of {len(payload)} bytes expands to {found.least} bytes or more,"
            f" {limit} are allowed"
        )
    return Expansion(found.least, min(found.most, limit))


def _stored(payload: Buffer) -> Expansion:
    return Expansion(len(payload), len(payload))


def _gzip(payload: Buffer) -> Expansion:
    if len(payload) < GZIP_LEAST_BYTES or payload[: len(GZIP_MAGIC)] != GZIP_MAGIC:
        raise CorruptBatch(f"payload of {len(payload)} bytes has no gzip header")
    return Expansion(0, GZIP_MOST_RATIO * len(payload))


def _snappy(payload: Buffer) -> Expansion:
    size = sum(size for _, size in snappy_blocks(payload))
    return Expansion(size, size)


def _zstd(payload: Buffer) -> Expansion:
    least = most = position = blocks = 0
    while position < len(payload):
        (magic,) = _UINT32.unpack_from(payload, position)
        if magic & ZSTD_SKIPPABLE_MASK == ZSTD_SKIPPABLE:
            position += 8 + _UINT32.unpack_from(payload, position + 4)[0]
            blocks += 1
        elif magic == ZSTD_MAGIC:
            frame = _ZstdFrame(payload, position + 4, blocks)
            position, blocks = frame.end, frame.blocks
            least += frame.least if frame.declared is None else frame.declared
            most += frame.most
        else:
            raise CorruptBatch(f"no zstd frame at byte {position} of the payload")
        if blocks >= MAX_BLOCKS and position < len(payload):
            return Expansion(least, largest(payload))
    if position != len(payload) or not payload:
        raise IndexError
    return Expansion(least, most)


class _ZstdFrame:
    """One frame (RFC 8878), read from the byte after its magic number."""

    def __init__(self, payload: Buffer, position: int, blocks: int) -> None:
        descriptor = payload[position]
        single = bool(descriptor & 0x20)
        if descriptor & 0x08:
            raise CorruptBatch("a zstd frame has a reserved bit set")
        position += (1 if single else 2) + ZSTD_DICTIONARY_ID_BYTES[descriptor & 3]
        self.declared: int | None = None
        flag = descriptor >> 6
        if flag or single:
            form = (struct.Struct("B"), _UINT16, _UINT32, _UINT64)[flag]
            self.declared = form.unpack_from(payload, position)[0] + (256 if flag == 1 else 0)
            position += form.size
        self.blocks = blocks
        self.least = self.most = 0
        position = self._walk(payload, position)
        self.end = position + (4 if descriptor & 0x04 else 0)

    def _walk(self, payload: Buffer, position: int) -> int:
        while True:
            if self.blocks >= MAX_BLOCKS:
                self.most = largest(payload)
                return position
            self.blocks += 1
            head = payload[position] | payload[position + 1] << 8 | payload[position + 2] << 16
            kind, size = head >> 1 & 3, head >> 3
            if kind == ZSTD_RESERVED or size > ZSTD_BLOCK_BYTES:
                raise CorruptBatch(f"no zstd block at byte {position} of the payload")
            position += 3 + (1 if kind == ZSTD_RUN else size)
            if kind in (ZSTD_RAW, ZSTD_RUN):
                self.least += size
                self.most += size
            else:
                self.most += ZSTD_BLOCK_BYTES
            if head & 1:
                return position


def _lz4(payload: Buffer) -> Expansion:
    magic, flags, descriptor = struct.unpack_from("<IBB", payload)
    block_bytes = LZ4_BLOCK_BYTES.get(descriptor >> 4 & 7)
    if magic != LZ4_MAGIC or flags >> 6 != 1 or block_bytes is None:
        raise CorruptBatch(f"payload of {len(payload)} bytes has no lz4 frame header")
    position, declared = 6, 0
    if flags & 0x08:
        (declared,) = _UINT64.unpack_from(payload, position)
        position += 8
    position += 5 if flags & 0x01 else 1
    least = most = 0
    for _ in range(MAX_BLOCKS):
        (size,) = _UINT32.unpack_from(payload, position)
        position += 4
        if size == 0:
            if position + (4 if flags & 0x04 else 0) > len(payload):
                raise IndexError
            return Expansion(max(least, declared), most)
        stored, size = bool(size & LZ4_STORED), size & ~LZ4_STORED
        position += size + (4 if flags & 0x10 else 0)
        least += size if stored else 0
        most += size if stored else block_bytes
    return Expansion(max(least, declared), largest(payload))


_MEASURES: dict[Codec, Callable[[Buffer], Expansion]] = {
    Codec.NONE: _stored,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}

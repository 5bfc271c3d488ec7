"""Checksums that fit what a mutation left, so that readers look beyond them."""

from __future__ import annotations

import struct

from crc32c import crc32c

from quorate.quorum.log.batches.batch import CRC_FROM, HEADER_BYTES, PREFIX_BYTES

CRC_BYTES = 4


def sealed_batches(data: bytes) -> bytes:
    """Return `data` with the length of its last batch and all checksums put right."""
    out = bytearray(data)
    position = 0
    while len(out) - position >= HEADER_BYTES:
        (length,) = struct.unpack_from(">i", out, position + 8)
        end = position + PREFIX_BYTES + length
        if not position + HEADER_BYTES <= end <= len(out):
            end = len(out)
            struct.pack_into(">i", out, position + 8, end - position - PREFIX_BYTES)
        out[position + 16] = 2
        struct.pack_into(
            ">I",
            out,
            position + CRC_FROM - CRC_BYTES,
            crc32c(bytes(out[position + CRC_FROM : end])),
        )
        position = end
    return bytes(out)


def sealed_line(data: bytes) -> bytes:
    """Return the first line of `data`, with its checksum as the second."""
    body = data.partition(b"\n")[0]
    return b"%b\n%08x\n" % (body, crc32c(body))


def sealed_producers(data: bytes) -> bytes:
    """Return a producer snapshot (version, checksum, then the rest) whose checksum fits."""
    if len(data) < 6:
        return data
    return data[:2] + struct.pack(">I", crc32c(data[6:])) + data[6:]

"""Frames that are no requests: damaged ones, and bytes without a meaning."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.sim.adversary.values import Draw

HEAD_BYTES = 8
"""The bytes of API key, version and correlation id. A damaged frame keeps its API, because it could
otherwise become another request that the cluster has to carry out."""
LENGTHS = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x00")
UNKNOWN_APIS = (-32_768, -1, 93, 9999, 32_767)


def _flip(frame: bytearray, draw: Draw) -> bytes:
    for _ in range(draw.of(1, 1, 2, 8)):
        if len(frame) > HEAD_BYTES:
            at = draw.random.randrange(HEAD_BYTES, len(frame))
            frame[at] = draw.of(0, 1, 0x7F, 0x80, 0xFF, draw.random.randrange(256))
    return bytes(frame)


def _length(frame: bytearray, draw: Draw) -> bytes:
    """Write a huge, negative or missing length at a place where a length may be."""
    if len(frame) >= HEAD_BYTES + 4:
        at = draw.random.randrange(HEAD_BYTES, len(frame) - 3)
        frame[at : at + 4] = draw.of(*LENGTHS)
    return bytes(frame)


def _varint(frame: bytearray, draw: Draw) -> bytes:
    at = draw.random.randrange(HEAD_BYTES, max(HEAD_BYTES + 1, len(frame)))
    frame[at : at + 1] = b"\xff" * draw.of(4, 5, 9, 12) + b"\x01"
    return bytes(frame)


def cut(frame: bytearray, draw: Draw) -> bytes:
    return bytes(frame[: draw.random.randrange(len(frame))])


def prolonged(frame: bytearray, draw: Draw) -> bytes:
    return bytes(frame) + draw.random.randbytes(draw.of(1, 20, 200))


def unknown_api(frame: bytearray, draw: Draw) -> bytes:
    return struct.pack(">h", draw.of(*UNKNOWN_APIS)) + bytes(frame[2:])


def unknown_version(frame: bytearray, draw: Draw) -> bytes:
    return bytes(frame[:2]) + struct.pack(">h", draw.of(-1, 99, 32_767)) + bytes(frame[4:])


def nested(frame: bytearray, draw: Draw) -> bytes:
    filler = draw.of(b"\x02", b"\x00\x00\x00\x01", b"\x02\x01\x00")
    return bytes(frame[:HEAD_BYTES]) + filler * 5000


def noise(frame: bytearray, draw: Draw) -> bytes:
    """Return two bytes of an API that does not exist, and random bytes."""
    return unknown_api(bytearray(draw.random.randbytes(draw.of(2, 8, 300))), draw)


Damage = Callable[[bytearray, Draw], bytes]
HARMLESS: tuple[Damage, ...] = (cut, cut, unknown_api, unknown_version, nested, noise)
"""Damages that never turn a request of an administrator into another valid request."""
ANY: tuple[Damage, ...] = (_flip, _flip, _flip, _length, _length, _varint, prolonged, *HARMLESS)

"""Counts the elements of a msgpack frame before any of them is built.

An element takes as little as one byte in the frame, but up to 64 bytes in this node's memory,
because even an empty array becomes a list. Without a bound, a frame of 32 MB could use 2 GB. The
count reads only the first bytes of each element, so a large string costs one step.
"""

from __future__ import annotations

from quorate.quorum.seams import Buffer, ProtocolError


def _table() -> tuple[list[int], list[int], list[int]]:
    """Return three lists by first byte: the fixed size of the element, the size of the length that
    follows, and the number of elements that a short array holds.

    A size of 0 marks the types that no node message contains: maps and extensions."""
    size, length, items = [1] * 256, [0] * 256, [0] * 256
    for first in range(0x80, 0x90):
        size[first] = 0
    for first in range(0x90, 0xA0):
        items[first] = first & 0x0F
    for first in range(0xA0, 0xC0):
        size[first] = 1 + (first & 0x1F)
    size[0xC1] = 0
    for first, length_bytes in ((0xC4, 1), (0xC5, 2), (0xC6, 4), (0xD9, 1), (0xDA, 2), (0xDB, 4)):
        size[first], length[first] = 1 + length_bytes, length_bytes
    for first in (*range(0xC7, 0xCA), *range(0xD4, 0xD9), 0xDE, 0xDF):
        size[first] = 0
    for first, value_bytes in zip(
        (0xCA, 0xCB, *range(0xCC, 0xD4)), (4, 8, 1, 2, 4, 8, 1, 2, 4, 8), strict=True
    ):
        size[first] = 1 + value_bytes
    size[0xDC], size[0xDD] = 3, 5
    return size, length, items


SIZES, LENGTHS, ITEMS = _table()
ARRAY_16, ARRAY_32 = 0xDC, 0xDD


def check_elements(frame: Buffer, most: int) -> None:
    """Raise ProtocolError if the frame has more than `most` elements, or a map or an extension.

    Every value counts as an element, also an array itself. A frame that ends early, or that
    continues after its last element, raises nothing here. The unpacker reports it."""
    at, end = 0, len(frame)
    counted, awaited = 0, 1
    while awaited and at < end:
        first = frame[at]
        size = SIZES[first]
        if size == 0:
            raise ProtocolError(f"node messages contain no msgpack element of type {first:#x}")
        if length_bytes := LENGTHS[first]:
            size += int.from_bytes(frame[at + 1 : at + 1 + length_bytes], "big")
        elif first in (ARRAY_16, ARRAY_32):
            awaited += int.from_bytes(frame[at + 1 : at + size], "big")
        else:
            awaited += ITEMS[first]
        at += size
        counted += 1
        awaited -= 1
        if counted + awaited > most:
            raise ProtocolError(f"a frame of more than {most} elements")

"""Counts the elements of a msgpack frame before any of them is built.

An element takes as little as one byte in the frame, but up to 64 bytes in this node's memory,
because even an empty array becomes a list. Without a bound, a frame of 32 MB could use 2 GB. The
count reads only the first bytes of each element, so a large string costs one step.
"""

from __future__ import annotations

from collections.abc import Iterator

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


ELEMENTS_BETWEEN = 2048
"""Elements that are counted before a pause."""
FIXED_ARRAYS = range(0x90, 0xA0)


def array_at(frame: Buffer) -> tuple[int, int]:
    """Return the number of elements of the array with which a frame begins, and the position of the
    first. The number is -1 if the frame does not begin with an array."""
    first = frame[0] if len(frame) else 0
    size = SIZES[first]
    if first in FIXED_ARRAYS:
        return ITEMS[first], size
    if first in (ARRAY_16, ARRAY_32):
        return int.from_bytes(frame[1:size], "big"), size
    return -1, 0


def walk(frame: Buffer, at: int, most: int) -> Iterator[tuple[int, int]]:
    """Find the end of the element at the position `at`. Yield a position and the number of elements
    before it, once after every ELEMENTS_BETWEEN elements and once for the end.

    The end is beyond that of the frame if the frame ends early. Raise ProtocolError if there are
    more than `most` elements, or for a map or an extension."""
    end = len(frame)
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
        if not counted % ELEMENTS_BETWEEN and awaited:
            yield at, counted
    yield at if not awaited else end + 1, counted


def check_elements(frame: Buffer, most: int) -> None:
    """Raise ProtocolError if the frame has more than `most` elements, or a map or an extension.

    Every value counts as an element, also an array itself. A frame that ends early, or that
    continues after its last element, raises nothing here. The unpacker reports it."""
    for _ in walk(frame, 0, most):
        pass

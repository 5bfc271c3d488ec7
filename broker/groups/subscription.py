"""The topics in the consumer protocol's subscriptions, as far as the coordinator needs them: to
keep the offsets of what is being consumed.

Version 0 is a prefix of every later version: int16 version, then an array of names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

CONSUMER_PROTOCOL = "consumer"
_HEAD = struct.Struct(">hi")
_INT16 = struct.Struct(">h")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """None when one of them cannot be read: then every topic counts as subscribed."""
    found: set[str] = set()
    try:
        for each in subscriptions:
            found.update(_topics(each))
    except (struct.error, UnicodeDecodeError, ValueError):
        return None
    return frozenset(found)


def _topics(data: bytes) -> list[str]:
    _, count = _HEAD.unpack_from(data)
    if not 0 <= count <= len(data):
        raise ValueError(f"{count} topics in {len(data)} bytes")
    position = _HEAD.size
    names = []
    for _ in range(count):
        (size,) = _INT16.unpack_from(data, position)
        position += _INT16.size
        if not 0 <= size <= len(data) - position:
            raise ValueError(f"a name of {size} bytes at {position}")
        names.append(data[position : position + size].decode())
        position += size
    return names

"""Reads topic names from the consumer protocol's subscriptions.

The coordinator needs only the names, because it must not expire the offsets of topics that the
group consumes (KIP-211).

Only the version 0 layout is read: int16 version, then an array of topic names. Every later version
begins with this layout.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of groups of consumers. Other clients, such as Kafka Connect, use others."""
_HEAD = struct.Struct(">hi")
_INT16 = struct.Struct(">h")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics that the subscriptions name, or None if one of them cannot be read.

    The caller must treat None as a subscription to every topic."""
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

"""Bounds of the fields of node messages, as annotations of their dataclasses.

A node message is a message between two nodes of the cluster. `protocol/field_bounds.py` has the
bounds of Kafka's messages. In a type whose name ends with OrNone, -1 means that there is no value.

`shapes.py` reads them and `rpc/row_codec.py` compiles them into the checks at decoding. A message
with a field outside of its bound is refused there, before any handler runs. A field of a type that
needs a bound and has none raises TypeError at import.

| type | bound |
|---|---|
| int | `Range`: smallest and largest value |
| str, bytes, Buffer | `Bytes`: largest size; of a str, in UTF-8 |
| tuple[X, ...] | `Items`: largest number of elements |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

INT16_MAX = (1 << 15) - 1
INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1

MAX_NODE_FRAME_BYTES = 32 * 1024 * 1024
"""Maximum size of a frame of a node link, and therefore of any field of a node message."""


@dataclass(frozen=True, slots=True)
class Range:
    """Smallest and largest value of an integer."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Bytes:
    """Largest size of a string (in UTF-8) or of a byte string."""

    most: int


@dataclass(frozen=True, slots=True)
class Items:
    """Largest number of elements of a tuple."""

    most: int


Bound = Range | Bytes | Items

NodeId = Annotated[int, Range(0, INT32_MAX)]
NodeIdOrNone = Annotated[int, Range(-1, INT32_MAX)]
Epoch = Annotated[int, Range(0, INT32_MAX)]
EpochOrNone = Annotated[int, Range(-1, INT32_MAX)]
Offset = Annotated[int, Range(0, INT64_MAX)]
OffsetOrNone = Annotated[int, Range(-1, INT64_MAX)]
"""Also broker epochs, which are offsets of the metadata log, and producer ids."""
PartitionId = Annotated[int, Range(0, INT32_MAX)]
Port = Annotated[int, Range(1, 65535)]
Millis = Annotated[int, Range(0, INT32_MAX)]
Size = Annotated[int, Range(0, INT32_MAX)]
Count = Annotated[int, Range(0, INT32_MAX)]
ErrorNumber = Annotated[int, Range(-(1 << 15), INT16_MAX)]
Version = Annotated[int, Range(0, INT16_MAX)]
Number = Annotated[int, Range(0, INT16_MAX)]
"""Small enumerations: the number of an RPC or of an API, a security protocol, a recovery state."""

Name = Annotated[str, Bytes(249)]
"""Ids of clusters, names of listeners, features and roles: Kafka's bound of a topic's name."""
Host = Annotated[str, Bytes(255)]
"""The longest host name that the DNS allows."""
Rack = Annotated[str, Bytes(1000)]
ClientId = Annotated[str, Bytes(INT16_MAX)]
"""The longest client id that the header of a Kafka request can hold."""
Message = Annotated[str, Bytes(10_000)]
"""Texts for people, such as error messages."""

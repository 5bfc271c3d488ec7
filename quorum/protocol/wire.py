"""How a Kafka message or metadata record is declared: a dataclass whose fields carry Kafka's
schema.

The declaration is Kafka's JSON said in Python: snake_case names, one class per struct over all
versions, the version ranges in Kafka's own notation (`"0+"`, `"2-4"`, `"none"`). `codec.py`
compiles readers and writers from it, one pair per (class, version). Wire types: bool int8 int16
uint16 int32 uint32 int64 float64 string bytes records uuid; a field whose annotation is a tuple is
an array; a nested dataclass is a struct. `records` and `bytes` are given to readers as memoryviews
of the frame.

Fields of requests and records that vary in size need a bound (`bounds.py`): `bound` for the bytes
of a string, of bytes or of records, `count` for the elements of an array.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from quorate.quorum.protocol.bounds import MAX_ELEMENTS, Bound


@dataclasses.dataclass(frozen=True, slots=True)
class FieldSchema:
    """The schema of one field. `kind` is the wire type of the element when the field is an array;
    empty when it is a struct (the class is read from the annotation)."""

    kind: str
    versions: str
    nullable: str
    tag: int | None
    tagged: str
    bound: Bound | None
    count: Bound | None


class Message:
    """Base of every request and response; `apis.py` knows its versions by `API_KEY`."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    MAX_ELEMENTS: ClassVar[int] = MAX_ELEMENTS
    """The greatest number of array elements in one request of this class, at all levels."""


def wire(
    kind: str = "",
    *,
    versions: str = "0+",
    nullable: str = "none",
    tag: int | None = None,
    tagged: str | None = None,
    bound: Bound | None = None,
    count: Bound | None = None,
    default: Any = dataclasses.MISSING,
) -> Any:
    """A dataclass field. With `tag`, it is tagged in `tagged` (default: all of `versions`).

    A field outside a version reads as its default and is left out when written (Kafka's
    `ignorable`)."""
    schema = FieldSchema(
        kind,
        versions,
        nullable,
        tag,
        tagged or (versions if tag is not None else "none"),
        bound,
        count,
    )
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata={"wire": schema})
    return dataclasses.field(metadata={"wire": schema}, default=default)

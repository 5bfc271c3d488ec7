"""The declaration of a Kafka message or metadata record: a dataclass whose fields carry Kafka's
schema.

The declaration is Kafka's JSON in Python: names in snake case, one class per struct over all
versions, and version ranges in Kafka's notation (`"0+"`, `"2-4"`, `"none"`). `codec.py` compiles
one reader and one writer from it for each (class, version).

The wire types are bool int8 int16 uint16 int32 uint32 int64 float64 string bytes records uuid. A
field whose annotation is a tuple is an array. A nested dataclass is a struct. Readers return
`records` and `bytes` as memoryviews of the frame.

Fields of variable size in requests and records need a bound (`field_bounds.py`): `bound` for the
bytes of a string, of bytes or of records, and `count` for the elements of an array.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from quorate.quorum.protocol.field_bounds import MAX_ELEMENTS, Bound


@dataclasses.dataclass(frozen=True, slots=True)
class FieldSchema:
    """The schema of one field. `kind` is the wire type of the field or, for an array, of its
    elements.

    `kind` is empty for a struct, whose class is read from the annotation."""

    kind: str
    versions: str
    nullable: str
    tag: int | None
    tagged: str
    bound: Bound | None
    count: Bound | None


class Message:
    """The base of every request and response. `API_KEY` finds its versions in `apis.py`."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    MAX_ELEMENTS: ClassVar[int] = MAX_ELEMENTS
    """The largest number of array elements in one request of this class, at all levels."""


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
    """Return a dataclass field with its schema. With `tag`, it is tagged in the versions `tagged`,
    by default in all `versions`.

    A field outside of a version reads as its default and is left out when written, as with
    `ignorable` in Kafka. Without `default`, the constructor requires the field, and it then reads
    as zero, an empty value or, for a struct or records, None. In a classic version, a field with a
    `tag` is written in its place among the other fields."""
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

"""The shape of a node message: each field's type and bound, read from a dataclass' annotations.

`shape_of(cls)` is what the row codec compiles, and what a fuzzer can walk to find every edge.
Annotations: bool, Uuid, `X | None`, `tuple[X, Y]` and dataclasses, which need no bound; int, str,
bytes, Buffer and `tuple[X, ...]` with a bound of `quorum/bounds.py`.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from typing import Annotated, Any

from quorate.quorum.bounds import Bound, Bytes, Items, Range
from quorate.quorum.ids import Uuid
from quorate.quorum.seams import Buffer


class Type(enum.Enum):
    INT = "int"
    BOOL = "bool"
    STR = "str"
    BYTES = "bytes"
    UUID = "uuid"
    ARRAY = "array"  # `parts`: the one element
    TUPLE = "tuple"  # `parts`: the elements
    STRUCT = "struct"  # `parts`: the fields


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """One type of a row, with all that it contains."""

    kind: Type
    label: str
    """Class and field, for errors."""
    bound: Bound | None = None
    optional: bool = False
    cls: type | None = None
    """The dataclass of a STRUCT."""
    parts: tuple[tuple[str, Shape], ...] = ()
    """Names, empty where there is none, and shapes."""


BOUNDED: dict[Any, tuple[Type, type[Bound]]] = {
    int: (Type.INT, Range),
    str: (Type.STR, Bytes),
    bytes: (Type.BYTES, Bytes),
    Buffer: (Type.BYTES, Bytes),
}
UNBOUNDED: dict[Any, Type] = {bool: Type.BOOL, Uuid: Type.UUID}


def shape_of(cls: type) -> Shape:
    """Return the shape of a message. Raise TypeError for a field without a bound that it needs."""
    hints = typing.get_type_hints(cls, include_extras=True)
    parts = tuple(
        (field.name, _shape(hints[field.name], f"{cls.__name__}.{field.name}"))
        for field in dataclasses.fields(cls)
    )
    return Shape(Type.STRUCT, cls.__name__, cls=cls, parts=parts)


def _shape(annotation: Any, label: str) -> Shape:
    inner = _of_optional(annotation)
    if inner is not None:
        return dataclasses.replace(_shape(inner, label), optional=True)
    bound = None
    if typing.get_origin(annotation) is Annotated:
        annotation, bound = typing.get_args(annotation)[:2]
    if annotation in UNBOUNDED:
        return Shape(UNBOUNDED[annotation], label)
    if annotation in BOUNDED:
        kind, wanted = BOUNDED[annotation]
        return Shape(kind, label, _required(bound, wanted, label))
    if dataclasses.is_dataclass(annotation):
        return dataclasses.replace(shape_of(typing.cast(type, annotation)), label=label)
    elements = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else None
    if not elements:
        raise TypeError(f"{label}: no row codec for {annotation}")
    if len(elements) == 2 and elements[1] is Ellipsis:
        element = ("", _shape(elements[0], f"{label}[]"))
        return Shape(Type.ARRAY, label, _required(bound, Items, label), parts=(element,))
    parts = tuple(("", _shape(each, f"{label}[]")) for each in elements)
    return Shape(Type.TUPLE, label, parts=parts)


def _required(bound: object, wanted: type[Bound], label: str) -> Bound:
    if not isinstance(bound, wanted):
        raise TypeError(
            f"{label} has no bound: annotate it with one of quorum/bounds.py, "
            f"Annotated[..., {wanted.__name__}(...)]"
        )
    return bound


def _of_optional(annotation: Any) -> Any:
    """Return X of `X | None`, None for any other annotation."""
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return None
    arguments = typing.get_args(annotation)
    rest = [each for each in arguments if each is not type(None)]
    if len(rest) == len(arguments):
        return None
    return rest[0] if len(rest) == 1 else Buffer

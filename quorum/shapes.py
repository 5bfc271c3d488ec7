"""The shape of a node message: the types and bounds of its fields, from a dataclass's annotations.

`rpc/row_codec.py` compiles a shape into code that encodes and decodes the message. A field needs a
bound of `quorum/node_message_bounds.py` if its type is int, str, bytes, Buffer or `tuple[X, ...]`.
The types bool, Uuid, `X | None`, `tuple[X, Y]` and dataclasses need none.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Iterable
from typing import Annotated, Any

from quorate.quorum.ids import Uuid
from quorate.quorum.node_message_bounds import Bound, Bytes, Items, Range
from quorate.quorum.seams import Buffer


class Type(enum.Enum):
    """The types of fields."""

    INT = "int"
    BOOL = "bool"
    STR = "str"
    BYTES = "bytes"
    UUID = "uuid"
    ARRAY = "array"  # tuple[X, ...]; `parts`: the shape of every element
    TUPLE = "tuple"  # tuple[X, Y]; `parts`: the elements
    STRUCT = "struct"  # `parts`: the fields


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """The type of a field or a message, with the shapes of its parts."""

    kind: Type
    label: str
    """The class and the field, for error messages."""
    bound: Bound | None = None
    optional: bool = False
    """True if the value may be None."""
    cls: type | None = None
    """The dataclass of a STRUCT."""
    parts: tuple[tuple[str, Shape], ...] = ()
    """The names and shapes of the parts. A part without a name has an empty one."""


BOUNDED: dict[Any, tuple[Type, type[Bound]]] = {
    int: (Type.INT, Range),
    str: (Type.STR, Bytes),
    bytes: (Type.BYTES, Bytes),
    Buffer: (Type.BYTES, Bytes),
}
UNBOUNDED: dict[Any, Type] = {bool: Type.BOOL, Uuid: Type.UUID}


def shape_of(cls: type) -> Shape:
    """Return the shape of the dataclass of a message. Raise TypeError for a field that lacks a
    bound or has another type than those of the module's docstring."""
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
            f"{label} has no bound: annotate it with one of quorum/node_message_bounds.py, "
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


TYPES: dict[Type, tuple[type, ...]] = {
    Type.INT: (int,),
    Type.BOOL: (bool,),
    Type.STR: (str,),
    Type.BYTES: (bytes, bytearray, memoryview),
    Type.UUID: (bytes,),
    Type.ARRAY: (tuple,),
    Type.TUPLE: (tuple,),
}
UUID_BYTES = 16


def violation(shape: Shape, value: Any) -> str:
    """Return a text about the first violation of `shape` in `value`, or an empty string if there is
    none.

    It checks messages that this process created. The decoder checks received messages."""
    if value is None and shape.optional:
        return ""
    wanted = TYPES.get(shape.kind) or (shape.cls,)
    if type(value) not in wanted:
        return f"{shape.label}: {type(value).__name__} is not its type"
    if shape.kind is Type.STRUCT:
        return _first(violation(part, getattr(value, name)) for name, part in shape.parts)
    if shape.kind is Type.TUPLE:
        parts = [part for _, part in shape.parts]
        if len(value) != len(parts):
            return f"{shape.label}: {len(value)} elements are not {len(parts)}"
        return _first(violation(part, each) for part, each in zip(parts, value, strict=True))
    if shape.kind is Type.UUID and len(value) != UUID_BYTES:
        return f"{shape.label}: {len(value)} bytes are not {UUID_BYTES}"
    reason = _outside(shape.bound, value)
    if reason:
        return f"{shape.label}: {reason}"
    if shape.kind is Type.ARRAY:
        return _first(violation(shape.parts[0][1], each) for each in value)
    return ""


def _outside(bound: Bound | None, value: Any) -> str:
    match bound:
        case Range(low, high) if not low <= value <= high:
            return f"{value} is not in {low}..{high}"
        case Bytes(most):
            size = len(value.encode("utf-8", "replace") if isinstance(value, str) else value)
            if size > most:
                return f"{size} bytes, at most {most} are allowed"
        case Items(most) if len(value) > most:
            return f"{len(value)} elements, at most {most} are allowed"
    return ""


def _first(reasons: Iterable[str]) -> str:
    return next((each for each in reasons if each), "")

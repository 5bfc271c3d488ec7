"""The fields of one declared class in one version: the plan that the compilers turn into code.

A version range is in Kafka's notation: `"3"`, `"3-5"`, `"3+"` or `"none"`.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.protocol.field_bounds import Bound
from quorate.quorum.protocol.wire import FieldSchema

# The characters of struct formats. One call reads or writes a run of such fields.
FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
SIZE_BYTES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
VARIABLE = frozenset({"string", "bytes", "records"})
STRUCT = "struct"
_ZERO: dict[str, Any] = {
    **dict.fromkeys(FIXED, 0),
    "bool": False,
    "float64": 0.0,
    "uuid": ZERO_UUID,
    "string": "",
    "bytes": b"",
    "records": None,
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field in one version. If it is an `array`, `kind` and `bound` describe its elements.

    `default` is the value if the encoded message does not contain the field. `bound` is in bytes of
    one value, and `count` in elements. Fields of responses need neither."""

    name: str
    kind: str
    struct: type | None
    array: bool
    nullable: bool
    tag: int | None
    default: Any
    bound: Bound | None = None
    count: Bound | None = None

    @property
    def variable(self) -> bool:
        """Return True if one value, or one element of the array, is a string, bytes or records."""
        return self.kind in VARIABLE

    @property
    def fixed(self) -> bool:
        """Return True if the field is one value of a wire type of fixed size. A struct or an
        array is never `fixed`."""
        return not self.array and self.kind in FIXED


def element_of(field: Field) -> Field:
    """Return a field that describes one element of the array `field`."""
    return dataclasses.replace(
        field, name=f"{field.name}_item", array=False, nullable=False, tag=None, default=None
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of `cls` in `version`. Immutable.

    `plain` is in the order of encoding, and `tagged` in ascending order of tags. In a classic
    version, fields with a tag are in `plain`. `defaults` names all fields of the class with their
    values when absent."""

    cls: type
    version: int
    flexible: bool
    plain: tuple[Field, ...]
    tagged: tuple[Field, ...]
    defaults: tuple[tuple[str, Any], ...]


def in_range(version: int, versions: str) -> bool:
    """Return True if `version` is in the range `versions`."""
    if versions == "none":
        return False
    low, separator, high = versions.rstrip("+").partition("-")
    if versions.endswith("+"):
        return version >= int(low)
    return int(low) <= version <= int(high if separator else low)


def _layout(cls: type, version: int, flexible: bool) -> Layout:
    hints = typing.get_type_hints(cls)
    plain: list[Field] = []
    tagged: list[Field] = []
    defaults: list[tuple[str, Any]] = []
    for declared in dataclasses.fields(cls):
        wired = declared.metadata["wire"]
        field = _field(cls, declared, wired, hints[declared.name], version)
        defaults.append((field.name, field.default))
        if not in_range(version, wired.versions):
            continue
        if flexible and field.tag is not None:
            tagged.append(field)
        else:
            plain.append(field)
    tagged.sort(key=lambda field: field.tag or 0)
    return Layout(cls, version, flexible, tuple(plain), tuple(tagged), tuple(defaults))


# Typed by hand, because mypy considers classes unhashable.
layout: Callable[[type, int, bool], Layout] = cache(_layout)
"""Returns the layout of (class, version, flexible). Raises TypeError for a wrong declaration."""


def min_size_bytes(cls: type, version: int, flexible: bool) -> int:
    """Return the smallest encoded size of a value of `cls`, at least 1. It bounds the length of an
    array before allocation."""
    plan = layout(cls, version, flexible)
    tags_bytes = 1 if flexible else 0
    return max(1, tags_bytes + sum(_min_field_bytes(field, plan) for field in plan.plain))


def _min_field_bytes(field: Field, plan: Layout) -> int:
    if field.fixed:
        return SIZE_BYTES[field.kind]
    if field.struct is not None and not field.array:
        return 1 if field.nullable else min_size_bytes(field.struct, plan.version, plan.flexible)
    if plan.flexible:
        return 1
    return 2 if field.kind == "string" and not field.array else 4


def _field(
    cls: type, declared: dataclasses.Field[Any], wired: FieldSchema, hint: Any, version: int
) -> Field:
    # `X | None` and `Buffer`, a union itself, are unions; their first member is sufficient.
    if isinstance(hint, types.UnionType):
        hint = typing.get_args(hint)[0]
    array = typing.get_origin(hint) is tuple
    element: Any = typing.get_args(hint)[0] if array else hint
    struct: type | None = element if not wired.kind else None
    if struct is not None and not dataclasses.is_dataclass(struct):
        raise TypeError(
            f"{cls.__name__}.{declared.name}: {element} is neither struct nor wire type"
        )
    if wired.kind and wired.kind not in FIXED and wired.kind not in VARIABLE:
        raise TypeError(f"{cls.__name__}.{declared.name}: {wired.kind!r} is no wire type")
    if declared.default is not dataclasses.MISSING:
        default = declared.default
    else:
        default = () if array else _ZERO.get(wired.kind)
    return Field(
        name=declared.name,
        kind=wired.kind or STRUCT,
        struct=struct,
        array=array,
        nullable=in_range(version, wired.nullable),
        tag=wired.tag if in_range(version, wired.tagged) else None,
        default=default,
        bound=wired.bound,
        count=wired.count,
    )

"""Dataclasses to msgpack rows and back: readers and writers compiled from the annotations.

A row is the array of a dataclass' values in order of declaration. A reader skips elements beyond
those it knows and gives missing trailing ones their defaults, so a field may be added at the end,
with a default, without a new version. Every value is checked against its annotation: another type
is a ProtocolError that names the field. Bounds on sizes are the unpacker's (`messages.py`).

Annotations: int, bool, str, bytes, Uuid, Buffer, `X | None`, `tuple[X, ...]`, `tuple[X, Y]`,
dataclasses.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from quorate.quorum.ids import Uuid
from quorate.quorum.seams import Buffer, ProtocolError

Row = Sequence[Any]
PRIMITIVES: dict[Any, str] = {int: "int", bool: "bool", str: "str", bytes: "bytes"}


def writer(cls: type, head: int = 0) -> Callable[..., Row]:
    """`write(*head values, message) -> row`; the head stands before the fields."""
    names = [f"h{i}" for i in range(head)]
    body = ", ".join([*names, *_fields_written(cls, "m")])
    write: Callable[..., Row] = eval(f"lambda {', '.join([*names, 'm'])}: ({body},)")
    return write


def reader(cls: type, head: int = 0) -> Callable[[Row], Any]:
    """`read(row) -> message`, of a row whose first `head` values are not the message's."""
    fields = dataclasses.fields(cls)
    hints = typing.get_type_hints(cls)
    names: dict[str, Any] = {"cls": cls, "fill": _filler(cls, head), "wrong": _wrong}
    width = head + len(fields)
    values = [f"v{i}" for i in range(len(fields))]
    lines = ["def read(row):"]
    lines += [f"    if len(row) != {width}: row = fill(row)"]
    lines += [f"    {', '.join(['_'] * head + values)}, = row"] if width else []
    for value, field in zip(values, fields, strict=True):
        label = f"{cls.__name__}.{field.name}"
        lines += ["    " + line for line in _checks(hints[field.name], value, label, names)]
    arguments = ", ".join(f"{f.name}={v}" for f, v in zip(fields, values, strict=True))
    lines += [f"    return cls({arguments})"]
    exec("\n".join(lines), names)
    read: Callable[[Row], Any] = names["read"]
    return read


def _fields_written(cls: type, expression: str) -> list[str]:
    hints = typing.get_type_hints(cls)
    return [
        _written(hints[field.name], f"{expression}.{field.name}")
        for field in dataclasses.fields(cls)
    ]


def _written(annotation: Any, expression: str) -> str:
    """The Python expression that turns a value into what msgpack packs."""
    inner = _optional(annotation)
    if inner is not None:
        written = _written(inner, expression)
        if written == expression:
            return expression
        return f"(None if {expression} is None else {written})"
    if dataclasses.is_dataclass(annotation):
        return f"({', '.join(_fields_written(typing.cast(type, annotation), expression))},)"
    elements = _elements(annotation)
    if elements is None:
        return expression
    if len(elements) == 2 and elements[1] is Ellipsis:
        variable = (
            expression.partition(".")[0].partition("[")[0] + "x"
        )  # unlike an enclosing loop's
        written = _written(elements[0], variable)
        return expression if written == variable else f"[{written} for {variable} in {expression}]"
    parts = [_written(element, f"{expression}[{i}]") for i, element in enumerate(elements)]
    return f"({', '.join(parts)},)"


def _checks(annotation: Any, value: str, label: str, names: dict[str, Any]) -> list[str]:
    """Statements that check the variable `value` and turn it into what the dataclass holds."""
    inner = _optional(annotation)
    if inner is not None:
        checks = _checks(inner, value, label, names)
        return [f"if {value} is not None:", *("    " + line for line in checks)]
    wrong = f"wrong({label!r}, {_name(annotation)!r}, {value})"
    if annotation is Uuid:
        return [f"if type({value}) is not bytes or len({value}) != 16: {wrong}"]
    primitive = "bytes" if annotation == Buffer else PRIMITIVES.get(annotation)
    if primitive is not None:
        return [f"if type({value}) is not {primitive}: {wrong}"]
    lines = [f"if type({value}) is not list: {wrong}"]
    function = f"f{len(names)}"
    if dataclasses.is_dataclass(annotation):
        names[function] = reader(typing.cast(type, annotation))
        return [*lines, f"{value} = {function}({value})"]
    elements = _elements(annotation)
    if elements is None:
        raise TypeError(f"{label}: no row codec for {annotation}")
    if len(elements) == 2 and elements[1] is Ellipsis:
        names[function] = _element_reader(elements[0], label)
        return [*lines, f"{value} = tuple([{function}(x) for x in {value}])"]
    lines += [f"if len({value}) != {len(elements)}: {wrong}"]
    functions = []
    for element in elements:
        names[f"f{len(names)}"] = _element_reader(element, label)
        functions.append(f"f{len(names) - 1}")
    calls = ", ".join(f"{f}({value}[{i}])" for i, f in enumerate(functions))
    return [*lines, f"{value} = ({calls},)"]


def _element_reader(annotation: Any, label: str) -> Callable[[Any], Any]:
    if dataclasses.is_dataclass(annotation):
        cls = typing.cast(type, annotation)
        read = reader(cls)
        return lambda value: (
            read(value) if type(value) is list else _wrong(label, _name(cls), value)
        )
    names: dict[str, Any] = {"wrong": _wrong}
    checks = _checks(annotation, "x", f"{label}[]", names)
    exec("\n    ".join(["def read(x):", *checks, "return x"]), names)
    element: Callable[[Any], Any] = names["read"]
    return element


def _filler(cls: type, head: int) -> Callable[[Row], Row]:
    """Makes a row of another width fit: cut, or completed by the defaults, as they are written."""
    fields = dataclasses.fields(cls)
    hints = typing.get_type_hints(cls)
    width = head + len(fields)
    defaults: list[Any] = []
    for field in fields:
        if field.default is dataclasses.MISSING:
            defaults.clear()  # only those after the last required field can be missing
        else:
            write = eval(f"lambda d: {_written(hints[field.name], 'd')}")
            defaults.append(_as_read(write(field.default)))
    required = width - len(defaults)

    def fill(row: Row) -> Row:
        if len(row) < required:
            raise ProtocolError(
                f"{cls.__name__} has {len(row) - head} fields, {required - head} are required"
            )
        return [*row, *defaults[len(row) - required :]] if len(row) < width else row[:width]

    return fill


def _as_read(value: Any) -> Any:
    """As unpacking what was packed would give it: arrays are lists."""
    return [_as_read(x) for x in value] if isinstance(value, tuple | list) else value


def _optional(annotation: Any) -> Any:
    """X of `X | None`, else None."""
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return None
    arguments = typing.get_args(annotation)
    if type(None) not in arguments:
        return None
    rest = [a for a in arguments if a is not type(None)]
    return rest[0] if len(rest) == 1 else Buffer


def _elements(annotation: Any) -> tuple[Any, ...] | None:
    return typing.get_args(annotation) if typing.get_origin(annotation) is tuple else None


def _name(annotation: Any) -> str:
    return getattr(annotation, "__name__", str(annotation))


def _wrong(label: str, expected: str, value: object) -> NoReturn:
    raise ProtocolError(f"{label}: expected {expected}, got {type(value).__name__}")

"""Dataclasses to msgpack rows and back: readers and writers compiled from the shapes of the
classes.

A row is the array of a dataclass' values in order of declaration. A reader skips elements that it
does not know at the end, and fills in the defaults of missing trailing ones. A field may therefore
be added at the end, with a default, without a new version. A reader checks every value against its
type and its bound (`quorum/shapes.py`), and raises a ProtocolError that names the field. A writer
checks nothing.
`messages.py` bounds the number of elements of a whole frame before they are built.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

from quorate.quorum.node_message_bounds import Bytes, Items, Range
from quorate.quorum.seams import ProtocolError
from quorate.quorum.shapes import Shape, Type, shape_of
from quorate.quorum.unfrozen import unfrozen

Row = Sequence[Any]
MAX_UTF8 = 4  # the most bytes of one character


def writer(cls: type, head: int = 0) -> Callable[..., Row]:
    """Return `write(*head values, message) -> row`. The head precedes the fields."""
    names = [f"h{i}" for i in range(head)]
    body = ", ".join([*names, *_fields_written(shape_of(cls), "m")])
    write: Callable[..., Row] = eval(f"lambda {', '.join([*names, 'm'])}: ({body},)")
    return write


def reader(cls: type, head: int = 0) -> Callable[[Row], Any]:
    """Return `read(row) -> message`. The first `head` values of the row are not part of the
    message.

    The reader raises ProtocolError for a row that does not match the class."""
    return _reader(shape_of(cls), head)


def _reader(shape: Shape, head: int = 0) -> Callable[[Row], Any]:
    cls = cast(type, shape.cls)
    names: dict[str, Any] = {"cls": cls, "fill": _filler(shape, head), "wrong": _wrong}
    width = head + len(shape.parts)
    values = [f"v{i}" for i in range(len(shape.parts))]
    lines = ["def read(row):"]
    lines += [f"    if len(row) != {width}: row = fill(row)"]
    lines += [f"    {', '.join(['_'] * head + values)}, = row"] if width else []
    for value, (_, part) in zip(values, shape.parts, strict=True):
        lines += ["    " + line for line in _checks(part, value, names)]
    lines += _construction(cls, [name for name, _ in shape.parts], names)
    exec("\n".join(lines), names)
    read: Callable[[Row], Any] = names["read"]
    return read


def _construction(cls: type, fields: list[str], names: dict[str, Any]) -> list[str]:
    """Return the statements that make the message from the variables v0, v1, ...

    They assign the fields (`unfrozen.py`). A class without slots, or with a `__post_init__`, is
    called instead."""
    if cls.__dictoffset__ or hasattr(cls, "__post_init__"):
        arguments = ", ".join(f"{name}=v{i}" for i, name in enumerate(fields))
        return [f"    return cls({arguments})"]
    names["unfrozen"] = unfrozen(cls)
    values = [f"    m.{name} = v{i}" for i, name in enumerate(fields)]
    return ["    m = unfrozen()", *values, "    m.__class__ = cls", "    return m"]


def _fields_written(shape: Shape, expression: str) -> list[str]:
    return [_written(part, f"{expression}.{name}") for name, part in shape.parts]


def _written(shape: Shape, expression: str) -> str:
    """Return the Python expression that turns a value into what msgpack packs."""
    if shape.optional:
        written = _written(dataclasses.replace(shape, optional=False), expression)
        if written == expression:
            return expression
        return f"(None if {expression} is None else {written})"
    if shape.kind is Type.STRUCT:
        return f"({', '.join(_fields_written(shape, expression))},)"
    if shape.kind is Type.ARRAY:
        # Each nested loop needs a variable of its own name.
        variable = expression.partition(".")[0].partition("[")[0] + "x"
        written = _written(shape.parts[0][1], variable)
        return expression if written == variable else f"[{written} for {variable} in {expression}]"
    if shape.kind is Type.TUPLE:
        parts = [_written(part, f"{expression}[{i}]") for i, (_, part) in enumerate(shape.parts)]
        return f"({', '.join(parts)},)"
    return expression


def _checks(shape: Shape, value: str, names: dict[str, Any]) -> list[str]:
    """Return the statements that check the variable `value` and turn it into the field's value.

    The condition is inline, because every field of every message passes it."""
    if shape.optional:
        checks = _checks(dataclasses.replace(shape, optional=False), value, names)
        return [f"if {value} is not None:", *("    " + line for line in checks)]
    shape_name = _named(names, shape)
    lines = [f"if {_violated(shape, value, names)}: wrong({shape_name}, {value})"]
    if shape.kind is Type.STRUCT:
        return [*lines, f"{value} = {_named(names, _reader(shape))}({value})"]
    if shape.kind is Type.ARRAY:
        function = _named(names, _element_reader(shape.parts[0][1]))
        return [*lines, f"{value} = tuple([{function}(x) for x in {value}])"]
    if shape.kind is Type.TUPLE:
        functions = [_named(names, _element_reader(part)) for _, part in shape.parts]
        calls = ", ".join(f"{f}({value}[{i}])" for i, f in enumerate(functions))
        return [*lines, f"{value} = ({calls},)"]
    return lines


def _violated(shape: Shape, value: str, names: dict[str, Any]) -> str:
    """Return the expression that is true for a value of another type or outside of its bound."""
    bound = shape.bound
    match shape.kind, bound:
        case Type.INT, Range(low, high):
            return f"type({value}) is not int or not {low} <= {value} <= {high}"
        case Type.STR, Bytes(most):
            names["too_long"] = _too_long
            may_be = f"len({value}) > {most // MAX_UTF8} and too_long({value}, {most})"
            return f"type({value}) is not str or {may_be}"
        case Type.BYTES, Bytes(most):
            return f"type({value}) is not bytes or len({value}) > {most}"
        case Type.ARRAY, Items(most):
            return f"type({value}) is not list or len({value}) > {most}"
        case Type.TUPLE, _:
            return f"type({value}) is not list or len({value}) != {len(shape.parts)}"
        case Type.STRUCT, _:
            return f"type({value}) is not list"
        case Type.UUID, _:
            return f"type({value}) is not bytes or len({value}) != 16"
    return f"type({value}) is not bool"


def _named(names: dict[str, Any], value: object) -> str:
    name = f"n{len(names)}"
    names[name] = value
    return name


def _too_long(text: str, most: int) -> bool:
    return len(text) > most or len(text.encode()) > most


def _element_reader(shape: Shape) -> Callable[[Any], Any]:
    names: dict[str, Any] = {"wrong": _wrong}
    checks = _checks(shape, "x", names)
    exec("\n    ".join(["def read(x):", *checks, "return x"]), names)
    element: Callable[[Any], Any] = names["read"]
    return element


def _filler(shape: Shape, head: int) -> Callable[[Row], Row]:
    """Return the function that cuts a longer row, or completes a shorter one by the defaults."""
    width = head + len(shape.parts)
    defaults: list[Any] = []
    fields = dataclasses.fields(cast(type, shape.cls))
    for field, (_, part) in zip(fields, shape.parts, strict=True):
        if field.default is dataclasses.MISSING:
            defaults.clear()  # only fields after the last required one can be missing
        else:
            write = eval(f"lambda d: {_written(part, 'd')}")
            defaults.append(_as_read(write(field.default)))
    required = width - len(defaults)
    name = cast(type, shape.cls).__name__

    def fill(row: Row) -> Row:
        if len(row) < required:
            raise ProtocolError(
                f"{name} has {len(row) - head} fields, {required - head} are required"
            )
        return [*row, *defaults[len(row) - required :]] if len(row) < width else row[:width]

    return fill


def _as_read(value: Any) -> Any:
    """Return a written value as unpacking gives it: arrays are lists."""
    return [_as_read(x) for x in value] if isinstance(value, tuple | list) else value


EXPECTED = {
    Type.INT: "int",
    Type.BOOL: "bool",
    Type.STR: "str",
    Type.BYTES: "bytes",
    Type.UUID: "Uuid",
    Type.ARRAY: "tuple",
    Type.TUPLE: "tuple",
}
READ_AS = {Type.UUID: bytes, Type.ARRAY: list, Type.TUPLE: list, Type.STRUCT: list}
BY_NAME = {"int": int, "bool": bool, "str": str, "bytes": bytes}


def _wrong(shape: Shape, value: Any) -> NoReturn:
    """Raise the ProtocolError of a refused value. The error contains no text that the peer
    chose."""
    expected = EXPECTED.get(shape.kind) or cast(type, shape.cls).__name__
    wanted = READ_AS.get(shape.kind) or BY_NAME[expected]
    found: type = type(value)
    if found is not wanted:
        raise ProtocolError(f"{shape.label}: expected {expected}, got {found.__name__}")
    match shape.bound:
        case Range(low, high):
            reason = f"{value} is not in {low}..{high}"
        case Bytes(most):
            size = len(value.encode() if isinstance(value, str) else value)
            reason = f"{size} bytes, at most {most} are allowed"
        case Items(most):
            reason = f"{len(value)} elements, at most {most} are allowed"
        case _:
            reason = f"expected {expected}, got another size: {len(value)}"
    raise ProtocolError(f"{shape.label}: {reason}")

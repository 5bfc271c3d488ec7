"""Compiles the reader in steps of one (class, version, flexible).

The reader `read(buffer, position, left)` is a generator that returns the same as the reader of
`reader_compiler.py`. It pauses between two elements of an array when it has read SLICE_BYTES since
its last pause.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.layout import Field, Layout, layout
from quorate.quorum.protocol.reader_compiler import ReaderEmitter, Role
from quorate.quorum.seams import Buffer

ReadInSteps = Callable[[Buffer, int, list[int]], IncrementalWork[tuple[Any, int]]]
"""The list holds the number of elements that the message may still have, and the position of the
next pause."""
SLICE_BYTES = 4096
"""The bytes of elements between two pauses. An element has at least one byte, and the elements in
this number of bytes take about 1 ms."""
SLICE_NUMBERS = 4096
"""The numbers of an array that the reader in steps unpacks in one step. An array of uuids is read
in one step."""


@cache
def compile_reader_in_steps(cls: type, version: int, flexible: bool) -> ReadInSteps:
    """Return the reader in steps of `cls` in `version`.

    Raise TypeError as `compile_reader` does."""
    return _compile_nested_reader_in_steps(cls, version, flexible, Role.of(cls))


@cache
def _compile_nested_reader_in_steps(
    cls: type, version: int, flexible: bool, role: Role
) -> ReadInSteps:
    read: Any = _StepsEmitter(layout(cls, version, flexible), role, top=False).compiled()
    return read  # type: ignore[no-any-return]


def is_divided(field: Field, version: int, flexible: bool) -> bool:
    """Return True if the field is or contains an array, in which the reader in steps may pause."""
    if field.array:
        return True
    return field.struct is not None and any(
        is_divided(inner, version, flexible)
        for inner in layout(field.struct, version, flexible).plain
    )


class _StepsEmitter(ReaderEmitter):
    """Tagged fields are read without a pause: no tagged field of a request is an array."""

    def __init__(self, plan: Layout, role: Role, *, top: bool) -> None:
        super().__init__(plan, role, top=top)
        self.arguments = ", left"
        self.in_tags = False

    def construct(self) -> None:
        if not any(
            is_divided(each, self.plan.version, self.plan.flexible) for each in self.plan.plain
        ):
            self.source.line("yield from ()")  # without a pause it is still a generator
        super().construct()

    def struct(self, field: Field) -> None:
        plan, line = self.plan, self.source.line
        if self.in_tags or not is_divided(field, plan.version, plan.flexible):
            super().struct(field)
            return
        assert field.struct is not None
        nested = _compile_nested_reader_in_steps(
            field.struct, plan.version, plan.flexible, self.role
        )
        read = self.bind("read", nested)
        if not field.nullable:
            line(f"f_{field.name}, pos = yield from {read}(buf, pos, left)")
            return
        with self.source.block("if buf[pos] > 127:"):
            line(f"f_{field.name}, pos = None, pos + 1")
        with self.source.block("else:"):
            line(f"f_{field.name}, pos = yield from {read}(buf, pos + 1, left)")

    def numbers(self, field: Field, target: str, count: str) -> None:
        if self.in_tags or field.kind == "uuid":
            super().numbers(field, target, count)
            return
        line = self.source.line
        with self.source.block(f"if {count} <= {SLICE_NUMBERS}:"):
            super().numbers(field, target, count)
            self.pause()
        with self.source.block("else:"):
            items, some = self.source.name("items"), self.source.name("some")
            line(f"{items} = []")
            with self.source.block(f"while {count}:"):
                line(f"m = min({count}, {SLICE_NUMBERS})")
                super().numbers(field, some, "m")
                line(f"{items} += {some}")
                line(f"{count} -= m")
                line("yield")
            line(f"{target} = tuple({items})")

    def pause(self) -> None:
        if self.in_tags:
            return
        with self.source.block("if pos >= left[1]:"):
            self.source.line("yield")
            self.source.line(f"left[1] = pos + {SLICE_BYTES}")

    def tags(self) -> None:
        self.in_tags = True
        super().tags()
        self.in_tags = False

"""Compiles the writer of one (class, version, flexible): `write(out, value)` appends to `out`.

Fields outside of the version are left out. Tagged fields are written in ascending order, and only
if they differ from their default. A value of the wrong type, or None where null is not allowed,
raises an error, which `codec.py` turns into EncodeError. A string that is too long raises an error,
too, but the writer shortens a string whose bound is `clipped` (`field_bounds.py`).

The writer in steps, `write(out, value, pace)`, is a generator that appends the same bytes. It
pauses between two elements of an array when it has written SLICE_BYTES since its last pause.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Sequence
from functools import cache
from typing import Any

from quorate.quorum.clipped import clip_bytes
from quorate.quorum.protocol.code_builder import CodeBuilder
from quorate.quorum.protocol.field_bounds import MAX_STRING_BYTES
from quorate.quorum.protocol.layout import FIXED, Field, Layout, element_of, layout
from quorate.quorum.protocol.reader_compiler import runs
from quorate.quorum.protocol.varint import write_uvarint

Write = Callable[[bytearray, Any], None]
"""Appends a value to the output. If it raises an error, the output may hold a part of the value."""
WriteInSteps = Callable[[bytearray, Any, list[int]], Generator[None, None, None]]
"""The list holds one number: the output length at which the writer pauses next."""
SLICE_BYTES = 8192
"""The bytes that a writer in steps appends between two pauses. One element may exceed it."""


@cache
def compile_writer(cls: type, version: int, flexible: bool) -> Write:
    """Return the writer of `cls` in `version`."""
    return _Emitter(layout(cls, version, flexible)).compiled()


def _compile_writer_in_steps(cls: type, version: int, flexible: bool) -> WriteInSteps:
    write: WriteInSteps = _StepsEmitter(layout(cls, version, flexible)).compiled()
    return write


def _array_inside(cls: type, version: int, flexible: bool) -> bool:
    """Return True if a value of `cls` holds arrays that the writer in steps divides."""
    return any(
        _is_divided(field, version, flexible) for field in layout(cls, version, flexible).plain
    )


def _is_divided(field: Field, version: int, flexible: bool) -> bool:
    if field.array:
        return field.kind not in FIXED
    return field.struct is not None and _has_arrays(field.struct, version, flexible)


# Typed by hand, because mypy considers classes unhashable.
compile_writer_in_steps: Callable[[type, int, bool], WriteInSteps] = cache(_compile_writer_in_steps)
_has_arrays: Callable[[type, int, bool], bool] = cache(_array_inside)


class _Emitter:
    ARGUMENTS = "out, m"

    def __init__(self, plan: Layout) -> None:
        self.plan = plan
        self.source = CodeBuilder()
        self.bind = self.source.constant
        self.uvarint = self.bind("write_uvarint", write_uvarint)

    def compiled(self) -> Write:
        plan = self.plan
        name = f"write_{plan.cls.__name__}_v{plan.version}"
        with self.source.block(f"def {name}({self.ARGUMENTS}):"):
            for fixed, fields in runs(plan.plain):
                if fixed:
                    self.fixed_run(fields)
                else:
                    self.source.line(f"v = m.{fields[0].name}")
                    self.value(fields[0], "v", "out")
            if plan.flexible:
                self.tags()
            self.source.line("return None")
        return self.source.function(name)

    def fixed_run(self, fields: Sequence[Field]) -> None:
        packing = struct.Struct(">" + "".join(FIXED[field.kind] for field in fields))
        values = ", ".join(f"m.{field.name}" for field in fields)
        self.source.line(f"out += {self.bind('pack', packing.pack)}({values})")

    def value(self, field: Field, value: str, out: str) -> None:
        if field.fixed:
            pack = self.bind("pack", struct.Struct(">" + FIXED[field.kind]).pack)
            self.source.line(f"{out} += {pack}({value})")
        elif field.nullable:
            with self.source.block(f"if {value} is None:"):
                self.source.line(f"{out} += {self.null(field)!r}")
            with self.source.block("else:"):
                self.present(field, value, out)
        else:
            self.present(field, value, out)

    def null(self, field: Field) -> bytes:
        if field.struct is not None and not field.array:
            return b"\xff"
        if self.plan.flexible:
            return b"\x00"
        return b"\xff\xff" if field.kind == "string" and not field.array else b"\xff" * 4

    def present(self, field: Field, value: str, out: str) -> None:
        line = self.source.line
        if field.array:
            self.array(field, value, out)
        elif field.struct is not None:
            if field.nullable:
                line(f"{out}.append(1)")
            write = compile_writer(field.struct, self.plan.version, self.plan.flexible)
            line(f"{self.bind('write', write)}({out}, {value})")
        elif field.kind == "string":
            self.string(field, value, out)
        else:
            self.length(value, out, "i")
            line(f"{out} += {value}")

    def string(self, field: Field, value: str, out: str) -> None:
        """Generate the writing of a string. One that is too long raises ValueError, also in
        flexible versions (see MAX_STRING_BYTES)."""
        line = self.source.line
        data = self.source.name("data")
        line(f"{data} = {value}.encode()")
        if field.bound is not None and field.bound.clipped:
            with self.source.block(f"if len({data}) > {field.bound.limit}:"):
                line(f"{data} = {self.bind('clip', clip_bytes)}({data}, {field.bound.limit})")
            self.length(data, out, "h")
            line(f"{out} += {data}")
            return
        most = MAX_STRING_BYTES  # some strings of old records have a larger bound
        if field.bound is not None and self.plan.flexible:
            most = max(most, field.bound.limit)
        with self.source.block(f"if len({data}) > {most}:"):
            where = f"{self.plan.cls.__name__}.{field.name}"
            line(f'raise ValueError(f"{where} has {{len({data})}} bytes, more than {most}")')
        self.length(data, out, "h")
        line(f"{out} += {data}")

    def length(self, value: str, out: str, classic_format: str) -> None:
        line = self.source.line
        if not self.plan.flexible:
            pack = self.bind("pack", struct.Struct(">" + classic_format).pack)
            line(f"{out} += {pack}(len({value}))")
            return
        line(f"n = len({value}) + 1")
        with self.source.block("if n < 128:"):
            line(f"{out}.append(n)")
        with self.source.block("else:"):
            line(f"{self.uvarint}({out}, n)")

    def array(self, field: Field, value: str, out: str) -> None:
        line = self.source.line
        self.length(value, out, "i")
        if field.kind == "uuid":
            line(f"{out} += b''.join({value})")
        elif field.kind in FIXED:
            pack = self.bind("pack", struct.pack)
            line(f"{out} += {pack}(f'>{{len({value})}}{FIXED[field.kind]}', *{value})")
        else:
            item = self.source.name("item")
            with self.source.block(f"for {item} in {value}:"):
                self.present(element_of(field), item, out)

    def tags(self) -> None:
        line = self.source.line
        tagged = self.plan.tagged
        if not tagged:
            line("out.append(0)")
            return
        present = []
        for field in tagged:
            line(f"t_{field.name} = m.{field.name}")
            present.append(f"({self.differs(field)})")
        line(f"tags = {' + '.join(present)}")
        line(f"{self.uvarint}(out, tags)")
        with self.source.block("if tags:"):
            for field in tagged:
                with self.source.block(f"if {self.differs(field)}:"):
                    line("body = bytearray()")
                    self.value(field, f"t_{field.name}", "body")
                    line(f"{self.uvarint}(out, {field.tag})")
                    line(f"{self.uvarint}(out, len(body))")
                    line("out += body")

    def differs(self, field: Field) -> str:
        if field.default is None:
            return f"t_{field.name} is not None"
        return f"t_{field.name} != {self.bind('default', field.default)}"


class _StepsEmitter(_Emitter):
    """Generates the writer in steps. Tagged fields are written without a pause, because none is
    long."""

    ARGUMENTS = "out, m, pace"

    def compiled(self) -> Any:
        plan = self.plan
        if not _has_arrays(plan.cls, plan.version, plan.flexible):
            return _without_pause(compile_writer(plan.cls, plan.version, plan.flexible))
        return super().compiled()

    def present(self, field: Field, value: str, out: str) -> None:
        plan, line = self.plan, self.source.line
        if out != "out" or field.array or not _is_divided(field, plan.version, plan.flexible):
            super().present(field, value, out)
            return
        assert field.struct is not None
        if field.nullable:
            line(f"{out}.append(1)")
        write = compile_writer_in_steps(field.struct, plan.version, plan.flexible)
        line(f"yield from {self.bind('write', write)}({out}, {value}, pace)")

    def array(self, field: Field, value: str, out: str) -> None:
        if out != "out" or field.kind in FIXED:
            super().array(field, value, out)
            return
        line = self.source.line
        self.length(value, out, "i")
        item = self.source.name("item")
        with self.source.block(f"for {item} in {value}:"):
            self.present(element_of(field), item, out)
            with self.source.block(f"if len({out}) >= pace[0]:"):
                line("yield")
                line(f"pace[0] = len({out}) + {SLICE_BYTES}")


def _without_pause(write: Write) -> WriteInSteps:
    def write_in_one_step(
        out: bytearray, value: Any, pace: list[int]
    ) -> Generator[None, None, None]:
        write(out, value)
        yield from ()

    return write_in_one_step

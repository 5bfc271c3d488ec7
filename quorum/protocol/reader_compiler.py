"""Compiles the reader of one (class, version, flexible): `read(buffer, position) -> (value, end)`.

- The reader checks a length before it allocates memory for it. The length must fit in the rest of
  the buffer and in the declared bound (`field_bounds.py`).
- Each field of variable size in a request or a stored record needs a bound. Without one, the
  compilation raises TypeError. Fields of responses need none, but their strings have at most
  MAX_STRING_BYTES. A request also has a bound on the sum of the elements of its arrays
  (`Message.MAX_ELEMENTS`).
- Unknown tagged fields are skipped at every level (KIP-482).
- `bytes` and `records` are memoryviews of the buffer. Strings must be valid UTF-8.
- The reader raises DecodeError for a length that does not fit and for null where it is not allowed.
- The reader raises IndexError or struct.error if the buffer ends inside a length or a value of
  fixed size. It raises UnicodeDecodeError for a string that is not UTF-8. `codec.py` turns these
  errors into DecodeError.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from quorate.quorum.protocol.code_builder import CodeBuilder
from quorate.quorum.protocol.field_bounds import (
    MAX_STRING_BYTES,
    MAX_TAGGED_BYTES,
    MAX_TAGGED_FIELDS,
)
from quorate.quorum.protocol.layout import (
    FIXED,
    SIZE_BYTES,
    Field,
    Layout,
    element_of,
    layout,
    min_size_bytes,
)
from quorate.quorum.protocol.varint import DecodeError, read_uvarint
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Buffer
from quorate.quorum.unfrozen import unfrozen

Read = Callable[[Buffer, int], tuple[Any, int]]
"""Takes a buffer and a position, and returns the value and the position after the value."""


class Role(enum.Enum):
    """The kind of a top-level class. Fields of requests and records need bounds, and only requests
    have a bound on the sum of all elements."""

    REQUEST = "request"
    RESPONSE = "response"
    RECORD = "record"

    @classmethod
    def of(cls, message: type) -> Role:
        """Return the role of the class `message`. A class that is not a Message is a stored
        record."""
        if not issubclass(message, Message):
            return cls.RECORD
        return cls.RESPONSE if message.__name__.endswith("Response") else cls.REQUEST


@cache
def compile_reader(cls: type, version: int, flexible: bool) -> Read:
    """Return the reader of `cls` in `version`. `flexible` says if the encoding has varint lengths
    and tagged fields (KIP-482).

    Raise TypeError if a field lacks the bound that its role demands, or if `cls` or a nested class
    has a `__post_init__` or no slots."""
    return ReaderEmitter(layout(cls, version, flexible), Role.of(cls), top=True).compiled()


@cache
def _compile_nested_reader(cls: type, version: int, flexible: bool, role: Role) -> Read:
    """Return the reader of a struct. Readers in a request take the number of elements that are
    left."""
    return ReaderEmitter(layout(cls, version, flexible), role, top=False).compiled()


def runs(fields: Sequence[Field]) -> Iterator[tuple[bool, list[Field]]]:
    """Yield (True, fields) for neighbouring fields of fixed size, and (False, [field]) for each
    other field."""
    for fixed, group in groupby(fields, key=lambda field: field.fixed):
        members = list(group)
        if fixed:
            yield True, members
        else:
            for member in members:
                yield False, [member]


class ReaderEmitter:
    """Generates the source of one reader. `plan` is the layout of the class (`layout.py`).

    `compiled` calls the other methods, which append lines to `source`. In these lines, `buf` is the
    buffer, `pos` the position, `n` the last length, and `f_NAME` the value of a field."""

    def __init__(self, plan: Layout, role: Role, *, top: bool) -> None:
        """Create an emitter. `top` is True for the class that callers decode, and False for nested
        structs."""
        self.plan = plan
        self.role = role
        self.top = top
        self.counts = ", left" if role is Role.REQUEST else ""
        self.arguments = "" if top else self.counts
        self.source = CodeBuilder()
        self.bind = self.source.constant
        self.error = self.bind("DecodeError", DecodeError)
        self.uvarint = self.bind("read_uvarint", read_uvarint)

    def compiled(self) -> Read:
        """Generate the source and return the compiled reader."""
        plan, line = self.plan, self.source.line
        name = f"read_{plan.cls.__name__}_v{plan.version}"
        with self.source.block(f"def {name}(buf, pos{self.arguments}):"):
            if self.top and self.counts:
                line(f"left = [{plan.cls.MAX_ELEMENTS}]")  # type: ignore[attr-defined]
            if any(not field.fixed for field in plan.plain) or plan.flexible:
                line("limit = len(buf)")
            for fixed, fields in runs(plan.plain):
                if fixed:
                    self.fixed_run(fields)
                else:
                    self.value(fields[0])
            if plan.flexible:
                self.tags()
            self.construct()
        return self.source.function(name)

    def construct(self) -> None:
        """Generate the construction of the value. Raise TypeError if the class does not allow it.

        The lines assign the fields (`unfrozen.py`) and call no `__init__`. The class must therefore
        have slots and no `__post_init__`."""
        cls, line = self.plan.cls, self.source.line
        if hasattr(cls, "__post_init__") or cls.__dictoffset__:
            raise TypeError(f"{cls.__name__} must be a dataclass with slots and no __post_init__")
        line(f"m = {self.bind('unfrozen', unfrozen(cls))}()")
        read = {field.name for field in (*self.plan.plain, *self.plan.tagged)}
        for name, default in self.plan.defaults:
            value = f"f_{name}" if name in read else self.bind("default", default)
            line(f"m.{name} = {value}")
        line(f"m.__class__ = {self.bind('cls', cls)}")
        line("return m, pos")

    def fixed_run(self, fields: Sequence[Field]) -> None:
        """Generate the reading of fields of fixed size with one call."""
        packing = struct.Struct(">" + "".join(FIXED[field.kind] for field in fields))
        targets = ", ".join(f"f_{field.name}" for field in fields)
        self.source.line(f"{targets}, = {self.bind('unpack', packing.unpack_from)}(buf, pos)")
        self.source.line(f"pos += {packing.size}")

    def value(self, field: Field) -> None:
        """Generate the reading of one field."""
        if field.fixed:
            self.fixed_run([field])
        elif field.array:
            self.array(field)
        elif field.struct is not None:
            self.struct(field)
        else:
            self.sized(field)

    def length(self, field: Field, classic_bytes: int) -> None:
        """Generate the reading of a length into `n`. -1 means null.

        A flexible version encodes the length as a varint. A classic version encodes it in
        `classic_bytes` bytes, 2 or 4."""
        line = self.source.line
        if self.plan.flexible:
            line("n = buf[pos]")
            line("pos += 1")
            with self.source.block("if n > 127:"):
                line(f"n, pos = {self.uvarint}(buf, pos - 1)")
            line("n -= 1")
        else:
            packing = struct.Struct(">h" if classic_bytes == 2 else ">i")
            line(f"n, = {self.bind('unpack', packing.unpack_from)}(buf, pos)")
            line(f"pos += {classic_bytes}")

    def null(self, field: Field) -> None:
        """Generate the branch for a negative length: null if -1 is allowed, and else an error. The
        caller generates the `else` branch."""
        with self.source.block("if n < 0:"):
            if field.nullable:
                with self.source.block("if n != -1:"):
                    self.fail(field, "length {n} is negative")
                self.source.line(f"f_{field.name} = None")
            else:
                self.fail(field, "length {n} where null is not allowed")

    def fail(self, field: Field, why: str) -> None:
        """Generate a DecodeError that names the field, its version and its position."""
        where = f"{self.plan.cls.__name__}.{field.name} v{self.plan.version}"
        self.source.line(f'raise {self.error}(f"{where} at {{pos}}: {why}")')

    def sized(self, field: Field) -> None:
        """Generate the reading of a string, of bytes or of records."""
        line = self.source.line
        self.length(field, 2 if field.kind == "string" else 4)
        self.null(field)
        with self.source.block("else:"):
            limit = self.limit(field)
            if limit is not None:
                with self.source.block(f"if n > {limit}:"):
                    self.fail(field, f"{{n}} bytes, at most {limit}")
            line("end = pos + n")
            with self.source.block("if end > limit:"):
                self.fail(field, "{n} bytes wanted, {limit - pos} left")
            if field.kind == "string":
                line(f"f_{field.name} = str(buf[pos:end], 'utf-8')")
            else:
                line(f"f_{field.name} = memoryview(buf)[pos:end]")
            line("pos = end")

    def limit(self, field: Field) -> int | None:
        """Return the largest size of the value in bytes, or None if only the buffer bounds it.

        Raise TypeError if a field of a request or record has no bound. A bound with the flag
        `clipped` does not count, because only writers apply it (`Bound`)."""
        if field.bound is not None and not field.bound.clipped:
            return field.bound.limit
        if self.role is not Role.RESPONSE:
            raise TypeError(f"{self.plan.cls.__name__}.{field.name} needs a bound: wire(bound=...)")
        return MAX_STRING_BYTES if field.kind == "string" else None

    def struct(self, field: Field) -> None:
        """Generate the reading of a struct."""
        read = self.nested(field)
        if not field.nullable:
            self.source.line(f"f_{field.name}, pos = {read}(buf, pos{self.counts})")
            return
        # A nullable struct is preceded by one byte: negative is null.
        with self.source.block("if buf[pos] > 127:"):
            self.source.line(f"f_{field.name}, pos = None, pos + 1")
        with self.source.block("else:"):
            self.source.line(f"f_{field.name}, pos = {read}(buf, pos + 1{self.counts})")

    def nested(self, field: Field) -> str:
        """Bind the reader of a nested struct, and return its name in the source."""
        assert field.struct is not None
        plan = self.plan
        read = _compile_nested_reader(field.struct, plan.version, plan.flexible, self.role)
        return self.bind("read", read)

    def array(self, field: Field) -> None:
        """Generate the reading of an array."""
        line = self.source.line
        self.length(field, 4)
        self.null(field)
        with self.source.block("else:"):
            with self.source.block(f"if n * {self.element_bytes(field)} > limit - pos:"):
                self.fail(field, "{n} elements do not fit in {limit - pos} bytes")
            self.count(field)
            if field.kind in FIXED:
                self.numbers(field, f"f_{field.name}", "n")
                return
            items = self.source.name("items")
            line(f"{items} = []")
            with self.source.block("for _ in range(n):"):
                element = element_of(field)
                self.value(element)
                line(f"{items}.append(f_{element.name})")
                self.pause()
            line(f"f_{field.name} = tuple({items})")

    def numbers(self, field: Field, target: str, count: str) -> None:
        """Generate the reading of `count` values of fixed size into `target`."""
        kind = FIXED[field.kind]
        unpack = self.bind("unpack", struct.unpack_from)
        form = f"'>' + '16s' * {count}" if field.kind == "uuid" else f"f'>{{{count}}}{kind}'"
        self.source.line(f"{target} = {unpack}({form}, buf, pos)")
        self.source.line(f"pos += {count} * {SIZE_BYTES[field.kind]}")

    def pause(self) -> None:
        """Generate nothing. The subclass in `incremental_reader_compiler.py` generates a pause,
        which follows each element of an array."""

    def count(self, field: Field) -> None:
        """Generate the check of the element count `n` against the bounds of the array and of the
        request. Raise TypeError if the array needs a bound and has none."""
        if field.count is not None:
            with self.source.block(f"if n > {field.count.limit}:"):
                self.fail(field, f"{{n}} elements, at most {field.count.limit}")
        elif self.role is not Role.RESPONSE:
            raise TypeError(f"{self.plan.cls.__name__}.{field.name} needs a bound: wire(count=...)")
        if self.counts:
            self.source.line("left[0] -= n")
            with self.source.block("if left[0] < 0:"):
                self.fail(field, "the request has too many elements in all")

    def element_bytes(self, field: Field) -> int:
        """Return the smallest encoded size of one element, in bytes."""
        if field.kind in FIXED:
            return SIZE_BYTES[field.kind]
        if field.struct is not None:
            return min_size_bytes(field.struct, self.plan.version, self.plan.flexible)
        return 1 if self.plan.flexible else 2

    def tags(self) -> None:
        """Generate the reading of the tagged fields. Unknown tags are skipped."""
        line = self.source.line
        for field in self.plan.tagged:
            line(f"f_{field.name} = {self.bind('default', field.default)}")
        line("tags = buf[pos]")
        line("pos += 1")
        with self.source.block("if tags:"):
            with self.source.block(f"if tags > {MAX_TAGGED_FIELDS}:"):
                line(f'raise {self.error}(f"{{tags}} tagged fields, at most {MAX_TAGGED_FIELDS}")')
            with self.source.block("for _ in range(tags):"):
                for number in ("tag", "size"):
                    line(f"{number} = buf[pos]")
                    line("pos += 1")
                    with self.source.block(f"if {number} > 127:"):
                        line(f"{number}, pos = {self.uvarint}(buf, pos - 1)")
                line("stop = pos + size")
                with self.source.block(f"if stop > limit or size > {MAX_TAGGED_BYTES}:"):
                    line(f'raise {self.error}(f"tag {{tag}} at {{pos}}: {{size}} bytes wanted")')
                for index, field in enumerate(self.plan.tagged):
                    with self.source.block(f"{'elif' if index else 'if'} tag == {field.tag}:"):
                        self.value(field)
                        with self.source.block("if pos != stop:"):
                            self.fail(field, "the tagged field ends elsewhere, not at {stop}")
                line("pos = stop")

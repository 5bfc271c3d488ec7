"""Reads the same field of many records in one step, with numpy over the bytes of a log.

`Cursors` hold one position in each of many records, and move through the records together. They
read only the usual encoding, and set `ok` to false for any other record:

- a number is too long;
- a field that may not be null is null;
- the record does not end where its fields end.

If `ok` is false, the values have no meaning. The caller must decode such a record on its own, which
also reports the error.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quorate.quorum.protocol.layout import SIZE_BYTES, Field, layout

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MAX_ROUNDS = 64
"""Maximum number of tags, or of elements that are structs, in one record.

Records with more of them are decoded one by one.
"""
MAX_TAG_BYTES = 5
"""Maximum length of a varint of 32 bits."""
DTYPES = {
    "bool": "u1",
    "int8": "i1",
    "int16": ">i2",
    "uint16": ">u2",
    "int32": ">i4",
    "uint32": ">u4",
    "int64": ">i8",
}


class Spans(NamedTuple):
    """Positions and lengths of strings or of arrays with fixed-size elements. A length of -1 is
    null.

    The length of an array counts elements."""

    start: Ints
    length: Ints

    def at(self, index: Any) -> Spans:
        """Return the spans at the indices or under the mask."""
        return Spans(self.start[index], self.length[index])


Values = Ints | Spans


class Bytes:
    """A buffer, with views of it as numbers that begin at any byte."""

    def __init__(self, buffer: bytes) -> None:
        self.bytes = np.frombuffer(buffer, np.uint8)
        self._views: dict[str, npt.NDArray[Any]] = {}

    def numbers(self, kind: str, at: Ints) -> npt.NDArray[Any]:
        """Return the numbers of this kind at the positions. Positions beyond the end are
        clipped.
        """
        view = self._views.get(kind)
        if view is None:
            view = self._views[kind] = self._view(np.dtype(DTYPES[kind]))
        found: npt.NDArray[Any] = view[np.minimum(at, len(view) - 1)]
        return found

    def structs(self, dtype: np.dtype[Any], at: Ints) -> npt.NDArray[Any]:
        """Return the structs at the positions. Raise IndexError if one ends beyond the end."""
        found: npt.NDArray[Any] = self._view(dtype)[at]
        return found

    def _view(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        count = len(self.bytes) - dtype.itemsize + 1
        return np.ndarray((count,), dtype, buffer=self.bytes, strides=(1,))


class Cursors:
    """Positions in many records of one buffer, which move together.

    `at` holds the current positions and `end` the ends of the records. All arrays have one element
    per record. A read beyond the end of the buffer returns an arbitrary value, and `finish` detects
    it."""

    def __init__(self, data: Bytes, at: Ints, end: Ints, version: int = 0) -> None:
        self._data = data
        self._version = version
        self.at = at
        self.end = end
        self.ok: Mask = np.ones(len(at), np.bool_)

    def __len__(self) -> int:
        return len(self.at)

    def byte(self) -> Ints:
        """Read one byte of each record."""
        value = self._data.bytes.take(self.at, mode="clip").astype(np.int64)
        self.at = self.at + 1
        return value

    def uvarint(self, max_bytes: int = MAX_TAG_BYTES) -> Ints:
        """Read an unsigned varint of each record, of at most `max_bytes` bytes."""
        value = self.byte()
        more = value > 0x7F
        shift = 0
        while more.any():
            shift += 7
            if shift == 7 * max_bytes:
                self.ok &= ~more
                break
            byte = self._data.bytes.take(self.at, mode="clip").astype(np.int64)
            value = np.where(more, value ^ (1 << shift) ^ (byte << shift), value)
            self.at = self.at + more
            more = more & (byte > 0x7F)
        return value

    def varint(self, max_bytes: int = MAX_TAG_BYTES) -> Ints:
        """Read a zigzag varint of each record, of at most `max_bytes` bytes."""
        value = self.uvarint(max_bytes)
        return (value >> 1) ^ -(value & 1)

    def read(self, field: Field, wanted: bool = True) -> Values | None:
        """Read a field of each record.

        Return None if the values are not wanted, or if they are floats, structs, or arrays of
        elements without a fixed size. The positions move in any case.
        """
        if not field.array and field.kind in SIZE_BYTES:
            start = self.at
            self.at = start + SIZE_BYTES[field.kind]
            return self._fixed(field, start) if wanted else None
        length = self.uvarint() - 1
        self.ok &= length >= (-1 if field.nullable else 0)
        start, counted = self.at, np.maximum(length, 0)
        if field.array and field.kind not in SIZE_BYTES:
            self._elements(field, counted)
            return None
        self.at = start + counted * (SIZE_BYTES[field.kind] if field.array else 1)
        return Spans(start, length) if wanted else None

    def _fixed(self, field: Field, start: Ints) -> Values | None:
        if field.kind == "uuid":
            return Spans(start, np.full(len(start), SIZE_BYTES["uuid"]))
        if field.kind not in DTYPES:
            return None
        values = self._data.numbers(field.kind, start).astype(np.int64)
        return np.minimum(values, 1) if field.kind == "bool" else values

    def _elements(self, field: Field, counts: Ints) -> None:
        """Skip the elements of an array whose elements have no fixed size."""
        for _, part in self._rounds(counts):
            if field.struct is None:
                part.read(replace(field, array=False, nullable=False), wanted=False)
            else:
                for each in layout(field.struct, self._version, True).plain:
                    part.read(each, wanted=False)
                part.tags((), ())

    def tags(self, known: tuple[Field, ...], wanted: Container[str]) -> dict[str, Values]:
        """Read the tagged fields. Return the wanted ones, with their defaults where they are
        absent.
        """
        found = {
            each.name: constant(each.default, len(self)) for each in known if each.name in wanted
        }
        for index, part in self._rounds(self.uvarint()):
            tag, size = part.uvarint(), part.uvarint()
            stop = part.at + size
            for field in known:
                if field.name not in found or not (chosen := np.flatnonzero(tag == field.tag)).size:
                    continue
                own = part._part(chosen)
                put(found[field.name], index[chosen], own.read(field))
                part.ok[chosen] &= own.ok & (own.at == stop[chosen])
            part.at = stop
        return found

    def finish(self) -> Mask:
        """Return a mask of the records that were read without error and exactly to their ends."""
        finished: Mask = self.ok & (self.at == self.end)
        return finished

    def _part(self, index: Ints) -> Cursors:
        return Cursors(self._data, self.at[index], self.end[index], self._version)

    def _rounds(self, counts: Ints) -> Iterator[tuple[Ints, Cursors]]:
        """Yield, in round n, the indices and cursors of the records that have an nth element."""
        self.ok &= counts <= MAX_ROUNDS
        self.at = self.at.copy()
        for done in range(min(int(counts.max(initial=0)), MAX_ROUNDS)):
            index = np.flatnonzero(counts > done)
            part = self._part(index)
            yield index, part
            self.at[index] = part.at
            self.ok[index] &= part.ok


def constant(value: Any, count: int) -> Values:
    """Return `count` copies of a number, a null or an empty value."""
    if value is None or not isinstance(value, int):
        length = -1 if value is None else len(value)
        return Spans(np.zeros(count, np.int64), np.full(count, length, np.int64))
    return np.full(count, value, np.int64)


def put(into: Values, index: Ints, values: Values | None) -> None:
    """Store `values` in `into` at the indices."""
    if isinstance(into, Spans):
        assert isinstance(values, Spans)
        into.start[index], into.length[index] = values
    else:
        assert isinstance(values, np.ndarray)
        into[index] = values

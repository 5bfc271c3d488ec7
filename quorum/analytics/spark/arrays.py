"""Arrow arrays made from the bytes of the log, without one Python object per value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

from quorate.quorum.analytics.spark.columns import Numbers
from quorate.quorum.analytics.spark.vectors import DTYPES, Bytes, Ints, Mask, Spans
from quorate.quorum.ids import Uuid, uuid_to_text

UUID_BYTES = 16
INT_BYTES = 4
NUMPY_TYPES = {pa.int64(): np.int64, pa.int32(): np.int32, pa.bool_(): np.bool_}


class Column:
    """One column while it is made. Each record type puts its rows in their places.

    Rows that no type fills are null."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._numbers: Ints | None = None
        self._valid: Mask | None = None
        self._spans: Spans | None = None

    def put(self, rows: Ints, filled: Numbers | Spans) -> None:
        """Store values at the rows."""
        if isinstance(filled, Spans):
            if self._spans is None:
                self._spans = Spans(
                    np.zeros(self._rows, np.int64), np.full(self._rows, -1, np.int64)
                )
            self._spans.start[rows], self._spans.length[rows] = filled
            return
        if self._numbers is None or self._valid is None:
            self._numbers = np.zeros(self._rows, np.int64)
            self._valid = np.zeros(self._rows, np.bool_)
        self._numbers[rows] = filled.values
        self._valid[rows] = True if filled.valid is None else filled.valid

    def array(self, data: Bytes, kind: pa.DataType, *, uuids: bool = False) -> pa.Array:
        """Return the Arrow array. Raise pa.ArrowInvalid if a text is not valid UTF-8."""
        if self._spans is not None:
            if uuids:
                return uuid_texts(data, self._spans)
            return texts(data, self._spans) if kind == pa.string() else lists(data, self._spans)
        assert self._numbers is not None and self._valid is not None
        values: npt.NDArray[Any] = self._numbers.astype(NUMPY_TYPES[kind])
        return pa.array(values, kind, mask=None if self._valid.all() else ~self._valid)


def texts(data: Bytes, spans: Spans) -> pa.Array:
    """Return a string array. Raise pa.ArrowInvalid if a text is not valid UTF-8."""
    offsets, index = _gathered(spans, 1)
    buffers = [_bitmap(spans.length >= 0), pa.py_buffer(offsets), pa.py_buffer(data.bytes[index])]
    made = pa.StringArray.from_buffers(len(spans.length), buffers[1], buffers[2], buffers[0])
    made.validate(full=True)
    return made


def lists(data: Bytes, spans: Spans) -> pa.Array:
    """Return an array of lists of int32."""
    offsets, index = _gathered(spans, INT_BYTES)
    elements = pa.array(data.numbers("int32", index).astype(np.int32))
    return pa.ListArray.from_buffers(
        pa.list_(pa.int32()),
        len(spans.length),
        [_bitmap(spans.length >= 0), pa.py_buffer(offsets)],
        children=[elements],
    )


def uuid_texts(data: Bytes, spans: Spans) -> pa.Array:
    """Return UUIDs as text. Each distinct UUID is converted only once, because there are few of
    them."""
    present = spans.length >= 0
    start = np.where(present, spans.start, 0)
    halves = np.empty((len(start), 2), DTYPES["int64"])
    for half in (0, 1):
        halves[:, half] = data.numbers("int64", start + half * UUID_BYTES // 2)
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(UUID_BYTES), len(start), [None, pa.py_buffer(halves)]
    )
    encoded = fixed.dictionary_encode()
    words = [uuid_to_text(Uuid(each)) for each in encoded.dictionary.to_pylist()]
    return named(words, encoded.indices.to_numpy(), present)


def named(words: list[str], code: Any, present: Mask | None = None) -> pa.Array:
    """Return a string array from indices into `words`, null where `present` is false."""
    mask = None if present is None or present.all() else ~present
    return pa.array(words, pa.string()).take(pa.array(code, pa.int32(), mask=mask))


def _gathered(spans: Spans, width: int) -> tuple[Any, Ints]:
    """Return Arrow's offsets, and the position in the log of each element."""
    count = np.maximum(spans.length, 0)
    offsets = np.zeros(len(count) + 1, np.int32)
    np.cumsum(count, out=offsets[1:])
    index = np.arange(offsets[-1]) * width
    index += np.repeat(spans.start - offsets[:-1].astype(np.int64) * width, count)
    return offsets, index


def _bitmap(valid: Mask) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))

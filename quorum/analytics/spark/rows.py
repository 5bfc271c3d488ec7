"""Conversion of a slice of the log to Arrow batches, as Spark's tasks run it.

The rows of one record type are made column by column, for all records of the type in one step
(`vectors.py`). Some records cannot be read this way: types with a column that is not vectorized,
and records with an unusual encoding. They are decoded one at a time with the codecs that a node
uses. Both ways give equal rows.

A record of an unknown type becomes a row with its type, its bytes and a remark, because the log of
a newer Kafka is still worth reading. A strict request raises NewerRecord for a newer version of a
known type. Damage becomes a row too (`remarks.py`), or an error if the request is strict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from quorate.quorum.analytics.log.damage import CONFLICT, DAMAGED_RECORD, Damage, Found, refuse
from quorate.quorum.analytics.log.errors import NewerRecord
from quorate.quorum.analytics.log.reading import read_batches
from quorate.quorum.analytics.log.segments import Slice
from quorate.quorum.analytics.spark.arrays import Column, named
from quorate.quorum.analytics.spark.columns import COLUMNS, FILLED_BY, UUIDS, Fill, Numbers
from quorate.quorum.analytics.spark.framed import Batch, Framed, framed
from quorate.quorum.analytics.spark.kinds import (
    HEAD_BYTES,
    Kind,
    heads_of,
    known,
    of_topics,
    of_types,
)
from quorate.quorum.analytics.spark.public_configs import public_configs
from quorate.quorum.analytics.spark.remarks import REMARK, is_newer, remarks_on
from quorate.quorum.analytics.spark.vectors import Cursors, Ints, Mask, Spans, Values, constant
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata.errors import MalformedRecord
from quorate.quorum.metadata.record_text import (
    control_message,
    metadata_message,
    text_of,
    type_name,
)
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.protocol.layout import layout
from quorate.quorum.protocol.varint import DecodeError

ROWS_PER_BATCH = 32_768
"""The number of rows after which an Arrow batch is completed."""
ARROW_TYPES: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "array<int>": pa.list_(pa.int32()),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True, slots=True)
class Request:
    """The part of the rows that a query needs.

    `columns` are the columns in their order. If `with_json` is false, the column `record` is empty.
    Rows of types that are not in `types` may be left out."""

    columns: tuple[str, ...] = tuple(COLUMNS)
    with_json: bool = True
    types: frozenset[str] | None = None
    strict: bool = False
    values: tuple[tuple[str, frozenset[Any]], ...] = ()
    """Pairs of a column and its values. Rows with other values may be left out."""
    chosen: frozenset[str] | None = None
    """Like `types`, but the last row that takes effect stays in every Arrow batch."""
    topics: frozenset[int] | None = None
    """The beginnings of topic ids (`of_topics`). Rows with another topic id may be left out, except
    the last row that takes effect in every Arrow batch."""


EVERYTHING = Request()


def arrow_batches(piece: Slice, request: Request = EVERYTHING) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the slice in the order of the log, and then the rows about its damage.

    If the request is strict, raise DamagedLog for damage, and NewerRecord for a newer version of a
    known record type."""
    damage: list[Damage] = []
    found: Found = refuse if request.strict else damage.append
    held: list[Batch] = []
    rows, buffer = 0, b""
    for header, buffer, position in read_batches(piece, found):
        held.append((header, position))
        rows += header.record_count
        if rows >= ROWS_PER_BATCH:
            for each in framed(held, buffer, found):
                yield from _made(each, piece, request, found)
            held, rows = [], 0
    for each in framed(held, buffer, found) if held else ():
        yield from _made(each, piece, request, found)
    for difference in piece.differences:
        # A conflict is no damage: Raft resolves it.
        (damage.append if difference.kind == CONFLICT else found)(difference)
    if remarks := remarks_on(piece, damage):
        yield pa.RecordBatch.from_pylist(remarks, arrow_schema(request.columns))


def _made(framed: Framed, piece: Slice, request: Request, found: Found) -> Iterator[pa.RecordBatch]:
    """Yield the Arrow batch of these records, or nothing if all of them are excluded."""
    heads = heads_of(framed)
    kinds = {int(head): known(int(head)) for head in np.unique(heads)}
    keep = (framed.offset >= piece.first_offset) & (framed.offset < piece.before)
    thinned = request.chosen is not None or request.topics is not None
    if thinned:
        last = np.flatnonzero(keep & effective(framed, piece))[-1:]
        if request.chosen is not None:
            keep &= of_types(request.chosen, heads, kinds)
        if request.topics is not None:
            keep &= of_topics(request.topics, framed, heads, kinds)
        keep[last] = True
    if request.types is not None:
        keep &= of_types(request.types, heads, kinds)
    if keep.any():
        whole = framed
        if not keep.all():
            framed, heads = framed.chosen(keep), heads[keep]
        rows = _Rows(framed, request)
        try:
            made = rows.read(heads, kinds).batch(piece)
        # A text is not valid UTF-8. The codecs raise an error that names the record.
        except pa.ArrowInvalid:
            rows = _Rows(framed, request)
            made = rows.read(heads, {}).batch(piece)
        if rows.damaged and thinned:
            # The last row may be the damaged one, so that an earlier record is the last.
            everything = replace(request, chosen=None, topics=None)
            yield from _made(whole, piece, everything, found)
            return
        for each in rows.damaged.values():
            found(each)
        yield _with_values(made, request)


def _with_values(made: pa.RecordBatch, request: Request) -> pa.RecordBatch:
    for name, values in request.values:
        if name in request.columns:
            column = made.column(name)
            made = made.filter(pc.is_in(column, pa.array(list(values), column.type)))
    return made


class _Rows:
    """The rows of one Arrow batch while they are made."""

    def __init__(self, framed: Framed, request: Request) -> None:
        self._framed = framed
        self._request = request
        self._names: list[str] = []
        self._type = np.zeros(len(framed), np.int64)
        self._version = np.zeros(len(framed), np.int64)
        self._columns: defaultdict[str, Column] = defaultdict(lambda: Column(len(framed)))
        self._pieces: defaultdict[str, list[tuple[list[int], pa.Array]]] = defaultdict(list)
        self._json: list[str | None] = [None] * len(framed)
        self.damaged: dict[int, Damage] = {}
        """The rows that cannot be decoded. `batch` leaves them out."""

    def read(self, heads: Ints, kinds: dict[int, Kind | None]) -> _Rows:
        """Read all records, those of known kinds with numpy and the others one by one."""
        left = np.ones(len(heads), np.bool_)
        for head, kind in kinds.items():
            if kind is None or not self._has_vectors(kind):
                continue
            if (rows := np.flatnonzero(heads == head)).size:
                read = rows[self._read_at_once(kind, rows)]
                left[read] = False
                self._is(read, kind.name, kind.version)
        self._read_one_by_one(np.flatnonzero(left).tolist())
        if self._request.with_json:
            self._write_json(np.flatnonzero(~left).tolist())
        return self

    def _has_vectors(self, kind: Kind) -> bool:
        """Return True if numpy can make all requested columns of this kind."""
        fills = kind.fills(self._request.columns)
        return all(fill.at_once is not None for fill in fills.values())

    def _is(self, rows: Ints | list[int], name: str, version: int) -> None:
        if name not in self._names:
            self._names.append(name)
        self._type[rows] = self._names.index(name)
        self._version[rows] = version

    def _read_at_once(self, kind: Kind, rows: Ints) -> Mask:
        """Read records of one kind. Return a mask of the rows that could be read.

        Configs with secret values are left to the other way, which hides the values."""
        framed = self._framed
        start = framed.value_start[rows] + HEAD_BYTES
        at = Cursors(framed.data, start, framed.value_end[rows], kind.version)
        fills = kind.fills(self._request.columns)
        values = _values(at, kind, {field for fill in fills.values() for field in fill.fields})
        ok = at.finish()
        if kind.cls is ConfigRecord and "value" in fills:
            resource_types, configs = values["resource_type"], values["name"]
            assert isinstance(resource_types, np.ndarray) and isinstance(configs, Spans)
            ok[ok] = public_configs(framed.data, resource_types[ok], configs.at(ok))
        for name, fill in fills.items():
            assert fill.at_once is not None
            made = fill.at_once(*(values[field] for field in fill.fields))
            if ok.all():
                self._columns[name].put(rows, made)
            else:
                self._columns[name].put(rows[ok], _only(made, ok))
        return ok

    def _read_one_by_one(self, rows: list[int]) -> None:
        by_kind: defaultdict[tuple[type, int], list[tuple[int, Any]]] = defaultdict(list)
        for row in rows:
            if (read := self._readable(row)) is not None:
                message, version = read
                by_kind[type(message), version].append((row, message))
        for (cls, version), found in by_kind.items():
            self._fill(cls, [row for row, _ in found], [message for _, message in found])
            for row, message in found:
                self._is([row], type_name(message), version)
                if self._request.with_json:
                    self._json[row] = text_of(message, version)

    def _readable(self, row: int) -> tuple[object, int] | None:
        """Return the decoded record and its version, or None if it is damaged."""
        offset = int(self._framed.offset[row])
        try:
            message, version = self._message(row)
        except (MalformedRecord, DecodeError) as error:
            text = f"the record at offset {offset} cannot be decoded: {error}"
            self._is([row], REMARK, 0)
            self.damaged[row] = Damage(DAMAGED_RECORD, offset, offset + 1, text)
            return None
        if self._request.strict and is_newer(message):
            raise NewerRecord(
                f"the record at offset {offset} is a {type_name(message)} of version {version}, "
                "which this version of Quorate cannot read"
            )
        return message, version

    def _message(self, row: int) -> tuple[object, int]:
        framed = self._framed
        if (special := framed.special.get(row)) is not None:
            record, is_control = special
            return control_message(record) if is_control else metadata_message(record)
        value = framed.buffer[framed.value_start[row] : framed.value_end[row]]
        return metadata_message(Record(0, 0, None, value))

    def _fill(self, cls: type, rows: list[int], messages: list[Any]) -> None:
        filled: dict[str, Fill] = FILLED_BY.get(cls, {})
        for name in self._request.columns:
            if name in filled:
                array = pa.array(filled[name].of(messages), ARROW_TYPES[COLUMNS[name]])
                self._pieces[name].append((rows, array))

    def _write_json(self, rows: list[int]) -> None:
        for row in rows:
            if (read := self._readable(row)) is not None:
                self._json[row] = text_of(*read)

    def batch(self, piece: Slice) -> pa.RecordBatch:
        """Return the Arrow batch with the requested columns, without the damaged records."""
        known = self._of_the_log(piece)
        arrays = [
            known[name]() if name in known else self._array(name, ARROW_TYPES[COLUMNS[name]])
            for name in self._request.columns
        ]
        made = pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._request.columns))
        if not self.damaged:
            return made
        return made.take(np.delete(np.arange(len(self._framed)), list(self.damaged)))

    def _of_the_log(self, piece: Slice) -> dict[str, Callable[[], pa.Array]]:
        """Return functions that make the columns which do not depend on the content of a record."""
        framed, snapshot, count = self._framed, piece.snapshot, len(self._framed)
        int32, int64 = pa.int32(), pa.int64()
        made = {
            **self._of_the_file(piece),
            "offset": lambda: pa.array(framed.offset, int64),
            "snapshot_index": lambda: pa.nulls(count, int32),
            "epoch": lambda: pa.array(framed.epoch, int64).cast(int32),
            "timestamp": lambda: pa.array(framed.timestamp_ms * 1000, ARROW_TYPES["timestamp"]),
            "timestamp_ms": lambda: pa.array(framed.timestamp_ms, int64),
            "effective": lambda: pa.array(effective(framed, piece)),
            "type": lambda: named(self._names, self._type),
            "version": lambda: pa.array(self._version, int64).cast(int32),
            "record": lambda: pa.array(self._json, pa.string()),
        }
        if snapshot is not None:
            last_offset = pa.scalar(snapshot.end_offset - 1, int64)
            made["offset"] = lambda: pa.repeat(last_offset, count)
            made["snapshot_index"] = lambda: pa.array(framed.offset, int64).cast(int32)
            made["epoch"] = lambda: pa.repeat(pa.scalar(snapshot.epoch, int32), count)
        return made

    def _of_the_file(self, piece: Slice) -> dict[str, Callable[[], pa.Array]]:
        count, origin = len(self._framed), piece.origin
        return {
            "cluster_id": lambda: pa.repeat(pa.scalar(origin.cluster_id, pa.string()), count),
            "node_id": lambda: pa.repeat(pa.scalar(origin.node_id, pa.int32()), count),
            "file": lambda: pa.repeat(pa.scalar(piece.path, pa.string()), count),
            "committed": lambda: self._committed(piece),
        }

    def _committed(self, piece: Slice) -> pa.Array:
        """Return true for the committed records, and for others false, or null if not known."""
        count, known = len(self._framed), piece.committed
        if piece.snapshot is not None:
            return pa.repeat(pa.scalar(True), count)
        committed = self._framed.offset < known.end_offset
        return pa.array(committed, mask=None if known.rest_is_known else ~committed)

    def _array(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return one column, from the rows read with numpy and those read one by one."""
        column = self._columns.get(name)
        count, pieces = len(self._framed), self._pieces[name]
        if column is None:
            made = pa.nulls(count, kind)
        else:
            made = column.array(self._framed.data, kind, uuids=name in UUIDS)
        if not pieces:
            return made
        index, place = np.arange(count), count
        for rows, array in pieces:
            index[rows] = np.arange(place, place + len(array))
            place += len(array)
        return pa.concat_arrays([made, *(array for _, array in pieces)]).take(pa.array(index))


def effective(framed: Framed, piece: Slice) -> Mask:
    """Return a mask: false for records of metadata transactions without effect."""
    mask: Mask = np.ones(len(framed), np.bool_)
    for each in piece.undone:
        first, end = np.searchsorted(framed.offset, (each.begin_offset, each.end_offset))
        mask[first:end] = False
    of_raft = [row for row, (_, is_control) in framed.special.items() if is_control]
    mask[of_raft] = True
    return mask


def _values(at: Cursors, kind: Kind, wanted: set[str]) -> dict[str, Values]:
    """Return the wanted fields of all records at the cursors: plain fields, then tagged fields.

    A field that the version does not have gets the default of the class."""
    plan = layout(kind.cls, kind.version, True)
    values: dict[str, Values] = {}
    for field in plan.plain:
        read = at.read(field, field.name in wanted)
        if read is not None:
            values[field.name] = read
    values |= at.tags(plan.tagged, wanted)
    for name in wanted - values.keys():
        values[name] = constant(dict(plan.defaults)[name], len(at))
    return values


def _only(filled: Numbers | Spans, ok: Mask) -> Numbers | Spans:
    if isinstance(filled, Spans):
        return filled.at(ok)
    return Numbers(filled.values[ok], None if filled.valid is None else filled.valid[ok])


def arrow_schema(columns: tuple[str, ...]) -> pa.Schema:
    """Return the Arrow schema of the columns."""
    return pa.schema([(name, ARROW_TYPES[COLUMNS[name]]) for name in columns])

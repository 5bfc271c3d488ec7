"""From a slice of the log to Arrow batches: what runs in Spark's tasks.

A record that this version does not know becomes a row with its type and its bytes (see
`readable.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from quorate.quorum.analytics.columns import COLUMNS, FILLED_BY
from quorate.quorum.analytics.segments import Slice, SnapshotId, read_batches
from quorate.quorum.log.batch import BatchHeader, records_of
from quorate.quorum.metadata.json_text import writer as json_writer
from quorate.quorum.readable import NAMES, Unknown, control_message, metadata_message

ROWS_PER_BATCH = 16_384
ARROW_TYPES: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "array<int>": pa.list_(pa.int32()),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
SEQUENCE = [("offset", "ascending"), ("snapshot_index", "ascending")]
SCHEMA = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in COLUMNS.items()])


def arrow_batches(piece: Slice, *, with_json: bool = True) -> Iterator[pa.RecordBatch]:
    """In the order of the log."""
    rows = _Rows(piece.snapshot, with_json)
    for header, data in read_batches(piece):
        rows.add(header, data)
        if rows.count >= ROWS_PER_BATCH:
            yield from rows.take()
    if rows.count:
        yield from rows.take()


Row = tuple[int, int, int, object]
"""Offset, epoch, time in ms, message."""


class _Rows:
    """Rows in the making, gathered by type of record: a type fills few columns, each at once."""

    def __init__(self, snapshot: SnapshotId | None, with_json: bool) -> None:
        self._snapshot = snapshot
        self._with_json = with_json
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self._by_type: defaultdict[tuple[type, int], list[Row]] = defaultdict(list)

    def add(self, header: BatchHeader, data: bytes) -> None:
        epoch, by_type = header.leader_epoch, self._by_type
        read = control_message if header.is_control else metadata_message
        for record in records_of(data, 0, header):
            message, version = read(record)
            row = (record.offset, epoch, record.timestamp_ms, message)
            by_type[type(message), version].append(row)
        self.count += header.record_count

    def take(self) -> list[pa.RecordBatch]:
        made = [self._of_type(*key, rows) for key, rows in self._by_type.items()]
        self._clear()
        table = pa.Table.from_batches(made)
        batches: list[pa.RecordBatch] = table.sort_by(SEQUENCE).combine_chunks().to_batches()
        return batches

    def _of_type(self, cls: type, version: int, rows: list[Row]) -> pa.RecordBatch:
        offsets, epochs, timestamps, messages = (list(each) for each in zip(*rows, strict=True))
        unknown = cls is Unknown
        columns: dict[str, list[Any]] = {
            "offset": offsets,
            "epoch": epochs,
            "timestamp": [each * 1000 for each in timestamps],
            "timestamp_ms": timestamps,
            "type": [each.type for each in messages] if unknown else [NAMES[cls]] * len(rows),
            "version": [version] * len(rows),
        }
        if self._snapshot is not None:
            columns["snapshot_index"] = offsets
            columns["offset"] = [self._snapshot.end_offset - 1] * len(rows)
            columns["epoch"] = [self._snapshot.epoch] * len(rows)
        for name, fill in FILLED_BY.get(cls, {}).items():
            columns[name] = fill.of(messages)
        if self._with_json:
            text = Unknown.text if unknown else json_writer(cls, version)
            columns["record"] = list(map(text, messages))
        return pa.RecordBatch.from_arrays(
            [
                pa.array(columns[field.name], field.type)
                if field.name in columns
                else pa.nulls(len(rows), field.type)
                for field in SCHEMA
            ],
            schema=SCHEMA,
        )

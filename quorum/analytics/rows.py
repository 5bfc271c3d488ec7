"""From a slice of the log to Arrow batches: what runs in Spark's tasks.

A record that this version does not know becomes a row with its type and its bytes; it is never an
error, because a newer Kafka's log is still worth reading.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from quorate.quorum.analytics.columns import COLUMNS, FILLED_BY
from quorate.quorum.analytics.segments import Slice, SnapshotId, read_batches
from quorate.quorum.log.batch import BatchHeader, records_of
from quorate.quorum.metadata.errors import UnknownRecord
from quorate.quorum.metadata.framing import TYPE_NAMES, decode_versioned
from quorate.quorum.metadata.json_text import json_text
from quorate.quorum.raft.control import (
    ControlType,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from quorate.quorum.rpc.kafka.codec import decode
from quorate.quorum.seams import Buffer

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

CONTROL_MESSAGES: dict[int, type] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}

_INT16 = struct.Struct(">h")


def arrow_batches(piece: Slice, *, with_json: bool = True) -> Iterator[pa.RecordBatch]:
    """In the order of the log."""
    rows = _Rows(piece.snapshot, with_json)
    for header, data in read_batches(piece):
        rows.add(header, data)
        if rows.count >= ROWS_PER_BATCH:
            yield from rows.take()
    if rows.count:
        yield from rows.take()


class _Rows:
    """Rows in the making, gathered by type of record: a type fills few columns, each at once."""

    def __init__(self, snapshot: SnapshotId | None, with_json: bool) -> None:
        self._snapshot = snapshot
        self._with_json = with_json
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self._by_type: dict[tuple[str, int, type], list[tuple[int, int, int, object]]] = {}

    def add(self, header: BatchHeader, data: bytes) -> None:
        epoch, by_type = header.leader_epoch, self._by_type
        for record in records_of(data, 0, header):
            assert record.value is not None
            if header.is_control:
                kind, version, message = _control(record.key, record.value)
            else:
                kind, version, message = _metadata(record.value)
            row = (record.offset, epoch, record.timestamp_ms, message)
            by_type.setdefault((kind, version, type(message)), []).append(row)
        self.count += header.record_count

    def take(self) -> list[pa.RecordBatch]:
        made = [self._of_type(*key, rows) for key, rows in self._by_type.items()]
        self._clear()
        table = pa.Table.from_batches(made)
        batches: list[pa.RecordBatch] = table.sort_by(SEQUENCE).combine_chunks().to_batches()
        return batches

    def _of_type(
        self, kind: str, version: int, cls: type, rows: list[tuple[int, int, int, object]]
    ) -> pa.RecordBatch:
        offsets, epochs, timestamps, messages = (list(each) for each in zip(*rows, strict=True))
        columns: dict[str, list[Any]] = {
            "offset": offsets,
            "epoch": epochs,
            "timestamp": [each * 1000 for each in timestamps],
            "timestamp_ms": timestamps,
            "type": [kind] * len(rows),
            "version": [version] * len(rows),
        }
        if self._snapshot is not None:
            columns["snapshot_index"] = offsets
            columns["offset"] = [self._snapshot.end_offset - 1] * len(rows)
            columns["epoch"] = [self._snapshot.epoch] * len(rows)
        for name, fill in FILLED_BY.get(cls, {}).items():
            columns[name] = fill(messages)
        if self._with_json:
            text = _dumps if cls is dict else json_text
            columns["record"] = [text(each, version) for each in messages]
        return pa.RecordBatch.from_arrays(
            [
                pa.array(columns[field.name], field.type)
                if field.name in columns
                else pa.nulls(len(rows), field.type)
                for field in SCHEMA
            ],
            schema=SCHEMA,
        )


def _dumps(shown: object, version: int) -> str:
    return json.dumps(shown, separators=(",", ":"))


def _metadata(value: Buffer) -> tuple[str, int, object]:
    try:
        record, version = decode_versioned(value)
    except UnknownRecord as unknown:
        kind = unknown.name or f"UNKNOWN_RECORD_{unknown.api_key}"
        return kind, unknown.version, {"apiKey": unknown.api_key, "frame": bytes(value).hex()}
    return TYPE_NAMES[type(record)], version, record


def _control(key: Buffer | None, value: Buffer) -> tuple[str, int, object]:
    assert key is not None
    (kind,) = _INT16.unpack_from(key, 2)
    (version,) = _INT16.unpack_from(value, 0)
    cls = CONTROL_MESSAGES.get(kind)
    if cls is None or version > _newest(cls):
        return _control_name(kind), version, {"type": kind, "value": bytes(value).hex()}
    return _control_name(kind), version, decode(cls, version, value)


def _newest(cls: type) -> int:
    return 1 if cls is LeaderChangeMessage else 0


@cache
def _control_name(kind: int) -> str:
    try:
        return ControlType(kind).name
    except ValueError:
        return f"UNKNOWN_CONTROL_{kind}"

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
from quorate.quorum.metadata.json_form import json_form
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

ROWS_PER_BATCH = 8192
ARROW_TYPES: dict[str, pa.DataType] = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "array<int>": pa.list_(pa.int32()),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
SCHEMA = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in COLUMNS.items()])

CONTROL_MESSAGES: dict[int, type] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
OTHER_RECORDS = {
    10: "DELEGATION_TOKEN_RECORD",
    11: "USER_SCRAM_CREDENTIAL_RECORD",
    14: "CLIENT_QUOTA_RECORD",
    18: "ACCESS_CONTROL_ENTRY_RECORD",
    19: "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
    22: "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
    26: "REMOVE_DELEGATION_TOKEN_RECORD",
}
"""Kafka's records of features that Quorate does not have: their type is shown, and their bytes."""

_INT16 = struct.Struct(">h")
_dumps = json.JSONEncoder(separators=(",", ":")).encode


def arrow_batches(piece: Slice, *, with_json: bool = True) -> Iterator[pa.RecordBatch]:
    rows = _Rows(with_json)
    for header, data in read_batches(piece):
        rows.add(header, data, piece.snapshot)
        if rows.count >= ROWS_PER_BATCH:
            yield rows.take()
    if rows.count:
        yield rows.take()


class _Rows:
    """Columns in the making: only what is said is stored, the rest is null in the end."""

    def __init__(self, with_json: bool) -> None:
        self._with_json = with_json
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self._columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}

    def add(self, header: BatchHeader, data: memoryview, snapshot: SnapshotId | None) -> None:
        for record in records_of(data, 0, header):
            assert record.value is not None
            if header.is_control:
                kind, version, message = _control(record.key, record.value)
            else:
                kind, version, message = _metadata(record.value)
            if snapshot is None:
                self._put("offset", record.offset)
                self._put("epoch", header.leader_epoch)
            else:
                self._put("offset", snapshot.end_offset - 1)
                self._put("snapshot_index", record.offset)
                self._put("epoch", snapshot.epoch)
            self._put("timestamp_ms", record.timestamp_ms)
            self._put("type", kind)
            self._put("version", version)
            for name, get in FILLED_BY.get(type(message), {}).items():
                self._put(name, get(message))
            if self._with_json:
                known = not isinstance(message, dict)
                shown = json_form(message, version) if known else message
                self._put("record", _dumps(shown))
            self.count += 1

    def _put(self, name: str, value: Any) -> None:
        column = self._columns[name]
        missing = self.count - len(column)
        if missing:
            column.extend([None] * missing)
        column.append(value)

    def take(self) -> pa.RecordBatch:
        columns = self._columns
        for column in columns.values():
            column.extend([None] * (self.count - len(column)))
        columns["timestamp"] = [milliseconds * 1000 for milliseconds in columns["timestamp_ms"]]
        batch = pa.RecordBatch.from_arrays(
            [pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA
        )
        self._clear()
        return batch


def _metadata(value: Buffer) -> tuple[str, int, object]:
    try:
        record, version = decode_versioned(value)
    except UnknownRecord as unknown:
        kind = OTHER_RECORDS.get(unknown.api_key, f"UNKNOWN_RECORD_{unknown.api_key}")
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

"""Rows as Spark's tasks make them, without Spark: columns, JSON, unknown records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.log.errors import NewerRecord
from quorate.quorum.analytics.log.segments import log_slices, metadata_dir, snapshot_slices
from quorate.quorum.analytics.spark.rows import EVERYTHING, Request, arrow_batches
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.acl_records import AccessControlEntryRecord
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import ClientQuotaRecord, NoOpRecord, QuotaEntity
from tests.unit.analytics.logs import START_MS, A, batches, write_segment
from tests.unit.metadata.kafka_dump import C1, CHECKPOINTS, LOG, dumped

ACL = AccessControlEntryRecord(
    id=A,
    resource_type=2,
    resource_name="orders",
    pattern_type=3,
    principal="User:x",
    host="*",
    operation=2,
    permission_type=3,
)


def rows_of(directory: Path, request: Request = EVERYTHING) -> list[dict[str, Any]]:
    return [
        row
        for piece in log_slices(metadata_dir(str(directory)))
        for batch in arrow_batches(piece, request)
        for row in batch.to_pylist()
    ]


def said(row: dict[str, Any]) -> dict[str, Any]:
    of_the_file = ("cluster_id", "node_id", "file", "committed")
    return {
        name: value for name, value in row.items() if value is not None and name not in of_the_file
    }


def test_every_record_of_a_real_kafka_is_a_row_in_order() -> None:
    rows = rows_of(C1)
    assert [row["offset"] for row in rows] == list(range(479))
    shown = [
        (row["offset"], row["timestamp_ms"], row["type"], row["version"], json.loads(row["record"]))
        for row in rows
        if row["type"] != "LEADER_CHANGE"
    ]
    assert shown == [
        (offset, at_ms, record["type"], record["version"], record["data"])
        for offset, at_ms, record in dumped(LOG)
    ]
    assert rows[0]["type"] == "LEADER_CHANGE" and rows[0]["controller_id"] == 1


def test_a_change_says_only_what_changed(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    rows = rows_of(tmp_path, Request(with_json=False))
    shrink = next(row for row in rows if row["cause"] == "isr-shrink-lag")
    assert shrink["timestamp"].timestamp() * 1000 == shrink["timestamp_ms"] == START_MS + 6000
    del shrink["timestamp"]
    assert said(shrink) == {
        "offset": 17,
        "epoch": 1,
        "timestamp_ms": START_MS + 6000,
        "effective": True,
        "type": "PARTITION_CHANGE_RECORD",
        "version": 1,
        "topic_id": "QUFBQUFBQUFBQUFBQUFBQQ",
        "partition_id": 1,
        "isr": [2, 1],
        "cause": "isr-shrink-lag",
    }
    fence = next(row for row in rows if row["cause"] == "session-expired")
    assert (fence["broker_id"], fence["broker_epoch"], fence["fenced"]) == (2, 12, True)
    assert fence["in_controlled_shutdown"] is None
    assert fence["record"] is None


def test_a_quota_fills_name_and_value(tmp_path: Path) -> None:
    user = (QuotaEntity(entity_type="user", entity_name="u"),)
    records = (
        ClientQuotaRecord(entity=user, key="request_percentage", value=0.5),
        ClientQuotaRecord(entity=user, key="request_percentage", remove=True),
    )
    values = [encode_record(each) for each in records]
    write_segment(
        tmp_path,
        0,
        bytes(build_value_batch(values, base_offset=0, leader_epoch=1, timestamp_ms=START_MS)),
    )
    rows = rows_of(tmp_path)
    assert [(row["type"], row["name"], row["value"]) for row in rows] == [
        ("CLIENT_QUOTA_RECORD", "request_percentage", "0.5"),
        ("CLIENT_QUOTA_RECORD", "request_percentage", None),
    ]


def test_snapshots_carry_the_last_offset_that_they_contain() -> None:
    (piece,) = (each for each in snapshot_slices(C1, only_base=False) if "125" in each.path)
    rows = [row for batch in arrow_batches(piece) for row in batch.to_pylist()]
    assert {row["offset"] for row in rows} == {124}
    assert [row["snapshot_index"] for row in rows] == list(range(len(rows)))
    assert rows[0]["type"] == "SNAPSHOT_HEADER" and rows[-1]["type"] == "SNAPSHOT_FOOTER"
    assert len(rows) == len(list(dumped(CHECKPOINTS[0]))) + 2


def test_what_nobody_knows_is_a_row_of_its_own(tmp_path: Path) -> None:
    values = [
        encode_record(ACL),
        encode_record(NoOpRecord()),
        b"\x01\xe7\x07\x03body",
        b"\x01\x05\x09newer",
    ]
    data = build_value_batch(values, base_offset=0, leader_epoch=1, timestamp_ms=START_MS)
    write_segment(tmp_path, 0, bytes(data))
    acl, no_op, unknown, newer = rows_of(tmp_path)
    assert (acl["type"], acl["resource_name"]) == ("ACCESS_CONTROL_ENTRY_RECORD", "orders")
    assert json.loads(acl["record"])["principal"] == "User:x"
    assert no_op["type"] == "NO_OP_RECORD" and no_op["record"] == "{}"
    assert (unknown["type"], unknown["version"]) == ("UNKNOWN_RECORD_999", 3)
    assert json.loads(unknown["record"]) == {"apiKey": 999, "frame": values[2].hex()}
    assert (newer["type"], newer["version"]) == ("PARTITION_CHANGE_RECORD", 9)
    remarks = [row["remark"] for row in (acl, no_op, unknown, newer)]
    assert remarks == [None, None, "unknown-type", "unknown-version"]
    with pytest.raises(NewerRecord, match="offset 3 is a PARTITION_CHANGE_RECORD of version 9"):
        rows_of(tmp_path, Request(strict=True))
    assert [row["offset"] for row in (acl, no_op, unknown, newer)] == [0, 1, 2, 3]

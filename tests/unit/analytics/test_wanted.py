"""Filters that Spark pushes down leave out only rows that cannot match."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")
pytest.importorskip("pyspark", minversion="4.1", reason="Spark has pushed conditions since 4.1")

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from quorate.quorum.analytics.log.segments import log_slices, snapshot_slices
from quorate.quorum.analytics.spark.rows import Request, arrow_batches
from quorate.quorum.analytics.spark.wanted import Wanted
from tests.unit.metadata.kafka_dump import C1

SLICES = log_slices(C1, 2000)


def narrowed(*conditions: Filter) -> Wanted:
    wanted = Wanted()
    for each in conditions:
        wanted = wanted.narrowed(each)
    return wanted


READ = ("offset", "type", "topic", "topic_id", "partition_id", "timestamp_ms", "timestamp")
MIDDLE_MS = 1795225463101


def rows_of(wanted: Wanted) -> list[dict[str, Any]]:
    request = Request(READ, with_json=False, types=wanted.types, values=wanted.values)
    return [
        row
        for piece in SLICES
        if wanted.reaches(piece)
        for batch in arrow_batches(piece, request)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (EqualTo(("offset",), 200), lambda row: row["offset"] == 200),
        (GreaterThan(("offset",), 300), lambda row: row["offset"] > 300),
        (GreaterThanOrEqual(("offset",), 300), lambda row: row["offset"] >= 300),
        (LessThan(("offset",), 100), lambda row: row["offset"] < 100),
        (LessThanOrEqual(("offset",), 100), lambda row: row["offset"] <= 100),
        (EqualTo(("type",), "TOPIC_RECORD"), lambda row: row["type"] == "TOPIC_RECORD"),
        (
            In(("type",), ("TOPIC_RECORD", "LEADER_CHANGE")),
            lambda row: row["type"] in ("TOPIC_RECORD", "LEADER_CHANGE"),
        ),
        (EqualTo(("topic",), "topic-0"), lambda row: row["topic"] == "topic-0"),
        (IsNotNull(("topic_id",)), lambda row: row["topic_id"] is not None),
        (In(("partition_id",), (0, 2)), lambda row: row["partition_id"] in (0, 2)),
        (
            GreaterThanOrEqual(("timestamp_ms",), MIDDLE_MS),
            lambda row: row["timestamp_ms"] >= MIDDLE_MS,
        ),
        (
            GreaterThan(("timestamp",), datetime.fromtimestamp(MIDDLE_MS / 1000, UTC)),
            lambda row: row["timestamp_ms"] > MIDDLE_MS,
        ),
    ],
)
def test_every_row_that_a_condition_wants_is_there(condition: Filter, holds: Any) -> None:
    everything, read = rows_of(Wanted()), rows_of(narrowed(condition))
    assert [row for row in read if holds(row)] == [row for row in everything if holds(row)]
    assert len(read) < len(everything) == 479


@pytest.mark.parametrize(
    "condition",
    [
        Not(EqualTo(("type",), "TOPIC_RECORD")),
        IsNotNull(("offset",)),
        LessThan(("timestamp_ms",), 5),
        GreaterThan(("partition_id",), 3),
        EqualTo(("type",), None),
    ],
)
def test_what_is_not_understood_narrows_nothing(condition: Filter) -> None:
    assert narrowed(condition) == Wanted()


def test_conditions_add_up() -> None:
    both = narrowed(GreaterThan(("offset",), 100), LessThan(("offset",), 110))
    assert (both.first_offset, both.last_offset) == (101, 109)
    types = narrowed(In(("type",), ("A", "B")), EqualTo(("type",), "B"))
    assert types == Wanted(types=frozenset({"B"}))


def test_a_snapshots_rows_stand_at_its_last_offset() -> None:
    first, second = snapshot_slices(C1)
    assert first.snapshot is not None and first.snapshot.end_offset == 125
    at = narrowed(EqualTo(("offset",), 124))
    assert at.reaches(first) and not at.reaches(second)

"""The option `types`: only rows of these types, and the last row that took effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")
pytest.importorskip("pyspark", reason="the tables need `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.analytics.log.segments import log_slices
from quorate.quorum.analytics.spark.columns import COLUMNS
from quorate.quorum.analytics.spark.options import Options
from quorate.quorum.analytics.spark.rows import Request, arrow_batches
from quorate.quorum.analytics.tables import TABLES
from quorate.quorum.analytics.tables.needs import NEEDS, needs_of
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import NoOpRecord, TopicRecord
from tests.unit.analytics.logs import ABORT, BEGIN, START_MS, write_segment

TOPIC = encode_record(TopicRecord(name="a", topic_id=Uuid(b"A" * 16)))
NO_OP = encode_record(NoOpRecord())
DAMAGED = TOPIC[:-1]


def chosen_rows(directory: Path, values: list[bytes], *types: str) -> list[dict[str, Any]]:
    """Return the rows of a log with one batch for each value, START_MS + offset apart."""
    batches = [
        build_value_batch([value], base_offset=at, leader_epoch=1, timestamp_ms=START_MS + at)
        for at, value in enumerate(values)
    ]
    log = write_segment(directory, 0, b"".join(batches)).parent
    request = Request(with_json=False, chosen=frozenset(types))
    return [
        row
        for piece in log_slices(log)
        for batch in arrow_batches(piece, request)
        for row in batch.to_pylist()
    ]


def offsets(rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(row["offset"], row["type"]) for row in rows]


def test_the_last_record_stays_because_intervals_count_up_to_its_time(tmp_path: Path) -> None:
    rows = chosen_rows(tmp_path, [TOPIC, NO_OP, NO_OP], "TOPIC_RECORD")
    assert offsets(rows) == [(0, "TOPIC_RECORD"), (2, "NO_OP_RECORD")]
    assert rows[-1]["timestamp_ms"] == START_MS + 2


def test_the_last_record_is_one_that_took_effect(tmp_path: Path) -> None:
    aborted = [encode_record(BEGIN), TOPIC, encode_record(ABORT)]
    rows = chosen_rows(tmp_path, [NO_OP, NO_OP, *aborted], "CONFIG_RECORD")
    assert [offset for offset, _ in offsets(rows)] == [1]


def test_if_the_last_record_is_damaged_an_earlier_one_is_the_last(tmp_path: Path) -> None:
    rows = chosen_rows(tmp_path, [NO_OP, NO_OP, DAMAGED], "CONFIG_RECORD")
    assert (1, "NO_OP_RECORD") in offsets(rows)
    assert rows[-1]["remark"] == "damaged-record", "and the damage is said"


def test_another_word_than_a_record_type_is_refused() -> None:
    named = Options({"types": "TOPIC_RECORD, LEADER_CHANGE"}).types()
    assert named == frozenset({"TOPIC_RECORD", "LEADER_CHANGE"})
    assert Options({}).types() is None
    with pytest.raises(BadOption, match="types has 'TOPICS', which is no record type"):
        Options({"types": "TOPICS"}).types()


def test_every_table_states_what_it_needs_of_the_source() -> None:
    assert set(NEEDS) == set(TABLES) - {"records"}
    for name, needs in NEEDS.items():
        assert needs.columns < set(COLUMNS), name
        assert needs.types is None or Options({"types": ",".join(needs.types)}).types(), name
    both = needs_of("sessions", "quorum")
    types = (NEEDS["sessions"].types or frozenset()) | (NEEDS["quorum"].types or frozenset())
    assert both.types == types
    assert needs_of("sessions", "warnings").types is None, "warnings are about all records"

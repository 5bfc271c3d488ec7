"""The options `types` and `topicIds`: only rows of these types or about these topics, and the last
row that took effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")
pytest.importorskip("pyspark", reason="the tables need `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.analytics.log.segments import log_slices
from quorate.quorum.analytics.spark.columns import COLUMNS
from quorate.quorum.analytics.spark.options import Options
from quorate.quorum.analytics.spark.rows import Request, arrow_batches
from quorate.quorum.analytics.tables import TABLES
from quorate.quorum.analytics.tables.needs import NEEDS, needs_of
from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import NoOpRecord, TopicRecord
from tests.unit.analytics.any_records import record_values
from tests.unit.analytics.logs import ABORT, BEGIN, START_MS, A, B, batches, write_segment
from tests.unit.analytics.test_at_once import at_once, log_of, without_file

TOPIC = encode_record(TopicRecord(name="a", topic_id=Uuid(b"A" * 16)))
NO_OP = encode_record(NoOpRecord())
DAMAGED = TOPIC[:-1]
KNOWN_ID = Uuid(b"\7" * 16)
"""An id of `any_records`."""


def chosen_rows(directory: Path, values: list[bytes], *types: str) -> list[dict[str, Any]]:
    """Return the rows of a log with one batch for each value, START_MS + offset apart."""
    batches = [
        build_value_batch([value], base_offset=at, leader_epoch=1, timestamp_ms=START_MS + at)
        for at, value in enumerate(values)
    ]
    log = write_segment(directory, 0, b"".join(batches)).parent
    return rows_of(log, Request(with_json=False, chosen=frozenset(types)))


def rows_of(log: Path, request: Request) -> list[dict[str, Any]]:
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


def test_records_of_other_topics_are_left_out_without_decoding_them(tmp_path: Path) -> None:
    log = write_segment(tmp_path, 0, b"".join(batches())).parent
    everything = rows_of(log, Request(with_json=False))
    options = Options({"topicIds": f"{uuid_to_text(A)}, {uuid_to_text(Uuid(b'C' * 16))}"})
    rows = rows_of(log, Request(with_json=False, topics=options.topics()))
    others = [row for row in everything if row["topic_id"] == uuid_to_text(B)]
    assert {row["type"] for row in others} >= {"TOPIC_RECORD", "PARTITION_RECORD"}
    effective = [row for row in everything if row["effective"]]
    assert rows == [row for row in everything if row not in others or row == effective[-1]]


@given(st.lists(record_values(), min_size=1, max_size=20))
def test_no_other_record_is_left_out(values: list[bytes]) -> None:
    """Also in old versions, and with unknown tags."""
    known = uuid_to_text(KNOWN_ID)
    topics = Options({"topicIds": known}).topics()
    log = log_of(values)
    rows = without_file(at_once(log, Request(with_json=False, topics=topics)))
    expected = without_file(at_once(log, Request(with_json=False)))
    kept = [row for row in expected if row["topic_id"] in (known, None)]
    assert [row for row in rows if row["topic_id"] in (known, None)] == kept
    assert all(row in expected for row in rows)
    others = len({row["offset"] for row in rows} - {row["offset"] for row in kept})
    assert others <= 1, "the last record"


def test_the_last_record_of_other_topics_stays(tmp_path: Path) -> None:
    other = encode_record(TopicRecord(name="b", topic_id=Uuid(b"B" * 16)))
    rows = chosen_rows(tmp_path, [TOPIC, other, other])
    log = tmp_path / "__cluster_metadata-0"
    topics = Options({"topicIds": uuid_to_text(Uuid(b"A" * 16))}).topics()
    rows = rows_of(log, Request(with_json=False, topics=topics))
    assert [offset for offset, _ in offsets(rows)] == [0, 2]
    assert Options({}).topics() is None
    with pytest.raises(BadOption, match="topicIds has a text that is no topic id: 'orders'"):
        Options({"topicIds": "orders"}).topics()


def test_every_table_states_what_it_needs_of_the_source() -> None:
    assert set(NEEDS) == set(TABLES) - {"records"}
    for name, needs in NEEDS.items():
        assert needs.columns < set(COLUMNS), name
        assert needs.types is None or Options({"types": ",".join(needs.types)}).types(), name
    both = needs_of("sessions", "quorum")
    types = (NEEDS["sessions"].types or frozenset()) | (NEEDS["quorum"].types or frozenset())
    assert both.types == types
    assert needs_of("sessions", "warnings").types is None, "warnings are about all records"

"""Tables of some topics: the same rows as a condition gives, from fewer decoded records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

from pyspark.sql import functions as f

from quorate.quorum.analytics.log.errors import OutOfHistory
from quorate.quorum.analytics.tables import TABLES, PlannedLog, of_topics, read_tables
from quorate.quorum.analytics.tables.needs import needs_of
from quorate.quorum.analytics.tables.of_topics import CONDITIONS
from tests.unit.analytics.logs import batches, write_segment
from tests.unit.analytics.ruled import Varied

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.timeout(240),
]
SEED, STEPS = 6, 400
"""The history of `test_tables.py` that holds every end of everything."""
SOME = ("leadership", "configs", "sessions")


def rows_of(table: DataFrame) -> list[str]:
    text = f.to_json(f.struct("*"), {"ignoreNullFields": "false"})
    return sorted(row[0] for row in table.select(text).collect())


@pytest.mark.parametrize(
    ("data", "names", "chosen"),
    [
        pytest.param(b"".join(batches()), SOME, 1, id="some"),
        pytest.param(Varied(SEED).run(STEPS), TABLES, 2, marks=pytest.mark.long, id="all"),
    ],
)
def test_the_rows_are_those_that_a_condition_keeps(
    spark: SparkSession, tmp_path: Path, data: bytes, names: tuple[str, ...], chosen: int
) -> None:
    write_segment(tmp_path, 0, data)
    whole = read_tables(spark, tmp_path, only={*names, "topics"})
    topics = sorted({json.loads(row)["topic"] for row in rows_of(whole["topics"])})
    wanted = topics[:chosen]
    assert len(wanted) == chosen < len(topics)
    about = PlannedLog(spark, tmp_path).topics(wanted)
    found = read_tables(spark, tmp_path, only=names, topics=wanted)
    assert set(found) == set(names)
    for name, table in found.items():
        condition = CONDITIONS.get(name)
        expected = whole[name].where(condition(about)) if condition else whole[name]
        assert rows_of(table) == rows_of(expected), name
        if condition and name != "elr":
            assert 0 < expected.count() < whole[name].count(), f"{name} shows nothing"
    spark.catalog.clearCache()


def test_records_of_other_topics_are_not_decoded(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    planned = PlannedLog(spark, tmp_path)
    needs = needs_of("leadership")
    few = planned.rows(needs, topics=planned.topics(["b"])).count()
    assert few < planned.rows(needs).count()
    with pytest.raises(OutOfHistory, match="these logs have no topic nosuch or other"):
        read_tables(spark, tmp_path, topics=("other", "nosuch"))
    assert read_tables(spark, tmp_path, only=("sessions",), topics=("nosuch",)), "about no topic"
    monkeypatch.setattr(of_topics, "MAX_TOPIC_IDS", 0)
    many = planned.rows(needs, topics=planned.topics(["b"])).count()
    assert many == planned.rows(needs).count(), "too many ids to compare"


def test_every_table_with_a_topic_has_a_condition() -> None:
    from quorate.quorum.analytics.tables import columns_in

    with_topic = {
        name for name in TABLES if "topic" in [column.name for column in columns_in(name)]
    }
    assert with_topic | {"configs"} == set(CONDITIONS)

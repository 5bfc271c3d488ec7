"""The rows of the page: Spark counts everything, and chooses the worst and the newest rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.page import digest as digested
from quorate.quorum.analytics.page.digest import digest, tables_of
from quorate.quorum.analytics.page.page import render
from quorate.quorum.analytics.page.page_text import History, named
from quorate.quorum.analytics.page.scope import Scope
from quorate.quorum.analytics.tables import PlannedLog, read_log
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.records import TopicRecord
from tests.unit.analytics.logs import (
    START_MS,
    STEP_MS,
    A,
    B,
    batches,
    change,
    created,
    snapshot_of,
    write_segment,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.timeout(240),
]
PARTITIONS = 12
LOST, BACK = 11, 5
SCRIPT = (
    (TopicRecord(name="a", topic_id=A), *(created(A, each, 1) for each in range(PARTITIONS))),
    (TopicRecord(name="__b", topic_id=B), replace(created(B, 0, 3), replicas=(3, 1), isr=(3, 1))),
    (change(A, LOST, "x", isr=(1,), leader=-1), change(A, BACK, "y", leader=2)),
    (change(A, LOST, "z", leader=1), change(B, 0, "w", isr=(3,))),
    (change(B, 0, "v", isr=(3, 1)),),
)
"""All is quiet but two partitions of `a` with high numbers, and one of an internal topic."""


def shown(spark: SparkSession, directory: Path, scope: Scope = Scope()) -> History:  # noqa: B008
    log = read_log(spark, directory).cache()
    of_partitions = log
    if scope.topics:
        planned = PlannedLog(spark, directory)
        of_partitions = planned.rows(topics=planned.topics(scope.topics))
    tables = tables_of(log, of_partitions)
    history = digest(
        spark, log, tables, scope, of_partitions=of_partitions, source="here", cluster_id=None
    )
    spark.catalog.clearCache()
    return history


@pytest.mark.long
def test_the_worst_and_the_newest_are_shown_and_everything_is_counted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_segment(tmp_path, 0, b"".join(batches(SCRIPT)))
    monkeypatch.setattr(digested, "MAX_LANES", 3)
    monkeypatch.setattr(digested, "MAX_EVENTS", 2)
    monkeypatch.setattr(digested, "MIN_BOXES", 2)
    monkeypatch.setattr(digested, "MAX_BOXES", 1)
    history = shown(spark, tmp_path)
    figures = history.figures
    assert [named(lane) for lane in history.lanes] == [f"a-{LOST}", f"a-{BACK}", "__b-0"]
    assert (figures.partitions, figures.leader_changes, figures.isr_shrinks) == (13, 3, 2)
    assert (figures.partitions_without_leader, figures.longest_without_leader_ms) == (1, STEP_MS)
    assert figures.records == sum(map(len, SCRIPT)) + 1
    drawn = [(row["partition"], row["leader"]) for row in history.leadership if row["topic"] == "a"]
    assert drawn == [(BACK, 1), (LOST, -1), (BACK, 2), (LOST, 1)], "not the first spell of LOST"
    assert [row["cause"] for row in history.new_leaders] == ["y", "z"]
    assert [row["isr"] for row in history.new_isrs] == [[3], [3, 1]]
    assert [(named(row), row["kind"]) for row in history.outages] == [(f"a-{LOST}", "offline")]
    page = render(history)
    assert page.count("Shown: the worst 3 of 13 partitions.") == 2
    assert f'data-name="a-{LOST}"' in page


@pytest.mark.long
def test_a_scope(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"".join(batches(SCRIPT)))
    at = START_MS + 3 * STEP_MS + 500
    half = shown(spark, tmp_path, Scope(from_ms=at, topics=("a",)))
    assert (half.start_ms, half.end_ms) == (at, START_MS + 5 * STEP_MS)
    assert half.figures.leader_changes == 1, "the one at 4 s"
    assert half.figures.longest_without_leader_ms == STEP_MS // 2, "the rest of it"
    assert {row["topic"] for row in half.lanes} == {"a"}
    assert {row["began"] for row in half.leadership} == {"before", "changed"}
    before = shown(spark, tmp_path, Scope(to_ms=at, brokers=(2,)))
    assert {row["topic"] for row in before.lanes} == {"a"}, "broker 2 has no replica of the other"
    (lane,) = [row for row in before.lanes if row["leaderless_ms"]]
    assert (lane["leaderless_ms"], lane["gone_ms"]) == (STEP_MS // 2, None)
    assert before.outages[0]["end_ms"] is None, "it goes on at the end of the range"


@pytest.mark.long
def test_the_spells_of_a_snapshot_are_no_changes(spark: SparkSession, tmp_path: Path) -> None:
    made = batches(SCRIPT)
    loader = Loader(MetadataImage())
    loader.feed(metadata_batches(b"".join(made[:4])))
    end_offset = loader.image.last.offset + 1
    path = write_segment(tmp_path, end_offset, b"".join(made[4:]))
    path.with_name(f"{end_offset:020d}-0000000001.checkpoint").write_bytes(
        snapshot_of(loader.image)
    )
    history = shown(spark, tmp_path)
    assert (history.figures.leader_changes, history.figures.isr_shrinks) == (1, 1)
    assert {row["began"] for row in history.leadership} == {"snapshot", "changed"}
    assert [row["cause"] for row in history.new_leaders] == ["z"]

"""One small Spark for all: the tables of a real Kafka's log and of ours against plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow", reason="needs `pip install 'quorate[spark]'`")
pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql import datasource

from quorate.quorum.analytics.log import chunks
from quorate.quorum.analytics.log.errors import DamagedLog
from quorate.quorum.analytics.log.segments import SEGMENT_NAME, files_named, passes_here
from quorate.quorum.analytics.page.report import Summary, report
from quorate.quorum.analytics.spark import planning, session
from quorate.quorum.analytics.spark.planning import passes_in_tasks
from quorate.quorum.analytics.spark.registration import BROADCAST_TIMEOUT, LONG_S, register
from quorate.quorum.analytics.spark.session import BYTES_PER_TASK, SHUFFLE_PARTITIONS
from quorate.quorum.analytics.tables import PlannedLog, read_log, read_tables
from quorate.quorum.analytics.tables.isr import isr
from quorate.quorum.analytics.tables.leadership import leadership
from quorate.quorum.analytics.tables.min_isr_windows import min_isr_windows
from quorate.quorum.analytics.tables.partition_states import partition_states
from quorate.quorum.analytics.tables.records import records
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from tests.unit.analytics.check_tables import assert_as_the_oracle_says, in_order
from tests.unit.analytics.logs import STEP_MS, batches, snapshot_of, write_segment
from tests.unit.analytics.oracle import Oracle, Row, logged
from tests.unit.metadata.kafka_dump import BEFORE_SHUTDOWN, C1, CHECKPOINTS, HISTORY, LOG, dumped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.timeout(240),
]


def test_a_real_kafkas_history(spark: SparkSession, tmp_path: Path) -> None:
    assert_as_the_oracle_says(spark, C1, LOG.read_bytes())
    summary = report(C1, tmp_path / "out.html", tmp_path / "tables", spark=spark)
    assert summary.figures.records == 479
    assert summary.cluster_id == "MkU3OEVBNTcwNTJENDM2Qg"
    assert final_leaders(tmp_path / "tables") == {
        (topic, partition["partition"]): partition["leader"]
        for topic, partitions in HISTORY["final"].items()
        for partition in partitions
    }
    assert "topic-12-1" in (tmp_path / "out.html").read_text()


def test_the_states_of_partitions_are_sorted_once(spark: SparkSession) -> None:
    """Each further sort would hold the rows of a large log again."""
    states = partition_states(records(read_log(spark, C1)))
    plan = states._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Sort [") == 1, plan


def test_no_join_comes_between_the_windows_of_min_isr_windows(spark: SparkSession) -> None:
    """The states are sorted in the order of the log for `partition_states`, and again with the
    changes of the setting. A join would sort them by topic, and the next window a third time."""
    windows = min_isr_windows(records(read_log(spark, C1)))
    plan = windows._jdf.queryExecution().executedPlan().toString()
    sorts = [line for line in plan.splitlines() if "Sort [" in line and "partition_id" in line]
    assert sum("offset" in line for line in sorts) == 2, plan


def final_leaders(parquet: Path) -> dict[tuple[str, int], int]:
    rows = pq.read_table(parquet / "leadership").to_pylist()
    return {
        (row["topic"], row["partition"]): row["leader"]
        for row in rows
        if row["start_offset"] <= BEFORE_SHUTDOWN
        and (row["end_offset"] is None or row["end_offset"] > BEFORE_SHUTDOWN)
    }


def test_our_own_history_says_why(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    summary = report(tmp_path, tmp_path / "out.html", tmp_path / "tables", spark=spark)
    assert_tells_the_story(summary, tmp_path)
    assert "connection-lost" in (tmp_path / "out.html").read_text()


def assert_tells_the_story(summary: Summary, directory: Path) -> None:
    """Check facts, written by hand, that the oracle and the tables might both get wrong."""
    leadership = rows_of(directory, "leadership", "start_offset")
    one = [row for row in leadership if (row["topic"], row["partition"]) == ("a", 1)]
    assert [(row["leader"], row["cause"], row["duration_ms"]) for row in one] == [
        (2, "topic-created", 3 * STEP_MS),
        (1, "session-expired", 2 * STEP_MS),
        (-1, "connection-lost", 3 * STEP_MS),
        (2, "unclean-election 130 120", 6 * STEP_MS),
    ]
    assert "never" not in {row["topic"] for row in leadership}, "its transaction was aborted"
    sessions = rows_of(directory, "sessions", "registered_offset", "unfenced_offset")
    assert [(row["broker"], row["ended"], row["cause"]) for row in sessions] == [
        (1, "fenced", "connection-lost"),
        (2, "fenced", "session-expired"),
        (2, "shutdown", "shutdown-complete"),
        (3, "replaced", "registered"),
        (3, "unregistered", "unregistered"),
    ]
    terms = rows_of(directory, "quorum", "epoch")
    assert [(row["leader"], row["epoch"], row["duration_ms"]) for row in terms] == [
        (1, 1, 12 * STEP_MS + 250),
        (3, 2, 6 * STEP_MS - 250),
    ]
    below = [
        (row["partition"], row["isr"], row["min_isr"])
        for row in rows_of(directory, "isr", "offset")
        if row["below_min"]
    ]
    assert below == [(1, [1], 2), (1, [2], 2), (0, [2], 2)]
    figures = summary.figures
    assert (figures.partitions, figures.partitions_without_leader) == (3, 1)
    assert figures.longest_without_leader_ms == 3 * STEP_MS
    assert figures.leader_changes == 5, "created partitions changed no leader"


def rows_of(directory: Path, name: str, *order: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(directory / "tables" / name).to_pylist()
    return sorted(rows, key=lambda row: [row[each] for each in order])


def test_a_log_whose_beginning_is_gone_begins_with_its_snapshot(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Kafka deletes old segments once a snapshot holds them."""
    made = batches()
    loader = Loader(MetadataImage())
    loader.feed(metadata_batches(b"".join(made[:8])))
    end_offset = loader.image.last.offset + 1
    path = write_segment(tmp_path, end_offset, b"".join(made[8:]))
    path.with_name(f"{end_offset:020d}-0000000001.checkpoint").write_bytes(
        snapshot_of(loader.image)
    )
    log = records(read_log(spark, tmp_path)).cache()
    tables = Oracle().fold(logged(b"".join(made))).tables
    for table, expected in ((leadership, tables["leadership"]), (isr, tables["isr"])):
        at = "start_offset" if table is leadership else "offset"
        rows = [row.asDict() for row in table(log).collect()]
        later, known = of_columns(rows, expected, at, end_offset)
        assert later == known
        before = {(row["topic"], row["partition"]) for row in rows if row[at] < end_offset}
        assert before == {("a", 0), ("a", 1)}, "as the snapshot says"


def of_columns(
    rows: list[Row], expected: list[Row], at: str, from_offset: int
) -> tuple[list[Row], list[Row]]:
    later = [[row for row in each if row[at] >= from_offset] for each in (rows, expected)]
    seen = [{name: row[name] for name in expected[0]} for row in later[0]]
    return in_order(seen), in_order(later[1])


def test_damage_is_said_in_a_line(spark: SparkSession, tmp_path: Path) -> None:
    data = bytearray(b"".join(batches()))
    data[200] ^= 1
    path = write_segment(tmp_path, 0, bytes(data))
    with pytest.raises(DamagedLog, match=rf"^{path}: the batch at byte \d+ is damaged"):
        report(tmp_path, tmp_path / "out.html", spark=spark, strict=True)


def test_tasks_make_the_first_pass_over_a_large_log(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = files_named(C1, SEGMENT_NAME)
    monkeypatch.setattr(planning, "chunks_of", lambda each: chunks.chunks_of(each, 10_000))
    (passed,) = passes_in_tasks(spark, segments, 2_000)
    (expected,) = passes_here(segments, 2_000)
    assert (passed.end, passed.markers) == (expected.end, expected.markers)
    assert len(passed.borders) > 10


def test_a_large_log_has_more_tasks_in_a_session_of_our_own(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks would sort all rows of a large log on the disk."""
    log_bytes = LOG.stat().st_size
    own = spark.conf.get(BYTES_PER_TASK)
    assert own is not None

    def tasks(bytes_per_task: str) -> str | None:
        spark.conf.set(BYTES_PER_TASK, bytes_per_task)
        try:
            PlannedLog(spark, C1)
            return spark.conf.get(SHUFFLE_PARTITIONS)
        finally:
            spark.conf.set(BYTES_PER_TASK, own)

    assert tasks("1000") == str(-(-log_bytes // 1000))
    assert tasks("") == str(-(-log_bytes // 1000)), "a session of a user stays as it is"
    monkeypatch.setattr(session, "MAX_PARTITIONS", 5)
    assert tasks("1000") == "5"
    assert tasks(own) == "2"


def test_a_table_waits_long_for_the_last_record_unless_the_user_chose_a_time(
    spark: SparkSession,
) -> None:
    """A broadcast of the last times decodes the whole log."""
    assert spark.conf.get(BROADCAST_TIMEOUT) == str(LONG_S)
    spark.conf.set(BROADCAST_TIMEOUT, "7")
    register(spark)
    assert spark.conf.get(BROADCAST_TIMEOUT) == "7"
    spark.conf.unset(BROADCAST_TIMEOUT)
    register(spark)
    assert spark.conf.get(BROADCAST_TIMEOUT) == str(LONG_S)


@pytest.mark.skipif(not hasattr(datasource, "EqualTo"), reason="Spark pushes since 4.1")
def test_spark_pushes_conditions_into_a_real_read(spark: SparkSession) -> None:
    """A slice is one of Spark's partitions, so fewer partitions show that slices were skipped."""

    def slices(condition: str) -> int:
        reader = spark.read.format("quorate.metadata").options(sliceBytes="2000", pushdown="true")
        return int(reader.load(str(C1)).where(condition).rdd.getNumPartitions())

    assert slices("offset = 200") == 1 < slices("offset < 100") < slices("true") == 17
    assert slices("timestamp_ms >= 1795225463101") < 17


def test_a_condition_has_no_effect_on_the_next_use_of_a_dataframe(spark: SparkSession) -> None:
    """Spark 4.1 to 4.3 keeps the rest of a scan with pushed conditions."""
    loaded = spark.read.format("quorate.metadata").option("json", "false").load(str(C1))
    for rows in (loaded, read_tables(spark, C1, only=("records",))["records"]):
        assert rows.where("offset < 5").count() == 5
        assert rows.count() == 479


def test_a_list_of_directories_is_loaded_whole(spark: SparkSession, tmp_path: Path) -> None:
    """Spark passes a list in another option than one path."""
    write_segment(tmp_path, 0, b"".join(batches()))
    rows = (
        spark.read.format("quorate.metadata")
        .option("json", "false")
        .load([str(C1), str(tmp_path)])
        .groupBy("node_id")
        .count()
        .collect()
    )
    assert {row["node_id"]: row["count"] for row in rows} == {1: 479, None: 42}


def test_slices_snapshots_and_a_wrong_option(spark: SparkSession) -> None:
    source = spark.read.format("quorate.metadata").option("sliceBytes", "6000")
    counts = {
        row["snapshot"]: row["count"]
        for row in source.option("include", "snapshots")
        .load(str(C1))
        .selectExpr("snapshot_index is not null as snapshot")
        .groupBy("snapshot")
        .count()
        .collect()
    }
    held = sum(len(list(dumped(path))) for path in CHECKPOINTS)
    assert counts == {False: 479, True: held + 2 * len(CHECKPOINTS)}, "and headers and footers"
    with pytest.raises(Exception, match="include is 'all'"):
        source.option("include", "all").load(str(C1)).count()

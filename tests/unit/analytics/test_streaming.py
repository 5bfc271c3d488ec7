"""A stream delivers each record of a growing log once, whatever its batches, files and restarts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")
pytest.importorskip("pyspark", minversion="4.2", reason="streams need Spark 4.2")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from quorate.cli.history.stream import batches_of, started
from quorate.quorum.analytics.current.following import CHECKPOINT
from quorate.quorum.analytics.log.errors import (
    BadOption,
    OutOfHistory,
    StreamDiverged,
)
from quorate.quorum.analytics.log.plan import Choice, planned
from quorate.quorum.analytics.spark.options import Options
from quorate.quorum.analytics.spark.rows import Request, arrow_batches
from quorate.quorum.analytics.spark.source import MetadataLogSource
from quorate.quorum.analytics.spark.streaming import MetadataStreamReader
from quorate.quorum.analytics.tables import TABLES, read_log
from quorate.quorum.analytics.tables.records import records, understood
from quorate.quorum.log.batches.batch import build_value_batch, read_header
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import MetadataRecord, NoOpRecord
from tests.unit.analytics.logs import (
    ABORT,
    BEGIN,
    END,
    START_MS,
    batches,
    leadership_of,
    snapshot_of,
    write_segment,
)
from tests.unit.analytics.test_moment import put_snapshot
from tests.unit.analytics.test_places import node

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("offset", "snapshot_index", "epoch", "type", "effective")
Row = tuple[Any, ...]


def reader(*locations: Path, **options: str) -> MetadataStreamReader:
    paths = json.dumps([str(each) for each in locations])
    return MetadataStreamReader(
        Options({"paths": paths, **options}), columns=COLUMNS, with_json=False
    )


class Stream:
    """The part of Spark around a reader: batches, a checkpoint, and a table."""

    def __init__(self, make: Callable[[], MetadataStreamReader]) -> None:
        self.make = make
        self.reader = make()
        self.offsets: dict[str, Any] = {}
        self.table: list[Row] = []
        self.batches: list[int] = []

    def restart(self) -> None:
        self.reader = self.make()
        self.offsets = json.loads(json.dumps(self.offsets))

    def step(self, limit: int | None = None) -> bool:
        """Run one batch. Return False if there is nothing new."""
        allowed = ReadAllAvailable() if limit is None else ReadMaxRows(limit)
        end = self.reader.latestOffset(self.offsets, allowed)
        if end == self.offsets:
            return False
        rows = self.rows(self.offsets, end)
        assert rows == self.rows(self.offsets, end), "a batch that runs again has the same rows"
        self.table += rows
        self.batches.append(len(rows))
        self.offsets = end
        return True

    def rows(self, start: dict[str, Any], end: dict[str, Any]) -> list[Row]:
        return [
            tuple(row[name] for name in COLUMNS)
            for partition in self.reader.partitions(start, end)
            for batch in self.reader.read(partition)
            for row in batch.to_pylist()
        ]


def as_a_batch(directory: Path) -> list[Row]:
    choice = Choice(locations=(str(directory),), include="base")
    request = Request(COLUMNS, with_json=False)
    return [
        tuple(row[name] for name in COLUMNS)
        for piece in planned(choice)
        for batch in arrow_batches(piece, request)
        for row in batch.to_pylist()
        if row["type"] != "REMARK"
    ]


STEPS = st.lists(st.sampled_from(["record", "records", "begin", "end", "abort"]), max_size=25)


def grown(steps: list[str]) -> list[bytes]:
    """Return batches with transactions, well-formed: a marker without sense becomes a record."""
    made = [leadership_of(1, epoch=1, offset=0, at_ms=START_MS)]
    offset, inside = 1, False
    for step in steps:
        records: list[MetadataRecord] = [NoOpRecord()]
        if step == "begin" and not inside:
            records, inside = [BEGIN, NoOpRecord()], True
        elif step == "end" and inside:
            records, inside = [NoOpRecord(), END], False
        elif step == "abort" and inside:
            records, inside = [ABORT], False
        elif step == "records":
            records = [NoOpRecord()] * 4
        values = [encode_record(each) for each in records]
        batch = build_value_batch(
            values, base_offset=offset, leader_epoch=1, timestamp_ms=START_MS + offset
        )
        made.append(bytes(batch))
        offset += len(values)
    return made


@settings(max_examples=60)
@given(STEPS, st.data())
def test_on_every_prefix_the_table_is_that_of_a_batch_query(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], draw: st.DataObject
) -> None:
    """The log grows by random numbers of batches and rolls at random. The stream restarts."""
    directory = tmp_path_factory.mktemp("log")
    made = grown(steps)
    stream = Stream(lambda: reader(directory, sliceBytes="150"))
    segment = write_segment(directory, 0, made[0])
    for batch in made[1:]:
        if draw.draw(st.integers(0, 5)) == 0:
            segment = write_segment(directory, read_header(batch).base_offset, b"")
        with segment.open("ab") as file:
            file.write(batch)
        if draw.draw(st.booleans()):
            while stream.step(draw.draw(st.sampled_from([None, 1, 3]))):
                pass
            expected = as_a_batch(directory)
            assert stream.table == expected[: len(stream.table)]
            assert all(not row[-1] for row in expected[len(stream.table) :]), "an open transaction"
        if draw.draw(st.integers(0, 4)) == 0:
            stream.restart()


def test_a_stream_goes_on_over_deleted_segments_and_begins_with_a_snapshot(tmp_path: Path) -> None:
    made = batches()
    first = write_segment(tmp_path, 0, b"".join(made[:8]))
    running = Stream(lambda: reader(tmp_path))
    while running.step():
        pass
    end_offset = read_header(made[8]).base_offset
    write_segment(tmp_path, end_offset, b"".join(made[8:]))
    snapshot = put_snapshot(tmp_path, end_offset, made_snapshot())
    first.unlink()
    running.restart()
    while running.step():
        pass
    offsets = [row[0] for row in running.table]
    assert offsets == list(range(40)), "the log ends inside a transaction from offset 40 on"
    fresh = Stream(lambda: reader(tmp_path))
    while fresh.step(3):
        pass
    of_snapshot = [row for row in fresh.table if row[1] is not None]
    assert of_snapshot and all(row[0] == end_offset - 1 for row in of_snapshot)
    assert [row[0] for row in fresh.table if row[1] is None] == list(range(end_offset, 40))
    snapshot.unlink()


def made_snapshot() -> bytes:
    return snapshot_of(MetadataImage()) or bytes(
        build_value_batch(
            [encode_record(NoOpRecord())], base_offset=0, leader_epoch=1, timestamp_ms=START_MS
        )
    )


def test_records_deleted_before_they_were_read_end_the_stream(tmp_path: Path) -> None:
    made = batches()
    first = write_segment(tmp_path, 0, b"".join(made[:3]))
    stream = Stream(lambda: reader(tmp_path))
    assert stream.step()
    write_segment(tmp_path, read_header(made[8]).base_offset, b"".join(made[8:]))
    first.unlink()
    with pytest.raises(OutOfHistory, match="the records from offset 7 to 20 were deleted before"):
        stream.step()


def test_a_record_that_was_replaced_ends_the_stream(tmp_path: Path) -> None:
    """One log alone does not prove what is committed."""
    node(tmp_path, 1, [1, 1, 1])
    stream = Stream(lambda: reader(tmp_path / "1"))
    assert stream.step() and len(stream.table) == 3
    node(tmp_path, 1, [1, 1, 2, 2])
    with pytest.raises(StreamDiverged, match="up to offset 2 of epoch 1, but the log has epoch 2"):
        stream.step()


def test_with_all_voters_only_committed_records_are_delivered(tmp_path: Path) -> None:
    """Node 1 loses two records that it alone had, and they were never delivered."""
    places = [tmp_path / str(number) for number in (1, 2, 3)]
    for number, epochs in ((1, [1, 1, 1, 1]), (2, [1, 1]), (3, [1])):
        node(tmp_path, number, epochs)
    stream = Stream(lambda: reader(*places))
    while stream.step():
        pass
    assert [row[0] for row in stream.table] == [0, 1]
    for number in (1, 2, 3):
        node(tmp_path, number, [1, 1, 2, 2])
    while stream.step():
        pass
    assert [(row[0], row[2]) for row in stream.table] == [(0, 1), (1, 1), (2, 2), (3, 2)]


def test_each_cluster_and_node_has_an_offset_of_its_own(tmp_path: Path) -> None:
    node(tmp_path / "east", 1, [1, 1, 1], "east", voters=1)
    node(tmp_path / "west", 4, [1, 1], "west", voters=1)
    stream = Stream(lambda: reader(tmp_path / "*" / "*"))
    assert stream.step() and not stream.step()
    assert stream.offsets == {"east": {"next": 3, "epoch": 1}, "west": {"next": 2, "epoch": 1}}
    every = Stream(lambda: reader(tmp_path / "*" / "*", nodes="all"))
    assert every.step()
    assert set(every.offsets) == {"east/1", "west/4"}
    assert every.reader.reportLatestOffset() == every.offsets


def test_a_run_that_ends_leaves_later_records_to_the_next_run(tmp_path: Path) -> None:
    node(tmp_path, 1, [1, 1, 1], voters=1)
    stream = Stream(lambda: reader(tmp_path / "1"))
    stream.reader.prepareForTriggerAvailableNow()
    node(tmp_path, 1, [1, 1, 1, 1, 1], voters=1)
    assert stream.step() and not stream.step()
    assert len(stream.table) == 3
    stream.restart()
    assert stream.step() and len(stream.table) == 5


def test_a_wrong_option_of_a_stream_is_named(tmp_path: Path) -> None:
    """PySpark hides an error of `streamReader`, so the first method of the reader raises it."""
    from pyspark.sql.types import IntegerType, StructField, StructType

    with pytest.raises(BadOption, match="nodes is 'two'"):
        reader(tmp_path, nodes="two").initialOffset()
    with pytest.raises(BadOption, match="maxRecordsPerBatch is '0'"):
        reader(tmp_path, maxRecordsPerBatch="0").getDefaultReadLimit()
    assert reader(tmp_path, maxRecordsPerBatch="7").getDefaultReadLimit() == ReadMaxRows(7)
    schema = StructType([StructField("nothing", IntegerType())])
    source = MetadataLogSource({"path": str(tmp_path)})
    with pytest.raises(BadOption, match="the column `nothing` int is not one of the source"):
        source.streamReader(schema).initialOffset()


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")  # pyspark's own
@pytest.mark.timeout(240)
def test_a_table_follows_the_logs_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """A run that failed after its write, before its commit, leaves no row twice."""
    made, out = batches(), tmp_path / "table"
    path = write_segment(tmp_path / "log", 0, b"".join(made[:9]))
    seen: list[dict[str, Any]] = []

    def run_once() -> None:
        query = started(
            spark, (str(tmp_path / "log"),), out, once=True, interval_s=1, max_records=7
        )
        seen.extend(batches_of(query))

    run_once()
    # The transaction from offset 13 on is not divided.
    assert [batch["records"] for batch in seen] == [7, 6, 7, 3]
    assert [log["lag"] for batch in seen for log in batch["logs"].values()] == [16, 10, 3, 0]
    for commit in (out / CHECKPOINT / "commits").glob("*3*"):
        commit.unlink()
    path.write_bytes(b"".join(made))
    run_once()
    streamed = spark.read.parquet(str(out))
    rows = [row["offset"] for row in streamed.select("offset").collect()]
    assert sorted(rows) == list(range(40))
    read = [TABLES["leadership"].make(understood(records(each))) for each in (
        streamed, read_log(spark, tmp_path / "log")
    )]  # fmt: skip
    assert_same_rows(*read)
    with pytest.raises(
        StreamDiverged, match="records up to offset 39 of epoch 2, but the log has epoch 5"
    ):
        node(tmp_path, 9, [1] * 39 + [5, 5])
        (tmp_path / "9" / "__cluster_metadata-0" / f"{0:020d}.log").replace(path)
        run_once()


def assert_same_rows(one: DataFrame, other: DataFrame) -> None:
    assert one.exceptAll(other).count() == other.exceptAll(one).count() == 0

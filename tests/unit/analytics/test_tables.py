"""All tables against the oracle on histories of the controller's rules; SQL, export, documents."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

import pyarrow.parquet as pq  # type: ignore[import-untyped]
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.quorum import analytics
from quorate.quorum.analytics.page import report
from quorate.quorum.analytics.spark import session
from quorate.quorum.analytics.tables import TABLES, min_isr, read_tables
from tests.unit.analytics.check_tables import (
    ALONE,
    IN_GROUPS,
    TOGETHER,
    Groups,
    assert_as_the_oracle_says,
    assert_histories_as_the_oracle_says,
    in_order,
)
from tests.unit.analytics.logs import batches, write_segment
from tests.unit.analytics.oracle import Oracle, every, logged
from tests.unit.analytics.ruled import Varied
from tests.unit.metadata.kafka_dump import FIXTURE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.timeout(240),
]
FIXTURES = FIXTURE.parent
HISTORIES = 100
VARIED = (6, 400)
"""A seed and a number of steps: one history that holds every end of everything."""
ENDS = {
    "sessions": {"fenced", "shutdown", "replaced", "unregistered", None},
    "reassignments": {"completed", "cancelled", "replaced", "removed", None},
    "configs": {"changed", "unset", "removed", None},
}


def check(spark: SparkSession, seed: int, steps: int, groups: Groups) -> None:
    data = Varied(seed).run(steps)
    with TemporaryDirectory() as directory:
        write_segment(Path(directory), 0, data)
        assert_as_the_oracle_says(spark, Path(directory), data, groups)


@pytest.mark.long
def test_a_history_of_the_rules(spark: SparkSession) -> None:
    """Several groups of tables are decoded, each with the types and columns that it needs."""
    check(spark, *VARIED, IN_GROUPS)


def test_the_history_contains_what_it_is_about() -> None:
    seed, steps = VARIED
    data = Varied(seed).run(steps)
    oracle = Oracle().fold(logged(data))
    oracle.warn(list(every(data)), 0)
    tables = oracle.tables
    assert all(tables.values())
    assert {name: {row["ended"] for row in tables[name]} for name in ENDS} == ENDS
    assert {row["below_min"] for row in tables["isr"]} == {True, False, None}
    assert any(len(row["windows"]) > 1 for row in tables["availability"])
    assert not any(row["topic"] == "never" for row in tables["topics"])


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("groups", [TOGETHER, ALONE], ids=["together", "alone"])
def test_many_histories_of_the_rules(spark: SparkSession, tmp_path: Path, groups: Groups) -> None:
    """The directory of a history names its seed and the number of its steps."""
    random = Random(f"histories {len(groups)}")
    drawn = [(random.getrandbits(32), random.randint(20, 600)) for _ in range(HISTORIES)]
    histories = {tmp_path / f"{seed}-{steps}": Varied(seed).run(steps) for seed, steps in drawn}
    assert_histories_as_the_oracle_says(spark, histories, groups)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["kafka-4.1.1-voters", pytest.param("kafka-3.9.1-voters", marks=pytest.mark.long)]
)
def test_histories_of_kafka_with_voters_that_come_and_go(spark: SparkSession, name: str) -> None:
    (segment,) = (FIXTURES / name).rglob("*.log")
    tables = assert_as_the_oracle_says(spark, segment.parent, segment.read_bytes()).tables
    assert [row["voters"] for row in tables["quorum"]] == [[1], [1, 2], [1], [1]]
    assert {row["topic"] for row in tables["topics"]} == {"kept", "gone", "after"}


def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> Result:
    monkeypatch.setattr(session, "local_session", lambda name: nullcontext(spark))
    monkeypatch.setattr(report, "local_session", lambda name: nullcontext(spark))
    return CliRunner().invoke(main, ["history", *map(str, arguments)])


def test_sql(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    query = (
        "SELECT partition, count(*) AS changes, max(time) AS last, max(isr) AS isr "
        "FROM isr WHERE topic = 'a' GROUP BY partition ORDER BY partition"
    )
    assert run(spark, monkeypatch, "sql", query, tmp_path).stdout.splitlines() == [
        "partition  changes  last                     isr",
        "        0        5  2027-01-15 08:00:13.000  [3, 2]",
        "        1        6  2027-01-15 08:00:12.000  [3]",
    ]
    said = run(spark, monkeypatch, "sql", "DESCRIBE TABLE isr", tmp_path, "--format", "json")
    texts = {row["col_name"]: row["comment"] for row in json.loads(said.stdout)}
    assert texts["min_isr"] == "the setting, at most the replication factor; null: unknown"
    assert None not in texts.values()
    query = "SELECT type, record FROM records WHERE type LIKE '%TOPIC%' ORDER BY offset"
    rows = json.loads(run(spark, monkeypatch, "sql", query, tmp_path, "--format", "json").stdout)
    names = [json.loads(row["record"]).get("name") for row in rows]
    assert names == ["a", "b", None], "the aborted topic does not show"
    for query, text in (("SELECT nothing FROM isr", "nothing"), ("SELEKT isr", "'SELEKT'")):
        refused = run(spark, monkeypatch, "sql", query, tmp_path)
        assert refused.exit_code == 2 and text in refused.output and "\n\tat " not in refused.output


def test_errors_of_the_log_are_printed_or_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = batches()
    path = write_segment(tmp_path, 0, b"".join([*made[:5], *made[6:]]))
    query = "SELECT count(*) AS topics FROM topics"
    seen = run(spark, monkeypatch, "sql", query, tmp_path)
    assert seen.stdout.splitlines() == ["topics", "     2"]
    # A slow run shows its progress first.
    (line,) = (each for each in seen.stderr.splitlines() if each.startswith("error: "))
    assert line.startswith(f"error: gap: {path}: offset ")
    for command in (("sql", query, tmp_path), ("report", tmp_path, "--out", tmp_path / "a.html")):
        refused = run(spark, monkeypatch, *command, "--strict")
        assert refused.exit_code == 1 and "so records are missing" in refused.output
    assert not (tmp_path / "a.html").exists()


@pytest.mark.long
def test_top(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    done = run(spark, monkeypatch, "top", tmp_path, "--limit", "1", "--format", "json")
    found = json.loads(done.stdout)
    (failed,) = found["acks=all failed"]
    assert (failed["topic"], failed["partition"], failed["times"]) == ("a", 1, 2)
    (leaders,) = found["leader changes"]
    assert (leaders["partition"], leaders["leader_changes"]) == (1, 3)
    (replica,) = found["replicas that left the ISR"]
    assert replica["pattern"] in ("one-way", "recovered", "flapping")
    assert found["longest reassignments"] == []
    (broker,) = found["brokers fenced"]
    assert (broker["broker"], broker["times_fenced"]) == (1, 1)
    assert "notes in the table `warnings`" not in done.stderr, "there is one voter"


@pytest.mark.parametrize("kind", ["parquet", "json", "csv"])
def test_export(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    out = tmp_path / "out"
    done = run(
        spark, monkeypatch, "export", tmp_path, "--out", out, "--format", kind, "--table", "quorum"
    )
    assert done.stdout == f"{out / 'quorum'}\n", done.output
    (file,) = (out / "quorum").glob("*." + kind)
    if kind == "parquet":
        rows = pq.read_table(file).to_pylist()
    elif kind == "json":
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    else:
        rows = list(csv.DictReader(file.read_text().splitlines()))
    leaders = [(int(row["leader"]), int(row["epoch"]), row["voters"]) for row in rows]
    flat = kind == "csv"
    assert leaders == [(1, 1, "[1]" if flat else [1]), (3, 2, "[3]" if flat else [3])]
    wrong = run(spark, monkeypatch, "export", tmp_path, "--out", out, "--table", "x")
    assert (
        wrong.exit_code == 2 and "--table: value 'x' must be one of records, topics" in wrong.output
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "names",
    [
        ("isr", "sessions", "quorum_health", "warnings"),
        pytest.param(tuple(TABLES), marks=pytest.mark.long),
    ],
    ids=["some", "all"],
)
def test_clusters_do_not_mix(spark: SparkSession, tmp_path: Path, names: tuple[str, ...]) -> None:
    """The second cluster has the same topics, brokers and offsets, but ends earlier."""
    places = two_clusters(tmp_path)
    both = read_tables(spark, list(places.values()), only=names)
    alone = {name: read_tables(spark, place, only=names) for name, place in places.items()}
    for table in names:
        one, other = (alone[name][table] for name in places)
        columns = [name for name in one.columns if name != "file"]
        expected = one.unionByName(other).select(columns)
        assert_same_rows(both[table].select(columns), expected, table)


def two_clusters(directory: Path) -> dict[str, Path]:
    """Write the logs of two clusters with the same topics, brokers and offsets. One ends earlier.

    Return their directories by their cluster ids."""
    made = batches()
    places = {"east": directory / "east", "west": directory / "west"}
    write_segment(places["east"], 0, b"".join(made))
    write_segment(places["west"], 0, b"".join(made[:9]))
    for name, place in places.items():
        (place / "meta.properties").write_text(f"version=1\ncluster.id={name}\nnode.id=1\n")
    return places


@pytest.mark.long
def test_rankings_do_not_mix_clusters(spark: SparkSession, tmp_path: Path) -> None:
    places = two_clusters(tmp_path)
    both = analytics.top(spark, list(places.values()), rows=100)
    alone = [analytics.top(spark, place, rows=100) for place in places.values()]
    for name, table in both.items():
        one, other = (each[name] for each in alone)
        assert_same_rows(table, one.unionByName(other), name)
    failed = both["acks=all failed"].select("cluster_id", "partition").collect()
    assert {row["cluster_id"] for row in failed} == set(places), "one partition, two clusters"


def assert_same_rows(one: DataFrame, other: DataFrame, name: str) -> None:
    rows = [sorted(map(repr, each.collect())) for each in (one, other)]
    assert rows[0] == rows[1], name


@pytest.mark.long
def test_isr_takes_work_in_proportion_to_settings_and_topics(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every join has a key besides the cluster. Defaults reach rows of later buckets too."""
    monkeypatch.setattr(min_isr, "BUCKET", 8)
    seed, steps = VARIED
    data = Varied(seed).run(steps)
    write_segment(tmp_path, 0, data)
    made = read_tables(spark, tmp_path, only=("isr",))["isr"]
    text = io.StringIO()
    with redirect_stdout(text):
        made.explain(mode="formatted")
    keys = re.findall(r"^Left keys \[(\d+)\]", text.getvalue(), re.MULTILINE)
    assert keys and "1" not in keys and "NestedLoop" not in text.getvalue()
    expected = Oracle().fold(logged(data)).tables["isr"]
    assert {row["min_isr"] for row in expected} >= {None, 1, 2}
    names = ("offset", "topic_id", "partition", "min_isr", "below_min")
    seen = [row.asDict() for row in made.select(*names).collect()]
    assert in_order(seen) == in_order([{name: row[name] for name in names} for row in expected])


@pytest.mark.long
@pytest.mark.parametrize("name", ["elr", "state_changes"])
def test_clears_of_a_topic_take_no_work_for_other_topics(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Only the records that clear the replicas of all topics are joined by the cluster alone."""
    seed, steps = VARIED
    write_segment(tmp_path, 0, Varied(seed).run(steps))
    text = io.StringIO()
    with redirect_stdout(text):
        read_tables(spark, tmp_path, only=(name,))[name].explain(mode="formatted")
    keys = re.findall(r"^Left keys \[(\d+)\]", text.getvalue(), re.MULTILINE)
    assert keys.count("1") == 1 and "NestedLoop" not in text.getvalue(), keys

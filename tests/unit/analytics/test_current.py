"""Tables that a stream keeps current equal the batch tables after each batch."""

from __future__ import annotations

import fcntl
import json
import math
import os
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="needs `pip install 'quorate[spark]'`")
pytest.importorskip("pyspark", minversion="4.2", reason="streams need Spark 4.2")

from pyspark.sql import functions as f

from quorate.cli.main import main
from quorate.quorum.analytics.current import following
from quorate.quorum.analytics.current.directory import (
    COMMIT,
    FAN,
    LOCK,
    Commit,
    Contents,
    Part,
    commit,
    committed,
    to_merge,
)
from quorate.quorum.analytics.current.following import (
    CHECKPOINT,
    append_records,
    apply,
    current_tables,
    follow,
)
from quorate.quorum.analytics.current.steps import INCREMENTAL
from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.analytics.spark import session
from quorate.quorum.analytics.tables import TABLES, read_log
from quorate.quorum.analytics.tables.needs import needs_of
from quorate.quorum.analytics.tables.records import records, understood
from quorate.quorum.log.batches.batch import read_header
from tests.unit.analytics.logs import batches, write_segment
from tests.unit.analytics.ruled import Varied
from tests.unit.analytics.test_streaming import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.timeout(240),
]

HISTORIES = 12
BUDGET_S, EXAMPLES = 900.0, 10
"""The time in which examples begin, and the most examples."""


def log_of(directory: Path, data: bytes, spark: SparkSession) -> DataFrame:
    return logs_of({directory: data}, spark)


def logs_of(data: Mapping[Path, bytes], spark: SparkSession) -> DataFrame:
    """Write the log of one cluster into each directory, whose name is that of the cluster. Return
    the rows of all clusters, cached."""
    for place, of_cluster in data.items():
        write_segment(place, 0, of_cluster)
        text = f"version=1\ncluster.id={place.name}\nnode.id=1\n"
        (place / "meta.properties").write_text(text)
    return read_log(spark, [*data], needs=needs_of(*INCREMENTAL)).cache()


def between(rows: DataFrame, begin: int | Column, end: int | Column) -> DataFrame:
    return rows.where((f.col("offset") >= begin) & (f.col("offset") < end))


def assert_current(rows: DataFrame, out: Path, names: Sequence[str]) -> None:
    """Compare the tables in `out` with those that a batch query makes of `rows`."""
    whole, seen = understood(records(rows)), current_tables(rows.sparkSession, out)
    assert [*seen] == [*names]
    for name in names:
        expected = TABLES[name].make(whole)
        assert seen[name].columns == expected.columns
        assert_same_rows(seen[name], expected)


def follow_in_batches(rows: DataFrame, out: Path, ends: Mapping[str, Sequence[int]]) -> None:
    """Apply the rows of each cluster below each of its `ends`, and compare all tables after each
    of these batches. All clusters have the same number of batches; a batch may be empty."""
    begin: int | Column = 0
    for batch in zip(*ends.values(), strict=True):
        pairs = zip(ends, batch, strict=True)
        end = f.create_map(*(f.lit(each) for pair in pairs for each in pair))[f.col("cluster_id")]
        apply(between(rows, begin, end), out, INCREMENTAL)
        assert_current(between(rows, 0, end), out, INCREMENTAL)
        begin = end


@pytest.mark.long
def test_records_that_were_applied_before_have_no_effect(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The second batch repeats rows of the first one, as after a crash before Spark's commit."""
    rows, out = log_of(tmp_path, b"".join(batches()), spark), tmp_path / "out"
    names = ("leadership",)
    apply(between(rows, 0, 20), out, names)
    apply(between(rows, 10, 40), out, names)
    assert_current(rows, out, names)


def test_a_step_that_fails_leaves_the_tables_of_the_step_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after(step: int) -> Commit:
        folder = f"isr/step={step}/final=true"
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "rows.parquet").touch()
        return Commit(step, {"isr": Contents((Part(folder, step),))})

    def fail(*_: object) -> None:
        raise OSError("no space left")

    others = tmp_path / "models" / "step=1" / "x"
    others.mkdir(parents=True)
    last = Commit()
    for step in (1, 2, 3):
        before, last = last, after(step)
        commit(tmp_path, last, before)
        assert committed(tmp_path) == last
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no space left"):
        patched.setattr(os, "fsync", fail)
        commit(tmp_path, after(4), last)
    assert committed(tmp_path) == last
    steps = {path.name for path in tmp_path.glob("isr/*")}
    assert steps == {"step=2", "step=3", "step=4"}, "step 1 is older than the one before"
    assert others.is_dir(), "it is not of a table"


def test_a_step_is_on_the_disk_before_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = tmp_path / "isr" / "step=1" / "final=true"
    part.mkdir(parents=True)
    (part / "rows.parquet").touch()
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append(os.fstat(file).st_ino))
    new = Commit(1, {"isr": Contents((Part("isr/step=1/final=true", 1),))})
    commit(tmp_path, new, Commit())
    paths = (part / "rows.parquet", part, part.parent, tmp_path / "isr", tmp_path / COMMIT)
    written = [path.stat().st_ino for path in paths]
    assert set(written) < set(flushed)
    assert flushed[-2:] == [written[-1], tmp_path.stat().st_ino]


def test_a_step_waits_for_that_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that begins during a batch of another run repeats this batch."""

    def locked(out: Path) -> Commit:
        with (out / LOCK).open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        raise BadOption("the step began")

    monkeypatch.setattr(following, "committed", locked)
    with pytest.raises(BadOption, match="the step began"):
        apply(cast("DataFrame", None), tmp_path / "out", ("isr",))


def test_a_directory_of_other_tables_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    def refused(tables: Sequence[str], reason: str) -> None:
        with pytest.raises(BadOption, match=reason):
            follow(spark, ["log"], tmp_path, tables, 1)

    refused(["isr", "topics"], "no stream keeps the table topics current: choose from leadership")
    commit(tmp_path, Commit(1, {"isr": Contents()}), Commit())
    refused(["isr", "sessions"], "has the tables isr: a later run must keep the same ones")
    refused(["isr"], "has tables but lacks its _checkpoint")
    with pytest.raises(BadOption, match="has tables that --table names"):
        append_records(spark, ["log"], tmp_path, 1)
    (tmp_path / COMMIT).write_text("{")
    refused(["isr"], "_commit.json is damaged")
    (tmp_path / COMMIT).unlink()
    commits = tmp_path / CHECKPOINT / "commits"
    commits.mkdir(parents=True)
    follow(spark, ["log"], tmp_path, ["isr"], 1)  # The first batch failed before its commit.
    (commits / "0").touch()
    refused(["isr"], "has records or lost its tables")
    with pytest.raises(BadOption, match="has no tables of"):
        current_tables(spark, tmp_path)


@given(st.lists(st.integers(1, 1000), max_size=2000))
def test_folders_stay_few_and_rows_are_seldom_written_again(added: list[int]) -> None:
    folders: list[int] = []
    written = 0
    for rows in added:
        merged = to_merge(folders)
        new = rows + sum(folders[len(folders) - merged :])
        folders = [*folders[: len(folders) - merged], new]
        written += new
    assert sum(folders) == sum(added)
    if added:
        doublings = math.log2(sum(added)) + 1
        assert len(folders) <= FAN + doublings
        assert written <= sum(added) * doublings


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_on_every_prefix_of_a_small_history(spark: SparkSession, tmp_path: Path) -> None:
    """Each prefix is a first batch, the next Raft batch a second one, and the rest a third one."""
    made = batches()
    ends = [read_header(batch).next_offset for batch in made]
    cuts = {
        f"cluster-{number}": (end, after, ends[-1])
        for number, (end, after) in enumerate(pairwise([*ends, ends[-1]]))
    }
    rows = logs_of({tmp_path / each: b"".join(made) for each in cuts}, spark)
    follow_in_batches(rows, tmp_path / "out", cuts)
    rows.unpersist()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_on_prefixes_of_histories_of_the_rules(spark: SparkSession, tmp_path: Path) -> None:
    """Each history is that of one cluster. A batch has records of all clusters."""
    seeds = {f"cluster-{seed}": random.Random(seed) for seed in range(HISTORIES)}
    data = {
        tmp_path / cluster: Varied(seed.getrandbits(32)).run(seed.randint(20, 300))
        for cluster, seed in seeds.items()
    }
    rows = logs_of(data, spark)
    last = rows.groupBy("cluster_id").agg(f.max("offset")).collect()
    ends = {
        cluster: [*sorted(seeds[cluster].randrange(1, offset + 1) for _ in range(3)), offset + 1]
        for cluster, offset in last
    }
    follow_in_batches(rows, tmp_path / "out", ends)
    rows.unpersist()


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int, list[float]]]:
    """Return some histories: a seed and a number of steps of the rules, and the places of the ends
    of batches, as shares of the log."""
    shares = st.lists(st.floats(0.01, 1), min_size=1, max_size=3).map(sorted)
    one = st.tuples(st.integers(0, 2**32 - 1), st.integers(20, 300), shares)
    return draw(st.lists(one, min_size=1, max_size=6))


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_on_many_histories_of_the_rules(spark: SparkSession) -> None:
    """Batches end anywhere. No example begins after BUDGET_S, so that the test ends."""
    until_s = time.monotonic() + BUDGET_S
    ran = 0

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(made=histories())
    def check(made: list[tuple[int, int, list[float]]]) -> None:
        nonlocal ran
        if time.monotonic() > until_s:
            return
        with TemporaryDirectory() as directory:
            root = Path(directory)
            names = [f"cluster-{number}" for number, _ in enumerate(made)]
            logs = {
                root / name: Varied(seed).run(steps)
                for name, (seed, steps, _) in zip(names, made, strict=True)
            }
            rows = logs_of(logs, spark)
            found = rows.groupBy("cluster_id").agg(f.max("offset")).collect()
            last = {str(row[0]): int(row[1]) for row in found}
            # All clusters have the same number of batches. The later ones of some are empty.
            count = max(len(shares) for _, _, shares in made)
            ends = {
                name: [
                    *(max(1, round(share * last[name])) for share in shares),
                    *[last[name] + 1] * (count - len(shares) + 1),
                ]
                for name, (_, _, shares) in zip(names, made, strict=True)
            }
            follow_in_batches(rows, root / "out", ends)
            spark.catalog.clearCache()
        ran += 1

    check()
    assert ran


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_command_over_restarts_rolls_and_deleted_segments(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The last batch of the first run runs again, with the records of a new segment."""
    monkeypatch.setattr(session, "local_session", lambda name: nullcontext(spark))
    made, out, log = batches(), tmp_path / "out", tmp_path / "log"
    log_of(log, b"".join(made[:9]), spark)
    names = [part for name in INCREMENTAL for part in ("--table", name)]

    def run(limit: int) -> list[dict[str, Any]]:
        options = ["--once", "--max-records", str(limit), "--format", "json"]
        command = ["history", "stream", str(log), "--out", str(out), *names, *options]
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
        return [json.loads(line) for line in done.stdout.splitlines()]

    seen = run(7)
    assert [batch["tables"]["isr"]["lag"] for batch in seen][-1] == 0 and len(seen) > 1
    for path in (out / CHECKPOINT / "commits").glob(f"*{len(seen) - 1}*"):
        path.unlink()  # The last batch runs again.
    write_segment(log, read_header(made[9]).base_offset, b"".join(made[9:]))
    run(1000)
    assert_current(read_log(spark, log), out, INCREMENTAL)
    write_segment(log, 0, b"").unlink()
    assert run(1000) == []

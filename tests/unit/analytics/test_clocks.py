"""A log that ends under a fast clock: no interval lasts longer than the log can prove."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.quorum.analytics.log import clocks, files
from quorate.quorum.analytics.log.clocks import TOLERANCE_MS, latest_times
from quorate.quorum.analytics.log.plan import Choice, planned
from quorate.quorum.log.batches.batch import read_header
from tests.unit.analytics.logs import batches, write_segment
from tests.unit.analytics.oracle import every

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAST_MS = read_header(batches()[-1]).max_timestamp_ms
EARLY_MS = LAST_MS - 2 * TOLERANCE_MS


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(clocks, "modified_ms", files.modified_ms)
    path = write_segment(tmp_path, 0, b"".join(batches()))
    os.utime(path, ns=(0, EARLY_MS * 1_000_000))
    return path


def found(log: Path) -> list[int]:
    return [*latest_times(planned(Choice(locations=(str(log.parent),), include="base"))).values()]


def test_a_record_is_not_later_than_the_last_change_of_its_file(log: Path) -> None:
    assert found(log) == [EARLY_MS]
    for apart_ms, expected in ((TOLERANCE_MS + 1, 1), (TOLERANCE_MS, 0), (-TOLERANCE_MS, 0)):
        os.utime(log, ns=(0, (LAST_MS - apart_ms) * 1_000_000))
        assert len(found(log)) == expected, apart_ms


def test_a_record_is_not_later_than_its_reader(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's time is that of the same fast clock."""
    os.utime(log, ns=(0, LAST_MS * 1_000_000))
    assert found(log) == []
    monkeypatch.setattr(clocks, "now_ms", lambda: EARLY_MS)
    assert found(log) == [EARLY_MS]
    monkeypatch.setattr(clocks, "modified_ms", lambda path: None)
    assert found(log) == [EARLY_MS], "a filesystem without times"


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # pyspark's own
@pytest.mark.timeout(600)
def test_open_intervals_end_with_the_time_that_a_log_proves(
    spark: SparkSession, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quorate.quorum.analytics.tables import TABLES, read_tables

    monkeypatch.setattr(clocks, "TOLERANCE_MS", 0)
    late_ms = LAST_MS - 1_500
    os.utime(log, ns=(0, late_ms * 1_000_000))
    made = read_tables(spark, log.parent)
    rows = {name: [row.asDict(recursive=True) for row in made[name].collect()] for name in TABLES}
    spark.catalog.clearCache()
    open_ones = [row for row in rows["leadership"] if row["end_ms"] is None]
    assert open_ones
    assert all(row["duration_ms"] == max(late_ms - row["start_ms"], 0) for row in open_ones)
    (warned,) = [row for row in rows["warnings"] if row["kind"] == "clock-ahead"]
    late = [each for each in every(b"".join(batches())) if each.at_ms > late_ms]
    assert (warned["severity"], warned["count"]) == ("note", len(late))
    assert warned["timestamp_ms"] == late[0].at_ms
    assert f"up to {LAST_MS - late_ms} ms later than the last change" in warned["detail"]
    assert "latest_ms" not in made["records"].columns

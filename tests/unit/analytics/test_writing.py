"""A small table is one file, a large one several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.tables import writing
from quorate.quorum.analytics.tables.writing import ADAPTIVE, bytes_of, write
from tests.unit.metadata.kafka_dump import C1

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_size_of_the_logs() -> None:
    assert bytes_of(C1) == sum(each.stat().st_size for each in C1.iterdir())


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")  # pyspark's own
@pytest.mark.timeout(240)
def test_the_files_of_a_large_log(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def files(rows: int, log_bytes: int) -> int:
        table = spark.range(rows).selectExpr("id", "cast(rand() as string) as text").repartition(5)
        write(table, tmp_path / "table", "parquet", log_bytes)
        assert spark.read.parquet(str(tmp_path / "table")).count() == rows
        return len(list((tmp_path / "table").glob("*.parquet")))

    before = {name: spark.conf.get(name, None) for name in ADAPTIVE}
    monkeypatch.setitem(ADAPTIVE, "spark.sql.adaptive.advisoryPartitionSizeInBytes", "100000")
    assert files(20_000, writing.ONE_FILE_BYTES) == 1
    assert files(20_000, writing.ONE_FILE_BYTES + 1) > 1
    assert files(20, writing.ONE_FILE_BYTES + 1) == 1, "a small table of a large log"
    assert {name: spark.conf.get(name, None) for name in ADAPTIVE} == before

"""The rows of the demo's tables come from Spark in the order in which the demo shows them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from quorate.cli.demo.history import tell_rows
from quorate.cli.demo.history_lines import SHOWN


def test_the_rows_of_a_table(spark: SparkSession) -> None:
    rows = [("__consumer_offsets", each, each) for each in range(50)]
    rows += [("demo", partition, offset) for partition in (1, 0) for offset in range(20, 0, -1)]
    table = spark.createDataFrame(rows, "topic string, partition int, start_offset bigint")
    said: list[str] = []
    tell_rows(
        table,
        "demo",
        "start_offset",
        lambda row: f"{row['topic']}-{row['partition']} {row['start_offset']}",
        lambda _, text: said.append(text),
    )
    assert said[:2] == ["demo-0 1", "demo-0 2"]
    assert said[20] == "demo-1 1"
    assert said[40] == "__consumer_offsets-0 0"
    assert len(said) == SHOWN + 1
    assert said[-1] == ("and 30 more rows, which only the report has: 30 of __consumer_offsets")

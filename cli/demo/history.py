"""The demo's report from the metadata log: leaders, causes, partitions without a leader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.cli.demo.history_lines import (
    SHOWN,
    leader_line,
    leaderless_line,
    left_out_line,
    outage_line,
    rank_of,
)
from quorate.cli.history.source import longest_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def tell_history(
    cluster_root: Path, topic: str, out: Path, say: Callable[[str, str], None], waited_ms: int
) -> None:
    """Write the history report of the cluster to `out` with Spark. Print a summary with `say`.

    The tables show `topic` first and internal topics last. `waited_ms` is the longest time for
    which a client waited for an acknowledgement after a kill. A sentence explains it."""
    from quorate.quorum.analytics.page.report import report
    from quorate.quorum.analytics.spark.session import local_session

    with local_session("quorate demo") as spark:
        summary = report(
            longest_log(cluster_root), out / "report.html", out / "tables", spark=spark
        )
        say("history", summary.lines()[0])
        for line in summary.lines()[1:]:
            say("", line)
        leadership = spark.read.parquet(str(out / "tables" / "leadership"))
        say("leaders", "topic-partition, leader, epoch, for how long, why it changed")
        tell_rows(leadership, topic, "start_offset", leader_line, say)
        availability = spark.read.parquet(str(out / "tables" / "availability"))
        lost = availability.where("leaderless_ms > 0")
        say("available", f"{lost.count()} partitions were without a leader at some time")
        tell_rows(lost, topic, "partition", leaderless_line, say)
        leaderless = [row["leaderless_ms"] for row in lost.where(lost["topic"] == topic).collect()]
        if said := outage_line(waited_ms, max(leaderless, default=0)):
            say("", said)


def tell_rows(
    table: DataFrame,
    topic: str,
    order: str,
    line: Callable[..., str],
    say: Callable[[str, str], None],
) -> None:
    """Print the first SHOWN rows, ordered by topic, partition and `order`, and what is left out."""
    topics = {row["topic"]: row["count"] for row in table.groupBy("topic").count().collect()}
    left = SHOWN
    for name in sorted(topics, key=lambda each: rank_of(each, topic)):
        rows = table.where(table["topic"] == name).orderBy("partition", order).limit(left)
        for row in rows.collect() if left else ():
            say("", line(row.asDict()))
            topics[name] -= 1
            left -= 1
    if said := left_out_line(topics):
        say("", said)

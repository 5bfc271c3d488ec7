"""The demo's report from the metadata log: leaders, causes, partitions without a leader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quorate.cli.history_source import longest_log

SHOWN = 40


def tell_history(cluster_root: Path, out: Path, say: Callable[[str, str], None]) -> None:
    """Write the history report of the cluster to `out` with Spark. Print a summary with `say`."""
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
        say("leaders", "partition, leader, epoch, for how long, why it changed")
        rows = leadership.orderBy("partition", "start_offset").limit(SHOWN).collect()
        for row in rows:
            leader = "none" if row["leader"] < 0 else f"broker {row['leader']}"
            say(
                "",
                f"{row['partition']:>3}  {leader:<9}  epoch {row['leader_epoch']:<3} "
                f"{row['duration_ms'] / 1000:>8.3f} s  {row['cause'] or ''}",
            )
        availability = spark.read.parquet(str(out / "tables" / "availability"))
        lost = [row for row in availability.orderBy("partition").collect() if row["leaderless_ms"]]
        say("available", f"{len(lost)} partitions were without a leader at some time")
        for row in lost:
            say("", f"partition {row['partition']} had no leader for {row['leaderless_ms']} ms")

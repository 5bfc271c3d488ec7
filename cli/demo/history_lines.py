"""The lines of the demo's tables. Pure text functions of rows, which are given as dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOWN = 60
"""The most rows of a table that are printed. All rows are in the report."""
INTERNAL = "__"
"""The prefix of the names of internal topics."""
Row = Mapping[str, Any]


def rank_of(name: str, own: str) -> tuple[int, str]:
    """Return the sort key of a topic: the demo's own topic first, internal topics last."""
    return (0 if name == own else 2 if name.startswith(INTERNAL) else 1, name)


def leader_line(row: Row) -> str:
    """Return the line of a leader epoch."""
    leader = "none" if row["leader"] < 0 else f"broker {row['leader']}"
    return (
        f"{partition_of(row):<24}  {leader:<9}  epoch {row['leader_epoch']:<3} "
        f"{row['duration_ms'] / 1000:>8.3f} s  {row['cause'] or ''}"
    )


def leaderless_line(row: Row) -> str:
    """Return the line of a partition that had no leader at some time."""
    return f"{partition_of(row)} had no leader for {row['leaderless_ms']:,} ms"


def outage_line(waited_ms: int, leaderless_ms: int) -> str:
    """Return the sentence about the longest wait of the clients, beside the longest time for which
    the log shows a partition without a leader. Return "" if the clients did not wait longer."""
    if waited_ms <= leaderless_ms:
        return ""
    shown = f"for {leaderless_ms:,} ms" if leaderless_ms else "at no time"
    return (
        f"clients waited for up to {waited_ms:,} ms, although the log shows a partition without a "
        f"leader {shown}: the dead leader stays the leader in the log until the controller has "
        "noticed the death, and one record then names the next one. The wait also contains the "
        "time until the clients have found the new leader"
    )


def left_out_line(topics: Mapping[str, int]) -> str:
    """Return the line about the rows that are not printed, by topic, or "" if there are none."""
    missing = {name: count for name, count in sorted(topics.items()) if count}
    if not missing:
        return ""
    named = ", ".join(f"{count:,} of {name}" for name, count in missing.items())
    return f"and {sum(missing.values()):,} more rows, which only the report has: {named}"


def partition_of(row: Row) -> str:
    """Return TOPIC-PARTITION."""
    return f"{row['topic']}-{row['partition']}"

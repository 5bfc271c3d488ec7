"""The oracle of the columns that follow from others, and of the rows of `warnings` about a sound
log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.analytics.oracle import Logged

Row = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def completed(rows: Iterable[Row], columns: Sequence[str], cluster_id: str) -> list[Row]:
    """Return the rows with the columns that every table has: the cluster, and the times of the
    columns in ms."""
    return [
        {
            **row,
            **{name: _instant(row[ms]) for name, ms in _times(columns)},
            "cluster_id": cluster_id,
        }
        for row in rows
    ]


def _times(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns that are times, with the columns that have the same times in ms."""
    named = [(name, name.removesuffix("_time") + "_ms") for name in columns if "_time" in name]
    return named + [("time", "timestamp_ms")] * ("time" in columns)


def _instant(at_ms: int | None) -> str | None:
    """Return a time as Spark's JSON has it."""
    if at_ms is None:
        return None
    moment = EPOCH + timedelta(milliseconds=at_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def share_with_a_leader(row: Row) -> float:
    """Return the column `available` of a row of the table `availability`."""
    if row["total_ms"] == 0:
        return 1.0
    share: float = 1 - row["leaderless_ms"] / row["total_ms"]
    return share


def warnings(records: Sequence[Logged], proved: int, voters: Sequence[int]) -> list[Row]:
    """Return the warnings about a sound log. `records` has all of it, `proved` is the end of its
    newest snapshot, and `voters` are the last ones."""
    rows: list[Row] = []
    for before, each in pairwise(records):
        if each.at_ms < before.at_ms:
            said = (
                f"The clock goes back by {before.at_ms - each.at_ms} ms at offset {each.offset}, "
                f"between the controller epochs {before.epoch} and {each.epoch}. Durations across "
                "it are too short, and 0 if they would be negative."
            )
            rows.append(_note("clock-step", each.offset, each.offset, said, each.at_ms))
    if len(voters) != 1:
        end = records[-1].offset
        said = (
            f"Nothing proves that the {end - proved + 1} records from offset {proved} on are "
            "committed. If a majority of the voters lacks some, they may still be replaced. Give "
            "the logs of all voters to know."
        )
        rows.append(_note("uncommitted-tail", proved, end, said, None))
    return rows


def _note(kind: str, first: int, last: int, detail: str, at_ms: int | None) -> Row:
    return {
        "kind": kind, "severity": "note", "first_offset": first, "last_offset": last,
        "count": last - first + 1, "timestamp_ms": at_ms, "type": None, "detail": detail,
    }  # fmt: skip

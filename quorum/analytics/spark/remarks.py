"""Rows about the log itself: its damage, and the names of its snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.quorum.analytics.log.damage import Damage
from quorate.quorum.analytics.log.segments import Slice
from quorate.quorum.analytics.spark.columns import SNAPSHOT_NAME, UNKNOWN_TYPE, remark_of
from quorate.quorum.metadata.record_text import Unknown

REMARK = "REMARK"
"""The type of a row that is no record."""


def remarks_on(piece: Slice, damage: Sequence[Damage]) -> list[dict[str, Any]]:
    """Return the rows about a slice, by column. Columns that are missing are null.

    These rows have no effect (`effective` is false), so no table counts them as records."""
    rows = [
        _remark(each.kind, each.first_offset, remark_end=each.end_offset, value=each.text)
        for each in damage
    ]
    if piece.snapshot is None:
        return [_from(piece) | row for row in rows]
    last_offset, epoch = piece.snapshot.end_offset - 1, piece.snapshot.epoch
    for row in rows:
        row |= {"offset": last_offset, "remark_end": None, "epoch": epoch, "snapshot_index": 0}
    if piece.only_named:
        rows.append(_remark(SNAPSHOT_NAME, last_offset, epoch=epoch, value=piece.path))
    return [_from(piece) | row for row in rows]


def _from(piece: Slice) -> dict[str, Any]:
    origin = piece.origin
    return {"cluster_id": origin.cluster_id, "node_id": origin.node_id, "file": piece.path}


def _remark(kind: str, offset: int, **more: Any) -> dict[str, Any]:
    return {"offset": offset, "type": REMARK, "effective": False, "remark": kind, **more}


def is_newer(message: object) -> bool:
    """Return True if the message is a record of a known type in a version that is not known."""
    return isinstance(message, Unknown) and remark_of(message) != UNKNOWN_TYPE

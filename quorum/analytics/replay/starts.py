"""The snapshots from which the replay to a moment can begin.

The image after a replay from the nearest snapshot equals that after a replay from the beginning.
Only Raft's record of the leader is not in a snapshot (`log/leaders.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from quorate.quorum.analytics.log.errors import DamagedLog
from quorate.quorum.analytics.log.reading import read_batches
from quorate.quorum.analytics.log.segments import Slice, log_start_offset, snapshot_slices
from quorate.quorum.log.batches.batch import records_of
from quorate.quorum.metadata.record_text import control_message
from quorate.quorum.raft.control_records import SnapshotHeaderRecord


def starts(directory: Path, offset: int | None, time_ms: int | None) -> Iterator[Slice]:
    """Yield the snapshots from which the replay to a moment can begin, the nearest one first.

    The moment is `offset`, or else `time_ms`, or else the end of the log. If the clock stepped
    back, times repeat. A snapshot is used for a time only if neither it nor an older snapshot ends
    after that time. For a time, snapshots whose first batch is damaged are left out."""
    log_start = log_start_offset(directory)
    usable = []
    for piece in snapshot_slices(directory):
        assert piece.snapshot is not None
        if offset is not None and piece.snapshot.end_offset > offset + 1:
            break
        if offset is None and time_ms is not None:
            ended_ms = _ended_ms(piece)
            if ended_ms is None:
                continue
            if ended_ms > time_ms:
                break
        if piece.snapshot.end_offset >= log_start:
            usable.append(piece)
    yield from reversed(usable)


def _ended_ms(snapshot: Slice) -> int | None:
    try:
        return last_timestamp_ms(snapshot)
    except DamagedLog:
        return None


def last_timestamp_ms(snapshot: Slice) -> int:
    """Return the time of the last record that the snapshot covers, in ms since 1970.

    The snapshot's header contains it. Without a header it is the time of the first batch. Raise
    DamagedLog if the first batch is damaged."""
    for header, data, position in read_batches(replace(snapshot, end=min(1, snapshot.end))):
        for record in records_of(data, position, header) if header.is_control else ():
            message, _ = control_message(record)
            if isinstance(message, SnapshotHeaderRecord):
                return message.last_contained_log_timestamp
        return header.max_timestamp_ms
    return 0

"""The records of a metadata log one after the other, without Spark: for a moment or one story.

What took effect comes out, a metadata transaction as a whole when it ends (KIP-868); an aborted or
never ended one never does. Where the log's beginning is gone it begins with a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quorate.quorum.analytics.segments import Slice, history_slices, metadata_dir, read_batches
from quorate.quorum.log.batch import records_of
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from quorate.quorum.readable import control_message, metadata_message


@dataclass(frozen=True, slots=True)
class Logged:
    offset: int
    epoch: int
    timestamp_ms: int
    batch_offset: int
    """What one batch holds happened at once."""
    message: object
    of_snapshot: bool = False
    of_raft: bool = False


def never(logged: Logged) -> bool:
    return False


def walk(directory: Path | str, *, past: Callable[[Logged], bool] = never) -> Iterator[Logged]:
    """In order; ends before the first record that is `past` what is wanted."""
    for _, effective in settled(logged(history_slices(metadata_dir(str(directory)))), past=past):
        yield from effective


def settled(
    records: Iterable[Logged], *, past: Callable[[Logged], bool] = never
) -> Iterator[tuple[Logged, list[Logged]]]:
    """(a record, what takes effect with it): itself, or a transaction that it ends. What stands
    inside of one is not told by itself."""
    held: list[Logged] | None = None
    for each in records:
        if past(each):
            return
        message = each.message
        if isinstance(message, BeginTransactionRecord):
            held = []
        elif isinstance(message, EndTransactionRecord | AbortTransactionRecord):
            ended, held = held, None
            yield each, ended if ended and isinstance(message, EndTransactionRecord) else []
        elif held is None or each.of_raft:
            yield each, [each]
        else:
            held.append(each)


def logged(slices: Iterable[Slice]) -> Iterator[Logged]:
    """Every record, also what never takes effect."""
    for piece in slices:
        yield from _of_slice(piece)


def _of_slice(piece: Slice) -> Iterator[Logged]:
    snapshot = piece.snapshot
    for header, data, position in read_batches(piece):
        read = control_message if header.is_control else metadata_message
        for record in records_of(data, position, header):
            if snapshot is None and record.offset < piece.first_offset:
                continue  # the snapshot before says it
            message, _ = read(record)
            yield Logged(
                record.offset if snapshot is None else snapshot.end_offset - 1,
                header.leader_epoch if snapshot is None else snapshot.epoch,
                record.timestamp_ms,
                header.base_offset,
                message,
                of_snapshot=snapshot is not None,
                of_raft=header.is_control,
            )

"""The records of a metadata log one after the other, without Spark.

`walk` returns only records that took effect. A metadata transaction takes effect as a whole at its
end (KIP-868). Aborted and unfinished transactions never take effect. If older segments were
deleted, the walk begins with a snapshot.

A batch with a correct CRC can hold a record that cannot be decoded. `walk` and `logged` then raise
MalformedRecord, DecodeError or CorruptBatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quorate.quorum.analytics.log.damage import (
    DAMAGED_BATCH,
    DAMAGED_RECORD,
    UNFINISHED,
    Damage,
    Found,
    refuse,
)
from quorate.quorum.analytics.log.forward import forward
from quorate.quorum.analytics.log.reading import read_batches
from quorate.quorum.analytics.log.segments import Slice, metadata_dir
from quorate.quorum.log.batches.batch import BatchHeader, records_of
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.metadata.errors import MalformedRecord
from quorate.quorum.metadata.record_text import control_message, metadata_message
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from quorate.quorum.protocol.varint import DecodeError


@dataclass(frozen=True, slots=True)
class Logged:
    """One record of the log, decoded.

    A record of a snapshot has the last offset and the epoch of the snapshot."""

    offset: int
    epoch: int
    timestamp_ms: int
    batch_offset: int
    """Base offset of the batch, or its position in the snapshot. The log's records of one batch
    were written in one step."""
    message: object
    of_snapshot: bool = False
    of_raft: bool = False
    """True for control records, which Raft writes."""


def never(logged: Logged) -> bool:
    """Return False for every record.

    It is the default of `walk`, which then reads to the end of the log."""
    return False


def walk(
    directory: Path | str, *, past: Callable[[Logged], bool] = never, found: Found = refuse
) -> Iterator[Logged]:
    """Yield the records that took effect, before the first record for which `past` returns True.

    The order is that in which they took effect. The records of a transaction therefore follow
    control records that Raft wrote inside it. The markers of transactions are left out. `found`
    is that of `logged`. Raise NoMetadataLog or DamagedLog."""
    for _, effective in settled_around(forward(metadata_dir(str(directory))), found, past=past):
        yield from effective


def settled_around(
    slices: Iterable[Slice], found: Found, *, past: Callable[[Logged], bool] = never
) -> Iterator[tuple[Logged, list[Logged]]]:
    """Yield the pairs of `settled` for the records of the slices. `found` is that of `logged`.

    If damage follows the begin of a transaction without an end, also call `found` for the records
    after the begin. They have no effect, because the end of the transaction may be lost."""
    if found is refuse:
        yield from settled(logged(slices), past=past)
        return
    begun: Logged | None = None
    inside, damaged = 0, False

    def note(damage: Damage) -> None:
        nonlocal damaged
        damaged = True
        found(damage)

    def unfinished() -> None:
        if begun is not None and damaged and inside:
            text = (
                f"the transaction at offset {begun.offset} has no end that can be read, so "
                f"{inside} records after its begin have no effect"
            )
            found(Damage(UNFINISHED, begun.offset, None, text))

    def watched() -> Iterator[Logged]:
        nonlocal begun, inside, damaged
        for each in logged(slices, note):
            if isinstance(each.message, BeginTransactionRecord):
                unfinished()
                begun, inside, damaged = each, 0, False
            elif isinstance(each.message, EndTransactionRecord | AbortTransactionRecord):
                begun = None
            yield each
            inside += each is not begun and not each.of_raft

    yield from settled(watched(), past=past)
    unfinished()


def settled(
    records: Iterable[Logged], *, past: Callable[[Logged], bool] = never
) -> Iterator[tuple[Logged, list[Logged]]]:
    """Yield pairs of a record and the list of records that take effect with it.

    The list contains the record itself, or the records of the transaction that the record ends. It
    is empty if the record aborts a transaction. The marker that begins a transaction, and metadata
    records inside of it, yield no pair of their own. The pairs end before the first record for
    which `past` returns True."""
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


def logged(slices: Iterable[Slice], found: Found = refuse) -> Iterator[Logged]:
    """Yield every record of the slices, including records that never take effect.

    Call `found` for damage. If it returns, continue behind the damage. The default raises
    DamagedLog, or the error of a record that cannot be decoded."""
    for piece in slices:
        yield from _of_slice(piece, found)


def _of_slice(piece: Slice, found: Found) -> Iterator[Logged]:
    snapshot = piece.snapshot
    for header, data, position in read_batches(piece, found):
        read = control_message if header.is_control else metadata_message
        for record in _records(header, data, position, found):
            if snapshot is None and record.offset < piece.first_offset:
                continue  # The base snapshot contains this record.
            try:
                message, _ = read(record)
            except (MalformedRecord, DecodeError) as error:
                if found is refuse:
                    raise
                text = f"the record at offset {record.offset} cannot be decoded: {error}"
                found(Damage(DAMAGED_RECORD, record.offset, record.offset + 1, text))
                continue
            yield Logged(
                record.offset if snapshot is None else snapshot.end_offset - 1,
                header.leader_epoch if snapshot is None else snapshot.epoch,
                record.timestamp_ms,
                header.base_offset,
                message,
                of_snapshot=snapshot is not None,
                of_raft=header.is_control,
            )


def _records(header: BatchHeader, data: bytes, position: int, found: Found) -> Iterable[Record]:
    """Return the records of a batch. If they cannot be read, call `found` and return none."""
    if found is refuse:
        return records_of(data, position, header)
    try:
        return list(records_of(data, position, header))
    except CorruptBatch as error:
        text = f"the batch at offset {header.base_offset} cannot be decoded: {error}"
        found(Damage(DAMAGED_BATCH, header.base_offset, header.next_offset, text))
        return []

"""The positions, offsets, timestamps and epochs of the records of many batches, as numpy arrays.

The length of a record leads to the next one. One numpy step follows a record of each batch. When
few batches have records left, a Python loop follows these. All other fields are read with numpy for
all records in one step.

A record is `regular` if it has a value and neither a key nor headers, as metadata records do. Other
records are decoded one by one and kept in `special`, as are the records of control batches, of
compressed batches, and of batches with the broker's time (LogAppendTime).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NoReturn

import numpy as np

from quorate.quorum.analytics.log.damage import DAMAGED_BATCH, Damage, Found
from quorate.quorum.analytics.spark.vectors import Bytes, Cursors, Ints, Mask
from quorate.quorum.log.batches.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    PREFIX_BYTES,
    BatchHeader,
    records_of,
)
from quorate.quorum.log.batches.record import NULL, Record, decode_records, read_varint
from quorate.quorum.log.files.errors import CorruptBatch

SPECIAL = CODEC_MASK | CONTROL | LOG_APPEND_TIME
"""Attribute bits of batches that are decoded record by record."""
MAX_TIME_DELTA_BYTES = 9
"""Maximum length of a timestamp delta that numpy reads. Longer ones are decoded one by one."""
HEADERS = np.dtype(
    [(name, f">{code}") for name, code in zip(BatchHeader._fields, HEADER.format[1:], strict=True)]
)
"""The header of a batch, as numpy reads it."""
TOGETHER = 256
"""The number of batches from which on a numpy step for all of them is faster than a loop."""


@dataclass(slots=True)
class Framed:
    """The records of many batches, one row each, in the order of the log.

    All arrays have the same length. `value_start` and `value_end` are positions in `buffer`, and
    are valid only for `regular` rows."""

    buffer: bytes
    data: Bytes
    offset: Ints
    timestamp_ms: Ints
    epoch: Ints
    value_start: Ints
    value_end: Ints
    regular: Mask
    special: dict[int, tuple[Record, bool]]
    """The decoded records by row. The boolean is True for control records."""

    def __len__(self) -> int:
        return len(self.offset)

    def chosen(self, keep: Mask) -> Framed:
        """Return the rows for which `keep` is true."""
        rows = np.flatnonzero(keep)
        special = {
            place: self.special[row]
            for place, row in enumerate(rows.tolist())
            if row in self.special
        }
        return Framed(
            self.buffer,
            self.data,
            self.offset[rows],
            self.timestamp_ms[rows],
            self.epoch[rows],
            self.value_start[rows],
            self.value_end[rows],
            self.regular[rows],
            special,
        )


Batch = tuple[BatchHeader, int]
"""The header of a batch and its position in the buffer."""


def framed(batches: Sequence[Batch], buffer: bytes, found: Found) -> Iterator[Framed]:
    """Yield the records of the batches. Call `found` for each batch whose records cannot be
    read."""
    try:
        yield _framed(batches, buffer)
    except CorruptBatch as error:
        if len(batches) > 1:
            for each in batches:
                yield from framed([each], buffer, found)
            return
        ((header, _),) = batches
        text = f"the batch at offset {header.base_offset} cannot be decoded: {error}"
        found(Damage(DAMAGED_BATCH, header.base_offset, header.next_offset, text))


def _framed(batches: Sequence[Batch], buffer: bytes) -> Framed:
    """Return the records of the batches, at least one.

    Raise CorruptBatch if the records of a batch do not fill it exactly."""
    data = Bytes(buffer)
    position = np.array([at for _, at in batches], np.int64)
    headers = data.structs(HEADERS, position)
    counts = headers["record_count"].astype(np.int64)
    batch_end = position + PREFIX_BYTES + headers["length"]
    is_special = headers["attributes"] & SPECIAL != 0
    decoded = {
        index: list(records_of(buffer, batches[index][1], batches[index][0]))
        for index in np.flatnonzero(is_special).tolist()
    }
    # A record has more than one byte. This bounds the memory for its row.
    if (absurd := np.flatnonzero(~is_special & (counts > batch_end - position))).size:
        _raise_corrupt(batches[absurd[0]], buffer)
    first = np.cumsum(counts) - counts
    start = np.repeat(position, counts)
    usual = np.flatnonzero(~is_special)
    follow = _Follow(data, buffer, start)
    ends = follow.ends(position[usual] + HEADER_BYTES, counts[usual], first[usual])
    if (wrong := np.flatnonzero(ends != batch_end[usual])).size:
        _raise_corrupt(batches[usual[wrong[0]]], buffer)
    end = np.append(start[1:], 0)
    end[first + counts - 1] = batch_end
    special = {
        row: (record, batches[index][0].is_control)
        for index, records in decoded.items()
        for row, record in enumerate(records, int(first[index]))
    }
    return _read(data, buffer, start, end, headers, counts, special)


def _raise_corrupt(batch: Batch, buffer: bytes) -> NoReturn:
    header, position = batch
    for _ in records_of(buffer, position, header):
        pass  # Decoding raises CorruptBatch with the reason.
    raise CorruptBatch(f"the records of the batch at byte {position} do not fill it")


class _Follow:
    """Follows the lengths of the records of many batches, and stores the positions of the
    records."""

    def __init__(self, data: Bytes, buffer: bytes, into: Ints) -> None:
        self._data = data
        self._buffer = buffer
        self._into = into

    def ends(self, at: Ints, counts: Ints, first: Ints) -> Ints:
        """Return the end of the last record of each batch, or -1 if a length is invalid.

        The first record of a batch begins at `at`. Its position is stored at the index `first`, and
        those of the next records at the following indices."""
        ends = np.full(len(at), -1, np.int64)
        batch, done = np.arange(len(at)), 0
        unusual: list[tuple[int, int, int]] = []
        while len(batch) >= TOGETHER:
            self._into[first[batch] + done] = at
            cursors = Cursors(self._data, at, at)
            length = cursors.varint()
            following, ok = cursors.at + length, cursors.ok & (length >= 0)
            if not ok.all():
                unusual += zip(batch[~ok].tolist(), at[~ok].tolist(), repeat(done))
            done += 1
            last = ok & (counts[batch] == done)
            ends[batch[last]] = following[last]
            if not (left := ok & ~last).all():
                batch, following = batch[left], following[left]
            at = following
        for index, position, passed in (
            *unusual,
            *zip(batch.tolist(), at.tolist(), repeat(done)),
        ):
            row, count = int(first[index]) + passed, int(counts[index]) - passed
            ends[index] = self._end(position, count, row)
        return ends

    def _end(self, position: int, count: int, first: int) -> int:
        """Do the same for `count` records of one batch."""
        buffer, starts = self._buffer, []
        try:
            for _ in range(count):
                starts.append(position)
                low = buffer[position]
                if low < 0x80:
                    position += 1 + (low >> 1)
                elif (high := buffer[position + 1]) < 0x80:
                    position += 2 + ((low & 0x7F | high << 7) >> 1)
                else:
                    length, position = read_varint(buffer, position)
                    position += length
        except (IndexError, CorruptBatch):
            return -1
        self._into[first : first + count] = starts
        return position


def _read(
    data: Bytes,
    buffer: bytes,
    start: Ints,
    end: Ints,
    headers: Any,
    counts: Ints,
    special: dict[int, tuple[Record, bool]],
) -> Framed:
    """Return the records with these positions. `headers` and `counts` are those of the batches."""
    base_offset, base_ms, epoch = (
        np.repeat(headers[name].astype(np.int64), counts)
        for name in ("base_offset", "base_timestamp_ms", "leader_epoch")
    )
    at = Cursors(data, start, end)
    length = at.varint()
    at.ok &= at.at + length == end
    at.byte()  # record attributes, unused in Kafka's format
    time_delta_ms = at.varint(MAX_TIME_DELTA_BYTES)
    offset_delta = at.varint()
    at.ok &= at.byte() == NULL
    value_length = at.varint()
    at.ok &= value_length >= 0
    value_start = at.at
    at.at = value_start + value_length
    at.ok &= at.byte() == 0
    made = Framed(
        buffer=buffer,
        data=data,
        offset=base_offset + offset_delta,
        timestamp_ms=base_ms + time_delta_ms,
        epoch=epoch,
        value_start=value_start,
        value_end=value_start + value_length,
        regular=at.finish(),
        special=special,
    )
    made.regular[list(special)] = False
    for row in np.flatnonzero(~made.regular).tolist():
        if row not in special:
            payload = buffer[start[row] : end[row]]
            (record,) = decode_records(payload, 1, int(base_offset[row]), int(base_ms[row]))
            special[row] = record, False
        record, _ = special[row]
        made.offset[row], made.timestamp_ms[row] = record.offset, record.timestamp_ms
    return made

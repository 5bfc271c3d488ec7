"""The positions, offsets, timestamps and epochs of the records of many batches, as numpy arrays.

A Python loop only follows the lengths from one record to the next. All other fields are read with
numpy for all records in one step.

A record is `regular` if it has a value and neither a key nor headers, as metadata records do. Other
records are decoded one by one and kept in `special`, as are the records of control batches, of
compressed batches, and of batches with the broker's time (LogAppendTime).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from quorate.quorum.analytics.log.damage import DAMAGED_BATCH, Damage, Found
from quorate.quorum.analytics.spark.vectors import Bytes, Cursors, Ints, Mask
from quorate.quorum.log.batches.batch import (
    CODEC_MASK,
    CONTROL,
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
        framing = Framing()
        for header, position in batches:
            framing.add(header, buffer, position)
        yield framing.take()
    except CorruptBatch as error:
        if len(batches) > 1:
            for each in batches:
                yield from framed([each], buffer, found)
            return
        ((header, _),) = batches
        text = f"the batch at offset {header.base_offset} cannot be decoded: {error}"
        found(Damage(DAMAGED_BATCH, header.base_offset, header.next_offset, text))


class Framing:
    """Collects batches of one buffer, and then converts them to arrays.

    The buffer may grow at its end between two calls of `add`. `take` may be called only once."""

    def __init__(self) -> None:
        self._buffer = b""
        self._starts: list[int] = []
        self._batches: list[tuple[int, int, int, int, int]] = []
        self._special: dict[int, tuple[Record, bool]] = {}

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, header: BatchHeader, buffer: bytes, position: int) -> None:
        """Add the batch at `position`. Raise CorruptBatch if its records do not fill the batch
        exactly.
        """
        self._buffer = buffer
        first, end = len(self._starts), position + PREFIX_BYTES + header.length
        if header.attributes & SPECIAL:
            self._add_special(header, first, position)
        elif self._follow(position + HEADER_BYTES, header.record_count) != end:
            for _ in records_of(buffer, position, header):
                pass  # Decoding raises CorruptBatch with the reason.
            raise CorruptBatch(f"the records of the batch at byte {position} do not fill it")
        self._batches.append(
            (
                len(self._starts) - first,
                header.base_offset,
                header.base_timestamp_ms,
                header.leader_epoch,
                end,
            )
        )

    def _add_special(self, header: BatchHeader, first: int, position: int) -> None:
        for row, record in enumerate(records_of(self._buffer, position, header), first):
            self._special[row] = record, header.is_control
            self._starts.append(position)

    def _follow(self, position: int, count: int) -> int:
        """Follow the lengths of `count` records. Return the end of the last, or -1 if a length is
        invalid.
        """
        buffer, append = self._buffer, self._starts.append
        try:
            for _ in range(count):
                append(position)
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
        return position

    def take(self) -> Framed:
        """Return the records of all added batches. At least one batch must have been added."""
        counts, offset, time_ms, epoch, last = np.array(self._batches, np.int64).T
        data, start = Bytes(self._buffer), np.array(self._starts, np.int64)
        end = np.append(start[1:], 0)
        end[np.cumsum(counts) - 1] = last
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
            buffer=self._buffer,
            data=data,
            offset=np.repeat(offset, counts) + offset_delta,
            timestamp_ms=np.repeat(time_ms, counts) + time_delta_ms,
            epoch=np.repeat(epoch, counts),
            value_start=value_start,
            value_end=value_start + value_length,
            regular=at.finish(),
            special=self._special,
        )
        self._read_irregular(
            made, start, end, np.repeat(offset, counts), np.repeat(time_ms, counts)
        )
        return made

    def _read_irregular(
        self, made: Framed, start: Ints, end: Ints, base_offset: Ints, base_ms: Ints
    ) -> None:
        made.regular[list(self._special)] = False
        for row in np.flatnonzero(~made.regular).tolist():
            if row not in self._special:
                payload = self._buffer[start[row] : end[row]]
                (record,) = decode_records(payload, 1, int(base_offset[row]), int(base_ms[row]))
                self._special[row] = record, False
            record, _ = self._special[row]
            made.offset[row], made.timestamp_ms[row] = record.offset, record.timestamp_ms

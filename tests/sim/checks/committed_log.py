"""The one history of a log, with which the committed records of all nodes must agree.

The bytes of the history are kept. Most batches were seen before, on another node or before a
restart. One comparison of bytes then suffices, and no batch is read again.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.seams import Buffer

OFFSET_BYTES = 8


class Violation(AssertionError):
    """Raised if an invariant does not hold."""


class Print(NamedTuple):
    """The identity of a batch: its end, its epoch and its CRC."""

    next_offset: int
    epoch: int
    crc: int


class CommittedLog:
    def __init__(self, name: str) -> None:
        self.name = name
        self.batches: dict[int, Print] = {}
        self._holder: dict[int, str] = {}
        self._bytes = bytearray()
        """The bytes of all batches, in the order in which they were first seen."""
        self._starts: dict[int, int] = {}
        """The start of each batch in `_bytes`, by its base offset."""
        self._ends: dict[int, int] = {}
        """The offset after each batch, by the end of the batch in `_bytes`."""

    @property
    def end(self) -> EpochOffset:
        """Return the end of a log that holds exactly this history."""
        last = self.batches.get(max(self.batches, default=-1))
        return EpochOffset(0, 0) if last is None else EpochOffset(last.epoch, last.next_offset)

    def holds(self, who: str, data: Buffer, below: int) -> int:
        """Check batches that the node `who` considers committed, as far as they end at or before
        `below`. Return the offset after the last one, or -1 if there is none. Raise Violation if a
        batch differs from the history."""
        next_offset = self._known_end(data)
        if 0 <= next_offset <= below:
            return next_offset
        next_offset = -1
        for position, header in batches(data):
            if header.next_offset > below:
                break
            found = Print(header.next_offset, header.leader_epoch, header.crc)
            known = self.batches.get(header.base_offset)
            if known is None:
                batch = data[position : position + header.size_bytes]
                self._add(who, header.base_offset, found, batch)
            elif known != found:
                raise Violation(
                    f"{self.name}: {who} has {found} committed at {header.base_offset}, "
                    f"{self._holder[header.base_offset]} had {known}"
                )
            next_offset = header.next_offset
        return next_offset

    def forget_from(self, offset: int) -> None:
        for each in [base_offset for base_offset in self.batches if base_offset >= offset]:
            del self.batches[each], self._holder[each], self._starts[each]
        self._ends = {end: after for end, after in self._ends.items() if after <= offset}

    def _known_end(self, data: Buffer) -> int:
        """Return the offset after `data` if all of it was seen before, byte for byte, or else
        -1."""
        start = self._starts.get(int.from_bytes(data[:OFFSET_BYTES], "big"))
        if start is None or not self._bytes.startswith(data, start):
            return -1
        return self._ends.get(start + len(data), -1)

    def _add(self, who: str, base_offset: int, found: Print, data: Buffer) -> None:
        self.batches[base_offset] = found
        self._holder[base_offset] = who
        self._starts[base_offset] = len(self._bytes)
        self._bytes += data
        self._ends[len(self._bytes)] = found.next_offset

"""A reader that follows a metadata log on disk while a node writes it.

It reads complete batches and remembers its position. Records above the high watermark may still be
replaced. The final timeline is therefore read again from the most up-to-date log after the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from quorate.cli.client.batches import whole_batches
from quorate.quorum.log.batches.batch import BatchHeader, records_of
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata.framing import decode_record
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.raft.control_records import LeaderChangeMessage, decode_control

PARTITION = "__cluster_metadata-0"
HEADER_BYTES = 61
"""The size of a batch's header, which includes its epoch and its CRC."""


class LoggedRecord(NamedTuple):
    """A decoded record with its offset, its batch's epoch and its timestamp in ms since 1970."""

    offset: int
    epoch: int
    wall_ms: int
    record: MetadataRecord | LeaderChangeMessage


@dataclass(slots=True)
class MetadataTail:
    """The position of a reader in one metadata log, which begins at `offset`.

    It reads segments only, not snapshots. After a truncation it does not yield the records that
    replace those it has passed. It finds a truncation by the last batch that it has passed, which
    is then shorter or another one, and reads the segment again to find its position."""

    log_dir: Path
    offset: int = 0
    """The next offset to read."""
    _segment: str = ""
    _position: int = 0
    _last: bytes = b""
    """The header of the last batch that was passed, which ends at `_position` with its batch."""
    _last_position: int = 0

    def skip_to_end(self) -> int:
        """Advance to the end of the log. Return the highest epoch passed, or -1."""
        return max((header.leader_epoch for _, _, header in self._batches()), default=-1)

    def read(self) -> Iterator[LoggedRecord]:
        """Yield the records appended since the last call. The position moves as they are yielded.

        LeaderChange is the only type of control record among them."""
        for content, position, header in self._batches():
            for each in records_of(content, position, header):
                record = _decoded(each, header.is_control)
                if record is not None:
                    yield LoggedRecord(each.offset, header.leader_epoch, each.timestamp_ms, record)

    def _batches(self) -> Iterator[tuple[memoryview, int, BatchHeader]]:
        """Yield the batches since the last call. Segments deleted meanwhile are skipped."""
        directory = self.log_dir / PARTITION
        for name in sorted(each.name for each in directory.glob("*.log")):
            if name < self._segment:
                continue
            if name > self._segment:
                self._segment, self._position, self._last = name, 0, b""
            with open(directory / name, "rb") as file:
                file.seek(self._last_position)
                if self._last and file.read(len(self._last)) != self._last:
                    self._position, self._last = 0, b""
                file.seek(self._position)
                content = memoryview(file.read())
            start = self._position
            for position, header in whole_batches(content):
                self._last = bytes(content[position : position + HEADER_BYTES])
                self._last_position = start + position
                self._position = start + position + header.size_bytes
                if header.base_offset >= self.offset:
                    self.offset = header.next_offset
                    yield content, position, header


def _decoded(record: Record, is_control: bool) -> MetadataRecord | LeaderChangeMessage | None:
    if is_control:
        control = decode_control(record.key, record.value)
        return control if isinstance(control, LeaderChangeMessage) else None
    return None if record.value is None else decode_record(record.value)


def log_end(log_dir: Path) -> tuple[int, int]:
    """Return the highest epoch and the end offset of a log, or (-1, 0) if it is empty.

    The most up-to-date log has the greatest pair. The call reads the whole log."""
    tail = MetadataTail(log_dir)
    return tail.skip_to_end(), tail.offset

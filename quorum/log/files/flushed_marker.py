"""The flushed marker: a file with a lower bound of the flushed offset of the metadata log.

The marker tells a start which bytes of the log may have been acknowledged. A log that ends below
the marker, or is damaged below it, has lost acknowledged records, and recovery refuses it. Apache
Kafka has no such file and ignores it.
"""

from __future__ import annotations

import contextlib

from crc32c import crc32c

from quorate.quorum.log.files.checkpoints import MAX_STATE_FILE_BYTES, read_small
from quorate.quorum.log.files.errors import CorruptCheckpoint, OutOfFiles
from quorate.quorum.seams import Disk, File

FLUSHED_MARKER_NAME = "quorate-flushed-offset"


class FlushedMarker:
    """A lower bound of the flushed offset of one log, which survives the process.

    `raise_to` does not sync, so that a flush costs no second fsync. After a power cut the marker
    may therefore be older, after a crash of the process it is exact. A power cut does not remove a
    marker that `create` made. `lower_to` syncs, and the log calls it before it removes the bytes.
    The log's thread uses the object. `lower_to` may run in another thread while no flush completes.
    All methods raise OSError.
    """

    def __init__(self, disk: Disk, directory: str) -> None:
        """Read the marker of the log in `directory`; `offset` is 0 if there is no valid one."""
        self._disk = disk
        self._directory = directory
        self._path = f"{directory}/{FLUSHED_MARKER_NAME}"
        self._file: File | None = None
        self.offset = self._read()
        """The offset that was written last."""

    def create(self) -> None:
        """Write and close the marker. Its name and its content are durable on return. Block."""
        self._write(self.offset)
        self.close()
        self._disk.sync_dir(self._directory)

    def raise_to(self, offset: int) -> None:
        """Write a higher offset, up to which the log was synced. A lower one changes nothing. If
        the process has no file descriptor left, the marker stays lower until the next call."""
        if offset > self.offset:
            with contextlib.suppress(OutOfFiles):
                self._write(offset)

    def lower_to(self, offset: int) -> None:
        """Write a lower offset and sync it. Block. A higher one changes nothing."""
        before = self.offset
        if offset < before:
            file = self._write(offset)
            try:
                file.sync()
            except OutOfFiles:  # the work is repeated, and must sync then
                self.offset = before
                raise

    def close(self) -> None:
        """Sync and close the file, if it was written to. Block."""
        if self._file is not None:
            self._file.sync()
            self._file.close()
            self._file = None

    def _write(self, offset: int) -> File:
        if self._file is None:
            self._file = self._disk.open(self._path, create=True)
        self._file.pwrite(_marker_line(offset), 0)  # smaller than a sector, so it cannot be torn
        self.offset = offset
        return self._file

    def _read(self) -> int:
        try:
            content = read_small(self._disk, self._path, max_bytes=MAX_STATE_FILE_BYTES)
        except CorruptCheckpoint:
            content = None  # 0 is a lower bound too
        return decode_marker(content or b"") or 0


def decode_marker(content: bytes) -> int | None:
    """Return the offset in a marker file of this content, or None if it is not a marker."""
    digits = content[:20]
    if digits.isdigit() and content == _marker_line(int(digits)):
        return int(digits)
    return None


def _marker_line(offset: int) -> bytes:
    digits = b"%020d" % offset
    return b"%b %08x\n" % (digits, crc32c(digits))

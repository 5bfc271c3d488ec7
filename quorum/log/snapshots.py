"""The snapshot files of one metadata log, beside its segments: `<end offset>-<epoch>.checkpoint`.

A snapshot stands for everything below its end offset. While it is written, or received from the
leader, it is a `.part`; `freeze` makes it durable under its final name, and only then does it count
(`added`). What a part holds may be incomplete or damaged: whoever freezes one has checked it.

What is read of it later is checked again: one that rots is handed to nobody, not even in part
(`damaged`), and the next one takes its place.

The snapshot at offset 0 is `storage format`'s: it says who votes, is never served and never goes.
What is inside of a snapshot is the business of `metadata/snapshot_file.py`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator

from sortedcontainers import SortedDict  # type: ignore[import-untyped]

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.archive import archive_path
from quorate.quorum.log.batch import HEADER_BYTES, read_header
from quorate.quorum.log.errors import CorruptBatch
from quorate.quorum.log.integrity import SnapshotReader
from quorate.quorum.log.names import PART_SUFFIX, SNAPSHOT_DELETED_SUFFIX, SNAPSHOT_SUFFIX
from quorate.quorum.seams import Buffer, Disk, File

READ_BYTES = 1 << 20
logger = logging.getLogger("quorate.quorum.snapshots")
_NAME = re.compile(r"(\d{20})-(\d{10})" + re.escape(SNAPSHOT_SUFFIX))


def snapshot_name(snapshot: EpochOffset) -> str:
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}{SNAPSHOT_SUFFIX}"


def snapshot_of(name: str) -> EpochOffset | None:
    """What the file of that name is a snapshot up to; None when it is none."""
    match = _NAME.fullmatch(name)
    return EpochOffset(int(match[2]), int(match[1])) if match else None


def is_behind(end: EpochOffset, snapshot: EpochOffset) -> bool:
    """Does a log that ends there lack some of what `snapshot` stands for? Then it was being
    replaced by it. Its last epoch may be the higher one, of a leader whom nobody followed."""
    return end.offset < snapshot.offset or end.epoch < snapshot.epoch


class SnapshotFiles:
    def __init__(self, disk: Disk, directory: str, names: list[str]) -> None:
        self.disk = disk
        self.directory = directory
        self._sizes: SortedDict = SortedDict()  # EpochOffset -> bytes
        self._parts: dict[EpochOffset, File] = {}
        self._written: EpochOffset | None = None  # here, while others may be received
        self._reading: tuple[EpochOffset, SnapshotReader] | None = None
        self.damaged: set[EpochOffset] = set()
        """Found so when they were read."""
        self.run_removal: Callable[[Callable[[], None]], None] = lambda work: work()
        """At once, or in the disk's thread."""
        for name in names:
            snapshot = snapshot_of(name)
            if snapshot is not None and snapshot.offset > 0:
                self._sizes[snapshot] = self._size_of(name)

    @classmethod
    def open(cls, disk: Disk, directory: str) -> SnapshotFiles:
        """Blocks. Parts of later snapshots than are there are kept: receiving goes on where it
        stopped. Others nobody asks for any more."""
        try:
            names = disk.list(directory)
        except FileNotFoundError:
            names = []
        files = cls(disk, directory, names)
        latest = files.latest
        for name in names:
            part = snapshot_of(name.removesuffix(PART_SUFFIX)) if PART_SUFFIX in name else None
            is_old = part is not None and latest is not None and part <= latest
            if is_old or name.endswith(SNAPSHOT_DELETED_SUFFIX):
                disk.remove(f"{directory}/{name}")
        return files

    def __iter__(self) -> Iterator[EpochOffset]:
        """Oldest first."""
        return iter(list(self._sizes))

    def __contains__(self, snapshot: EpochOffset) -> bool:
        return snapshot in self._sizes

    @property
    def earliest(self) -> EpochOffset | None:
        return self._sizes.peekitem(0)[0] if self._sizes else None

    @property
    def latest(self) -> EpochOffset | None:
        return self._sizes.peekitem(-1)[0] if self._sizes else None

    @property
    def size_bytes(self) -> int:
        return sum(self._sizes.values())

    def size_of(self, snapshot: EpochOffset) -> int:
        size: int = self._sizes[snapshot]
        return size

    def path(self, snapshot: EpochOffset) -> str:
        return f"{self.directory}/{snapshot_name(snapshot)}"

    # -- reading ---------------------------------------------------------------------------------

    def read(self, snapshot: EpochOffset, position: int, max_bytes: int) -> bytes | None:
        """Bytes of a snapshot that counts, None of a damaged one; the last one read from stays
        open."""
        if snapshot in self.damaged:
            return None
        if self._reading is None or self._reading[0] != snapshot:
            self._stop_reading()
            file = self.disk.open(self.path(snapshot), writable=False)
            self._reading = snapshot, SnapshotReader(file, self._sizes[snapshot], snapshot.epoch)
        try:
            return self._reading[1].read(position, max_bytes)
        except CorruptBatch as error:
            self.damaged.add(snapshot)
            path = self.path(snapshot)
            logger.error("%s is damaged, the next one takes its place: %s", path, error)
            return None

    def chunks(self, snapshot: EpochOffset, *, part: bool = False) -> Iterator[bytes]:
        """All of it, through a file of its own: for any thread."""
        path = self.path(snapshot) + (PART_SUFFIX if part else "")
        file = self.disk.open(path, writable=False)
        try:
            position = 0
            while chunk := file.pread(READ_BYTES, position):
                yield chunk
                position += len(chunk)
        finally:
            file.close()

    # -- parts -----------------------------------------------------------------------------------

    def part_bytes(self, snapshot: EpochOffset) -> int:
        """How far the received part of `snapshot` goes. Opens it; parts that were received of
        older ones are dropped."""
        for other in [each for each in self._parts if each < snapshot and each != self._written]:
            self.drop_part(other)
        return self._part(snapshot).size()

    def write_part(self, snapshot: EpochOffset, position: int, data: Buffer) -> None:
        """Into the page cache."""
        self._part(snapshot).pwrite(data, position)

    def start_part(self, snapshot: EpochOffset) -> None:
        """An empty part, whatever was left of one; this node writes it itself."""
        self._written = snapshot
        self._part(snapshot).truncate(0)

    def drop_part(self, snapshot: EpochOffset) -> None:
        file = self._parts.pop(snapshot, None)
        if file is not None:
            file.close()
        if self.disk.exists(self.path(snapshot) + PART_SUFFIX):
            self.disk.remove(self.path(snapshot) + PART_SUFFIX)

    def freeze(self, snapshot: EpochOffset) -> int:
        """Blocks, in any thread; its size. When it returns the snapshot is durable under its name;
        after a crash the part is there or the snapshot is, whole."""
        file = self._part(snapshot)
        file.sync()
        size = file.size()
        self.disk.rename(self.path(snapshot) + PART_SUFFIX, self.path(snapshot))
        self.disk.sync_dir(self.directory)
        return size

    def added(self, snapshot: EpochOffset, size_bytes: int) -> None:
        """A frozen part counts from now on."""
        if snapshot == self._written:
            self._written = None
        file = self._parts.pop(snapshot, None)
        if file is not None:
            file.close()
        self._sizes[snapshot] = size_bytes

    def timestamp_of(self, snapshot: EpochOffset) -> int:
        """Of the last record contained; long ago when that is damaged, and of no use to anybody:
        so retention lets go of it first."""
        head = self.read(snapshot, 0, HEADER_BYTES)
        return 0 if head is None else read_header(head).max_timestamp_ms

    def forget(self, snapshot: EpochOffset) -> None:
        """It does not count any more; its file is there until it is `remove`d."""
        if self._reading is not None and self._reading[0] == snapshot:
            self._stop_reading()
        self.damaged.discard(snapshot)
        del self._sizes[snapshot]

    def remove(self, snapshot: EpochOffset, archive_directory: str = "") -> None:
        """Blocks, in any thread: a forgotten snapshot's file."""
        if archive_directory:
            archive_path(self.disk, self.path(snapshot), archive_directory)
        else:
            self.disk.remove(self.path(snapshot))

    def remove_before(self, offset: int) -> None:
        """None is older than the log's start: the earliest says who lacks what is cut off."""
        older = [each for each in self._sizes if each.offset < offset]
        for snapshot in older:
            self.forget(snapshot)

        def remove() -> None:
            for snapshot in older:
                self.remove(snapshot)

        if older:
            self.run_removal(remove)

    def set_aside(self, snapshot: EpochOffset, suffix: str) -> None:
        """It does not count any more, but its bytes stay to be looked at. Blocks. Not durable: the
        next start would find it, and do the same."""
        del self._sizes[snapshot]
        self.disk.rename(self.path(snapshot), self.path(snapshot) + suffix)

    def close(self) -> None:
        self._stop_reading()
        for file in self._parts.values():
            file.close()
        self._parts.clear()

    def _part(self, snapshot: EpochOffset) -> File:
        file = self._parts.get(snapshot)
        if file is None:
            path = self.path(snapshot) + PART_SUFFIX
            file = self._parts[snapshot] = self.disk.open(path, create=True)
        return file

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading[1].file.close()
            self._reading = None

    def _size_of(self, name: str) -> int:
        file = self.disk.open(f"{self.directory}/{name}", writable=False)
        try:
            return file.size()
        finally:
            file.close()

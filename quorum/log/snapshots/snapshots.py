"""The snapshot files of one metadata log, beside its segments: `<end offset>-<epoch>.checkpoint`.

A snapshot replaces all records below its end offset. While this node writes it, or receives it from
the leader, its file is a `.part`. The content of a part may be incomplete or damaged; the caller
checks it before `freeze`. `freeze` makes the part durable under its final name, and `added` then
puts it into the list of snapshots.

Every later read checks the batches again. A damaged snapshot is not served, not even in part
(`damaged`), and the next snapshot replaces it.

`storage format` writes the snapshot at offset 0 with the initial voters. It is not in the list, is
never served and never removed. `metadata/snapshot_file.py` defines the content of snapshots.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator

from sortedcontainers import SortedDict  # type: ignore[import-untyped]

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import HEADER_BYTES, read_header
from quorate.quorum.log.files.archive import archive_path
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.log.files.names import PART_SUFFIX, SNAPSHOT_DELETED_SUFFIX, SNAPSHOT_SUFFIX
from quorate.quorum.log.snapshots.snapshot_reader import SnapshotReader
from quorate.quorum.seams import Buffer, Disk, File

READ_BYTES = 1 << 20
logger = logging.getLogger("quorate.quorum.snapshots")
_NAME = re.compile(r"(\d{20})-(\d{10})" + re.escape(SNAPSHOT_SUFFIX))


def snapshot_name(snapshot: EpochOffset) -> str:
    """Return the file name of a snapshot."""
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}{SNAPSHOT_SUFFIX}"


def snapshot_of(name: str) -> EpochOffset | None:
    """Return the end offset and epoch in the name of a snapshot file, or None if it is no such
    name."""
    match = _NAME.fullmatch(name)
    return EpochOffset(int(match[2]), int(match[1])) if match else None


def is_behind(end: EpochOffset, snapshot: EpochOffset) -> bool:
    """Return True if a log that ends at `end` lacks records that `snapshot` contains.

    A crash then interrupted the replacement of the log by the snapshot. The last epoch of the log
    may be the higher one, if it came from a leader that no voter followed."""
    return end.offset < snapshot.offset or end.epoch < snapshot.epoch


class SnapshotFiles:
    """The snapshots of one metadata log, and the parts of snapshots that are not complete.

    Invariant: every snapshot in the list is complete and durable. The metadata log's thread owns
    the object; the methods that may run in another thread say so.
    """

    def __init__(self, disk: Disk, directory: str, names: list[str]) -> None:
        """Find the snapshots among `names`, the names of all files in `directory`. Block.

        Use `open` to clean up parts as well."""
        self.disk = disk
        self.directory = directory
        self._sizes: SortedDict = SortedDict()  # EpochOffset -> bytes
        self._parts: dict[EpochOffset, File] = {}
        self._written: EpochOffset | None = None  # by this node; others are received
        self._reading: tuple[EpochOffset, SnapshotReader] | None = None
        self.damaged: set[EpochOffset] = set()
        """Snapshots that a read found damaged."""
        self.run_removal: Callable[[Callable[[], None]], None] = lambda work: work()
        """Runs the removal of files: immediately, unless the owner sets a function that runs it in
        the disk's thread."""
        for name in names:
            snapshot = snapshot_of(name)
            if snapshot is not None and snapshot.offset > 0:
                self._sizes[snapshot] = self._size_of(name)

    @classmethod
    def open(cls, disk: Disk, directory: str) -> SnapshotFiles:
        """Return the snapshots in `directory`, which may be missing. Block.

        Parts of snapshots that are later than all complete ones stay, so that the node continues to
        receive them. Older parts, and snapshots whose removal was interrupted, are removed."""
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
        """Iterate over the snapshots, oldest first."""
        return iter(list(self._sizes))

    def __contains__(self, snapshot: EpochOffset) -> bool:
        """Return True if the snapshot is complete and in the list."""
        return snapshot in self._sizes

    @property
    def earliest(self) -> EpochOffset | None:
        """The earliest snapshot, or None if there is none."""
        return self._sizes.peekitem(0)[0] if self._sizes else None

    @property
    def latest(self) -> EpochOffset | None:
        """The latest snapshot, or None if there is none."""
        return self._sizes.peekitem(-1)[0] if self._sizes else None

    @property
    def size_bytes(self) -> int:
        """Bytes of all snapshots."""
        return sum(self._sizes.values())

    def size_of(self, snapshot: EpochOffset) -> int:
        """Return the bytes of a snapshot. Raise KeyError if it is not in the list."""
        size: int = self._sizes[snapshot]
        return size

    def path(self, snapshot: EpochOffset) -> str:
        """Return the path of a snapshot's file."""
        return f"{self.directory}/{snapshot_name(snapshot)}"

    # -- reading ---------------------------------------------------------------------------------

    def read(self, snapshot: EpochOffset, position: int, max_bytes: int) -> bytes | None:
        """Return at most `max_bytes` of a snapshot from `position` on, or None if it is damaged.
        Block.

        The snapshot must be in the list. `position` must not lie beyond the end of the file,
        because the snapshot would be taken for damaged. The file stays open for the next read of
        the same snapshot. Raise OSError."""
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
            logger.error(
                "snapshot %s is damaged and not served any more; the next one replaces it: %s",
                path,
                error,
            )
            return None

    def chunks(self, snapshot: EpochOffset, *, part: bool = False) -> Iterator[bytes]:
        """Yield the whole content of a snapshot, or of its part. May run in any thread. Nothing is
        checked."""
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
        """Return the bytes that were received of a snapshot, and open its part.

        Open parts of older snapshots are removed, apart from the one that this node writes itself.
        """
        for other in [each for each in self._parts if each < snapshot and each != self._written]:
            self.drop_part(other)
        return self._part(snapshot).size()

    def write_part(self, snapshot: EpochOffset, position: int, data: Buffer) -> None:
        """Write received bytes into the part of a snapshot, to the page cache."""
        self._part(snapshot).pwrite(data, position)

    def start_part(self, snapshot: EpochOffset) -> None:
        """Begin an empty part that this node writes itself. The bytes of an earlier part are
        removed."""
        self._written = snapshot
        self._part(snapshot).truncate(0)

    def drop_part(self, snapshot: EpochOffset) -> None:
        """Close and remove the part of a snapshot, if there is one."""
        file = self._parts.pop(snapshot, None)
        if file is not None:
            file.close()
        if self.disk.exists(self.path(snapshot) + PART_SUFFIX):
            self.disk.remove(self.path(snapshot) + PART_SUFFIX)

    def freeze(self, snapshot: EpochOffset) -> int:
        """Make a part durable under the snapshot's name, and return its size. Block; may run in any
        thread.

        After a crash either the part exists or the complete snapshot. After OutOfFiles the call may
        be repeated."""
        path = self.path(snapshot)
        if self.disk.exists(path + PART_SUFFIX):
            self._part(snapshot).sync()
            self.disk.rename(path + PART_SUFFIX, path)
        file = self.disk.open(path, writable=False)
        try:
            size = file.size()
        finally:
            file.close()
        self.disk.sync_dir(self.directory)
        return size

    def added(self, snapshot: EpochOffset, size_bytes: int) -> None:
        """Put a frozen snapshot into the list."""
        if snapshot == self._written:
            self._written = None
        file = self._parts.pop(snapshot, None)
        if file is not None:
            file.close()
        self._sizes[snapshot] = size_bytes

    def timestamp_of(self, snapshot: EpochOffset) -> int:
        """Return the timestamp, in ms, of the last record that a snapshot contains. Block.

        Return 0 for a snapshot that is empty or whose first batch is damaged, so that retention
        removes it first."""
        head = self.read(snapshot, 0, HEADER_BYTES)
        return read_header(head).max_timestamp_ms if head else 0

    def forget(self, snapshot: EpochOffset) -> None:
        """Take a snapshot out of the list. Its file stays until `remove`."""
        if self._reading is not None and self._reading[0] == snapshot:
            self._stop_reading()
        self.damaged.discard(snapshot)
        del self._sizes[snapshot]

    def remove(self, snapshot: EpochOffset, archive_directory: str = "") -> None:
        """Remove the file of a snapshot that left the list, or move it into the archive. Block; may
        run in any thread.

        The removal is not synced. After a power cut the next start may find the snapshot again."""
        if archive_directory:
            archive_path(self.disk, self.path(snapshot), archive_directory)
        else:
            self.disk.remove(self.path(snapshot))

    def remove_before(self, offset: int) -> None:
        """Take all snapshots that end below `offset`, the start of the log, out of the list.
        `run_removal` removes their files.

        A leader compares the epoch of the earliest snapshot with a follower's last epoch, to decide
        whether the follower needs a snapshot. The earliest one must therefore not be older than the
        log start."""
        older = [each for each in self._sizes if each.offset < offset]
        for snapshot in older:
            self.forget(snapshot)

        def remove() -> None:
            for snapshot in older:
                self.remove(snapshot)

        if older:
            self.run_removal(remove)

    def set_aside(self, snapshot: EpochOffset, suffix: str) -> None:
        """Take a snapshot out of the list and rename its file, which the operator may examine.
        Block.

        The rename is not synced: after a power cut the next start finds the snapshot and does the
        same."""
        del self._sizes[snapshot]
        self.disk.rename(self.path(snapshot), self.path(snapshot) + suffix)

    def close(self) -> None:
        """Close all files. Parts stay on disk."""
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

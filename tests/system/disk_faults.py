"""Faults of the disks of real nodes: the map in which a test sets them, and the disk that obeys it.

The map is a small file in shared memory, so that a disk looks into it at each call. A node counts
there what its disk refused or delayed.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import time
from pathlib import Path

from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.disks.os_file import OsFile
from quorate.quorum.seams import Buffer
from tests.system.faults import Action

MARK = "injected by the test"
SLOW_S = 0.12
"""The additional duration of each sync of a slow disk."""
SLOT = struct.Struct("<QQ")
MAX_NODES = 64
WORKS, SLOW, FULL, FAILS = range(4)
MODES = {
    Action.SLOW_DISK: SLOW,
    Action.FAST_DISK: WORKS,
    Action.FULL_DISK: FULL,
    Action.FAILING_DISK: FAILS,
}
ERRORS = {FULL: errno.ENOSPC, FAILS: errno.EIO}


class DiskFaults:
    """The mode of each node's disk, and the number of effects that the mode had.

    The test writes the modes, and each node its own count."""

    def __init__(self, path: Path) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(fd, SLOT.size * MAX_NODES)
            self._map = mmap.mmap(fd, SLOT.size * MAX_NODES)
        finally:
            os.close(fd)

    def set(self, node_id: int, mode: int) -> int:
        """Set the mode. Return the number of effects of the mode before it."""
        effects = self.get(node_id)[1]
        SLOT.pack_into(self._map, SLOT.size * node_id, mode, 0)
        return effects

    def get(self, node_id: int) -> tuple[int, int]:
        mode, effects = SLOT.unpack_from(self._map, SLOT.size * node_id)
        return mode, effects

    def had_effect(self, node_id: int) -> None:
        mode, effects = self.get(node_id)
        SLOT.pack_into(self._map, SLOT.size * node_id, mode, effects + 1)


class Gate:
    """The faults of the node in this process. Without a node, each call passes."""

    def __init__(self) -> None:
        self.faults: DiskFaults | None = None
        self.node_id = 0

    @property
    def mode(self) -> int:
        return self.faults.get(self.node_id)[0] if self.faults is not None else WORKS

    def count(self) -> None:
        assert self.faults is not None
        self.faults.had_effect(self.node_id)

    def changes(self, path: str) -> None:
        """Raise OSError if nothing can be written."""
        error = ERRORS.get(self.mode)
        if error is not None:
            self.count()
            raise OSError(error, MARK, path)

    def reads(self, path: str) -> None:
        """Raise OSError if the disk fails."""
        if self.mode == FAILS:
            self.count()
            raise OSError(errno.EIO, MARK, path)

    def syncs(self, path: str) -> None:
        """Raise OSError if the disk fails, and wait if it is slow. A full disk syncs."""
        self.reads(path)
        if self.mode == SLOW:
            self.count()
            time.sleep(SLOW_S)


GATE = Gate()


class FaultyFile(OsFile):
    """A file on the disk of the gate's node."""

    __slots__ = ()

    def pread(self, size: int, offset: int) -> bytes:
        GATE.reads(self.path)
        return super().pread(size, offset)

    def pwrite(self, data: Buffer, offset: int) -> None:
        """A full or failing disk takes the first half of the bytes."""
        try:
            GATE.changes(self.path)
        except OSError:
            super().pwrite(memoryview(data)[: len(data) // 2], offset)
            raise
        super().pwrite(data, offset)

    def sync(self) -> None:
        GATE.syncs(self.path)
        super().sync()


class FaultyDisk(OsDisk):
    """The disk of the gate's node. `install` in `faulty_node` lets it open a `FaultyFile`."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> OsFile:
        if create and not self.exists(path):
            GATE.changes(path)
        return super().open(path, create=create, writable=writable)

    def make_dir(self, path: str) -> None:
        GATE.changes(path)
        super().make_dir(path)

    def rename(self, source: str, target: str) -> None:
        if GATE.mode == FAILS:
            GATE.changes(source)
        super().rename(source, target)

    def sync_dir(self, path: str) -> None:
        GATE.syncs(path)
        super().sync_dir(path)

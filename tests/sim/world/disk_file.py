"""An open file of a simulated disk, and the lock of a directory."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from quorate.quorum.seams import Buffer
from tests.sim.world.disk_tree import Inode, Truncate, Write

if TYPE_CHECKING:
    from tests.sim.world.disk import SimDisk


class SimFile:
    def __init__(self, disk: SimDisk, path: str, inode: Inode, writable: bool) -> None:
        self.path = path
        self._writable = writable
        self._disk = disk
        self._inode = inode

    def pread(self, size: int, offset: int) -> bytes:
        self._disk.turn()
        self._disk.called("pread", self.path)
        return bytes(memoryview(self._inode.data)[offset : offset + size])

    def pwrite(self, data: Buffer, offset: int) -> None:
        self._disk.turn()
        if not self._writable:
            raise OSError(errno.EBADF, "Bad file descriptor", self.path)
        write = Write(offset, bytes(data))
        self._disk.called("pwrite", self.path, lambda: self._inode.change(write))
        room = self._disk.room_bytes()
        growth = offset + len(write.data) - len(self._inode.data)
        if room is not None and growth > room:
            written = max(0, len(write.data) - (growth - room))
            self._inode.change(Write(offset, write.data[:written]))
            self._disk.hurt += 1
            raise OSError(errno.ENOSPC, "No space left on device", self.path)
        self._inode.change(write)

    def truncate(self, size: int) -> None:
        self._disk.turn()
        cut = Truncate(size, self._disk.moment())
        self._disk.called("truncate", self.path, lambda: self._inode.change(cut))
        self._inode.change(cut)

    def sync(self) -> None:
        self._disk.turn()
        try:
            self._disk.called("sync", self.path)
        except OSError:
            self._inode.sync_failed()
            raise
        self._inode.sync(self._disk.landed)

    def size(self) -> int:
        self._disk.turn()
        self._disk.called("size", self.path)
        return len(self._inode.data)

    def close(self) -> None:
        pass


class SimLock:
    def __init__(self, held: dict[str, None], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.pop(self._path, None)

"""A disk under fault rules.

Its results wait while the node is paused. Work that was submitted before a pause is still done;
only its result waits. After a crash the disk writes nothing. The files are closed and the locks are
released, so another node can use the directory.

The rules make it slow, full or faulty. A flush sleeps in the thread that calls it, which is the
disk's thread while a node serves. A full disk writes the first half of the bytes, as a file system
does that has some blocks left, and raises ENOSPC. A flush that fails with EIO has flushed nothing.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from quorate.quorum.faults.faults import Faults
from quorate.quorum.faults.rules import covers
from quorate.quorum.seams import Buffer, DirectoryLock, Disk, File

T = TypeVar("T")


class FaultDisk:
    """The disk of one node.

    The event loop submits work, and the threads of the inner disk do it. Every method raises
    OSError (ESHUTDOWN) after a crash, except `submit` and `submit_long`, which then do nothing.
    """

    def __init__(self, inner: Disk, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults
        # Each lock is held by the thread of its work while that thread works.
        self._working = threading.Lock()
        self._working_long = threading.Lock()
        self._opened: dict[FaultFile | FaultLock, None] = {}
        self._counting = threading.Lock()
        self._woken = threading.Event()
        """Set for a moment when the rules change, which ends the sleep of slow flushes."""
        faults.watch(self)

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> FaultFile:
        """Open a file. It is closed when the node crashes."""
        disk = self.alive()
        if create and not disk.exists(path):
            self.require_space(path)
        file = FaultFile(self, disk.open(path, create=create, writable=writable))
        self._opened[file] = None
        return file

    def exists(self, path: str) -> bool:
        """Return True if the path exists."""
        return self.alive().exists(path)

    def is_dir(self, path: str) -> bool:
        """Return True if the path is a directory."""
        return self.alive().is_dir(path)

    def list(self, path: str) -> list[str]:
        """Return the names in a directory."""
        return self.alive().list(path)

    def make_dir(self, path: str) -> None:
        """Create a directory."""
        self.require_space(path)
        self.alive().make_dir(path)

    def make_dirs(self, path: str) -> None:
        """Create a directory and its missing parents, durably."""
        if not self.alive().is_dir(path):
            self.require_space(path)
        self.alive().make_dirs(path)

    def rename(self, source: str, target: str) -> None:
        """Replace `target` by `source` atomically. It is durable after `sync_dir` of the
        parents."""
        self.alive().rename(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self.alive().remove(path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory with its contents."""
        self.alive().remove_tree(path)

    def restrict(self, path: str) -> bool:
        """Take all access to the directory from group and others. Return True if they had some."""
        return self.alive().restrict(path)

    def sync_dir(self, path: str) -> None:
        """Flush a directory, which makes its names durable."""
        self.before_flush(path)
        self.alive().sync_dir(path)

    def lock(self, path: str) -> FaultLock:
        """Lock a file exclusively. Raise BlockingIOError if another process or node holds it. The
        lock is released when the node crashes."""
        lock = FaultLock(self, self.alive().lock(path))
        self._opened[lock] = None
        return lock

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Run `work` on the disk's thread and pass its outcome to `done` on the loop. `done` waits
        while the node is paused. After a crash neither runs, except for work that has begun."""
        if not self._faults.crashed:
            self._inner.submit(self._guarded(work, self._working), self._held(done))

    def submit_long(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Do the same in the thread of long work."""
        if not self._faults.crashed:
            self._inner.submit_long(self._guarded(work, self._working_long), self._held(done))

    def rest(self) -> bool:
        """Block the thread of long work, and return True if its work must end."""
        return self.alive().rest()

    def _guarded(self, work: Callable[[], T], working: threading.Lock) -> Callable[[], T]:
        def guarded() -> T:
            with working:
                self.alive()
                return work()

        return guarded

    def _held(
        self, done: Callable[[T | None, BaseException | None], None]
    ) -> Callable[[T | None, BaseException | None], None]:
        def answered(result: T | None, error: BaseException | None) -> None:
            self._faults.run(partial(done, result, error))

        return answered

    def alive(self) -> Disk:
        """Return the inner disk. Raise OSError (ESHUTDOWN) if the node has crashed."""
        if self._faults.crashed:
            raise OSError(errno.ESHUTDOWN, "the node has crashed")
        return self._inner

    def require_space(self, path: str) -> None:
        """Raise OSError (ENOSPC) if the rules say that the disk is full at this path."""
        if self.is_full(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def is_full(self, path: str) -> bool:
        """Return True, and count the call, if the disk is full at this path."""
        full = covers(self._faults.rules.disk_full, path)
        if full:
            self._count("disk_full")
        return full

    def before_flush(self, path: str) -> None:
        """Sleep if flushes are slow. Raise OSError (EIO) if the rules say that flushes fail at this
        path. A change of the rules, or a crash, ends the sleep."""
        rules = self._faults.rules
        if rules.disk_delay_ms:
            self._count("disk_delay_ms")
            self._woken.wait(rules.disk_delay_ms / 1000)
        if covers(rules.disk_error, path):
            self._count("disk_error")
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def _count(self, rule: str) -> None:
        with self._counting:
            self._faults.affected[rule] += 1

    def forget(self, closed: FaultFile | FaultLock) -> None:
        """Remove a file or lock that is closed."""
        self._opened.pop(closed, None)

    def rules_changed(self) -> None:
        """End the sleep of slow flushes. `Faults.run` holds the callbacks while the node is
        paused."""
        woken, self._woken = self._woken, threading.Event()
        woken.set()

    def crash(self) -> None:
        """Close all files and locks. This blocks the loop until the work in progress ends, which
        takes milliseconds."""
        self._woken.set()
        with self._working, self._working_long:
            for opened in self._opened:
                opened.crash()


class FaultFile:
    """An open file of a FaultDisk. Every method except `close` raises OSError (ESHUTDOWN) after a
    crash."""

    __slots__ = ("_disk", "_inner", "path")

    def __init__(self, disk: FaultDisk, inner: File) -> None:
        self.path = inner.path
        self._disk = disk
        self._inner = inner

    def pread(self, size: int, offset: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        self._disk.alive()
        return self._inner.pread(size, offset)

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Write all bytes at `offset`, or the first half of them if the disk is full."""
        self._disk.alive()
        if self._disk.is_full(self.path):
            self._inner.pwrite(memoryview(data)[: len(data) // 2], offset)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self._inner.pwrite(data, offset)

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        self._disk.alive()
        self._inner.truncate(size)

    def sync(self) -> None:
        """Flush the file to the disk."""
        self._disk.alive()
        self._disk.before_flush(self.path)
        self._inner.sync()

    def size(self) -> int:
        """Return the size of the file in bytes."""
        self._disk.alive()
        return self._inner.size()

    def close(self) -> None:
        """Close the file."""
        self.crash()
        self._disk.forget(self)

    def crash(self) -> None:
        """Close the inner file because the node crashed."""
        self._inner.close()


class FaultLock:
    """A lock of a FaultDisk."""

    def __init__(self, disk: FaultDisk, inner: DirectoryLock) -> None:
        self._disk = disk
        self._inner = inner

    def release(self) -> None:
        """Release the lock."""
        self.crash()
        self._disk.forget(self)

    def crash(self) -> None:
        """Release the inner lock because the node crashed."""
        self._inner.release()

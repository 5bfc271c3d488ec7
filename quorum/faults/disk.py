"""A disk whose node may stand still or die: answers wait while it is paused; after a crash nothing
of it writes any more, its files are closed and its directory is free for another node.

Work that was submitted before a pause is done all the same; only its answer waits.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from quorate.quorum.faults.faults import Faults
from quorate.quorum.seams import Buffer, DirectoryLock, Disk, File

T = TypeVar("T")


class FaultDisk:
    def __init__(self, inner: Disk, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults
        self._working = threading.Lock()  # held by the disk's thread while it does a piece of work
        self._opened: dict[FaultFile | FaultLock, None] = {}
        faults.watch(self)

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> FaultFile:
        file = FaultFile(self, self.alive().open(path, create=create, writable=writable))
        self._opened[file] = None
        return file

    def exists(self, path: str) -> bool:
        return self.alive().exists(path)

    def is_dir(self, path: str) -> bool:
        return self.alive().is_dir(path)

    def list(self, path: str) -> list[str]:
        return self.alive().list(path)

    def make_dir(self, path: str) -> None:
        self.alive().make_dir(path)

    def make_dirs(self, path: str) -> None:
        self.alive().make_dirs(path)

    def rename(self, source: str, target: str) -> None:
        self.alive().rename(source, target)

    def remove(self, path: str) -> None:
        self.alive().remove(path)

    def remove_tree(self, path: str) -> None:
        self.alive().remove_tree(path)

    def restrict(self, path: str) -> bool:
        return self.alive().restrict(path)

    def sync_dir(self, path: str) -> None:
        self.alive().sync_dir(path)

    def lock(self, path: str) -> FaultLock:
        lock = FaultLock(self, self.alive().lock(path))
        self._opened[lock] = None
        return lock

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        def guarded() -> T:
            with self._working:
                self.alive()
                return work()

        def answered(result: T | None, error: BaseException | None) -> None:
            self._faults.run(partial(done, result, error))

        if not self._faults.crashed:
            self._inner.submit(guarded, answered)

    def alive(self) -> Disk:
        if self._faults.crashed:
            raise OSError(errno.ESHUTDOWN, "the node has crashed")
        return self._inner

    def forget(self, closed: FaultFile | FaultLock) -> None:
        self._opened.pop(closed, None)

    def rules_changed(self) -> None: ...

    def crash(self) -> None:
        """Waits for the piece of work that is under way, if any, which is milliseconds."""
        with self._working:
            for opened in self._opened:
                opened.crash()


class FaultFile:
    __slots__ = ("_disk", "_inner", "path")

    def __init__(self, disk: FaultDisk, inner: File) -> None:
        self.path = inner.path
        self._disk = disk
        self._inner = inner

    def pread(self, size: int, offset: int) -> bytes:
        self._disk.alive()
        return self._inner.pread(size, offset)

    def pwrite(self, data: Buffer, offset: int) -> None:
        self._disk.alive()
        self._inner.pwrite(data, offset)

    def truncate(self, size: int) -> None:
        self._disk.alive()
        self._inner.truncate(size)

    def sync(self) -> None:
        self._disk.alive()
        self._inner.sync()

    def size(self) -> int:
        self._disk.alive()
        return self._inner.size()

    def close(self) -> None:
        self.crash()
        self._disk.forget(self)

    def crash(self) -> None:
        self._inner.close()


class FaultLock:
    def __init__(self, disk: FaultDisk, inner: DirectoryLock) -> None:
        self._disk = disk
        self._inner = inner

    def release(self) -> None:
        self.crash()
        self._disk.forget(self)

    def crash(self) -> None:
        self._inner.release()

"""An open file of the operating system, which may be closed and opened again between two uses."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from quorate.quorum.log.disks.descriptors import SHORTAGES
from quorate.quorum.seams import Buffer

T = TypeVar("T")
CLOSED = -1
"""The number of a descriptor that is not open."""
FILE_MODE = 0o600
"""The data is the node's own: other users get no access, whatever the umask permits."""
_fsync = getattr(os, "fdatasync", os.fsync)


class OpenFiles(Protocol):
    """The files that hold descriptors (`OsDisk`)."""

    def remember(self, file: OsFile) -> None:
        """Note that `file` holds a descriptor."""

    def forget(self, file: OsFile) -> None:
        """Note that `file` does not hold a descriptor any more."""

    def descriptor(self, open_one: Callable[[], int], path: str) -> int:
        """Return the result of `open_one`. If there are too few descriptors, close other files.
        Raise OutOfFiles."""

    def patiently(self, work: Callable[[], T]) -> T:
        """Return the result of `work`. In the threads of the disk, repeat it for some time while it
        raises OutOfFiles."""


def named(error: OSError, path: str) -> OSError:
    """Return `error` with the path of its file. The name tells which log directory has failed."""
    if error.filename is None:
        error.filename = path
    return error


class OsFile:
    """One file. Any thread may call it; calls of several threads wait for each other.

    The lock keeps another thread from closing the descriptor during a call. A closed descriptor's
    number could be reused. All methods raise OSError, with the path as its `filename`.
    """

    __slots__ = ("_disk", "_fd", "_flags", "_lock", "path", "used")

    def __init__(self, disk: OpenFiles, path: str, flags: int) -> None:
        self.path = path
        self.used = True
        self._disk = disk
        self._flags = flags
        self._lock = threading.Lock()
        self._fd = CLOSED

    def open_now(self, extra_flags: int = 0) -> None:
        """Open the file with these additional flags."""

        def open_now() -> None:
            with self._lock:
                self._open(extra_flags)

        self._disk.patiently(open_now)

    def pread(self, size: int, offset: int) -> bytes:
        """Return `size` bytes from `offset` on, fewer only at the end of the file. Block."""
        if self._fd < 0:
            self.open_now()
        with self._lock:
            fd = self._fd if self._fd >= 0 else self._open()
            self.used = True
            try:
                data = os.pread(fd, size, offset)
                if len(data) == size or not data:
                    return data
                parts = [data]
                missing = size - len(data)
                while missing and (data := os.pread(fd, missing, offset + size - missing)):
                    parts.append(data)
                    missing -= len(data)
                return b"".join(parts)
            except OSError as error:
                raise named(error, self.path) from None

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Write all bytes at `offset`, to the page cache. Block."""
        if self._fd < 0:
            self.open_now()
        with self._lock:
            fd = self._fd if self._fd >= 0 else self._open()
            self.used = True
            size = len(data)
            try:
                written = os.pwrite(fd, data, offset)
                while written < size:
                    more = os.pwrite(fd, memoryview(data)[written:], offset + written)
                    if not more:
                        raise OSError(errno.EIO, "nothing was written")
                    written += more
            except OSError as error:
                raise named(error, self.path) from None

    def truncate(self, size: int) -> None:
        """Cut or extend the file to `size` bytes. Block."""
        if self._fd < 0:
            self.open_now()
        with self._lock:
            fd = self._fd if self._fd >= 0 else self._open()
            try:
                os.ftruncate(fd, size)
            except OSError as error:
                raise named(error, self.path) from None

    def sync(self) -> None:
        """Make the bytes and the size durable. Block, on a duplicate of the descriptor.

        Other threads may therefore read, write and close the file meanwhile. If there is no second
        descriptor, they wait. After OutOfFiles nothing was synced, and the call may be repeated."""
        if self._fd < 0:
            self.open_now()
        with self._lock:
            own = self._fd if self._fd >= 0 else self._open()
            try:
                fd = os.dup(own)
            except OSError as error:
                if error.errno not in SHORTAGES:
                    raise named(error, self.path) from None
                self._sync(own)
                return
        try:
            self._sync(fd)
        finally:
            os.close(fd)

    def _sync(self, fd: int) -> None:
        try:
            _fsync(fd)
        except OSError as error:
            raise named(error, self.path) from None

    def size(self) -> int:
        """Return the size of the file in bytes."""
        if self._fd < 0:
            self.open_now()
        with self._lock:
            return os.fstat(self._fd if self._fd >= 0 else self._open()).st_size

    def close(self) -> None:
        """Close the descriptor. The next use opens the file again."""
        with self._lock:
            if self._close():
                self._disk.forget(self)

    def evict(self) -> bool:
        """Close the descriptor, because too many files are open. Return False, and keep it open, if
        another thread is using it."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._close()
        finally:
            self._lock.release()
        return True

    def _open(self, extra_flags: int = 0) -> int:
        """Open the file if it is not open. The caller holds the lock, so this does not wait."""
        if self._fd < 0:
            flags = self._flags | extra_flags
            self._fd = self._disk.descriptor(
                lambda: os.open(self.path, flags, FILE_MODE), self.path
            )
        self._disk.remember(self)
        return self._fd

    def _close(self) -> bool:
        if self._fd < 0:
            return False
        os.close(self._fd)
        self._fd = CLOSED
        return True

"""The operating system's Disk: blocking calls, and two threads for calls that block for long.

Flushes run in the first thread. Work that only takes long runs in the second one, so that no flush
waits for it.

An `OsFile` is opened when it is used and may be closed again between two uses. About
`max_open_files` of them hold a descriptor, because a node may have many thousands of segments.
Files that other threads are using stay open beyond the bound. A closed file can only be opened
again by its name. The owner of a file must therefore drop the object when it renames or removes the
file.

Durability: `sync` is fdatasync, which also writes the file size, all that is needed to read the
bytes back. Names become durable by `sync_dir`. Errors of a sync are raised and never retried,
because a second fsync may succeed without the bytes (R45, tests/scenarios).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import queue
import shutil
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from quorate.quorum.log.disks.descriptors import descriptor, patiently, reserve
from quorate.quorum.log.disks.os_file import CLOSED, FILE_MODE, OsFile, named
from quorate.quorum.open_files import log_files

T = TypeVar("T")

DIRECTORY_MODE = 0o700
"""The data is the node's own: other users get no access, whatever the umask permits."""
MAX_WORK_S = 0.010
"""The time after which long work of many steps ends, and other work of its thread gets a turn."""
REST_SHARE = 7.0
"""The rest after one step, in times of its duration. The event loop thus has the interpreter's lock
and the core for seven eighths of the time."""
MAX_REST_S = 0.004
"""The longest rest after one step. A step that takes longer has waited for the disk, or for the
interpreter's lock."""


class OsLock:
    """An exclusive lock of a file (flock), which ends with the process at the latest."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = CLOSED


class OsDisk:
    """The Disk of a node, with its worker threads.

    Any thread may call all methods but `submit`, `submit_long` and `close`, which belong to the
    thread of the event loop. `quorum/seams.py` defines the contract of the methods. They block and
    raise OSError.
    """

    def __init__(self, *, max_open_files: int | None = None) -> None:
        """`max_open_files` is the number of descriptors, by default a part of RLIMIT_NOFILE."""
        self._max_open_files = log_files() if max_open_files is None else max_open_files
        self._open_files: OrderedDict[OsFile, None] = OrderedDict()
        self._open_files_lock = threading.Lock()
        reserve.fill()
        self._worker = _Worker("quorate-disk")
        self._long_worker = _Worker("quorate-long-work")

    @property
    def open_files(self) -> int:
        """The number of files that hold a descriptor."""
        return len(self._open_files)

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> OsFile:
        """Open a file. Raise FileNotFoundError if it is missing and not `create`."""
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        file = OsFile(self, path, flags)
        file.open_now(os.O_CREAT if create else 0)
        return file

    def remember(self, file: OsFile) -> None:
        """Note that `file` holds a descriptor. If there are too many, close files that were not
        used recently (second chance). Files in use by another thread stay open."""
        with self._open_files_lock:
            self._open_files[file] = None
            excess = len(self._open_files) - self._max_open_files
            for _ in range(2 * len(self._open_files) if excess > 0 else 0):
                oldest, _ = self._open_files.popitem(last=False)
                if oldest is file or oldest.used or not oldest.evict():
                    oldest.used = False  # a second chance
                    self._open_files[oldest] = None
                    continue
                excess -= 1
                if not excess:
                    return

    def forget(self, file: OsFile) -> None:
        """Note that `file` does not hold a descriptor any more."""
        with self._open_files_lock:
            self._open_files.pop(file, None)
        reserve.fill()

    def descriptor(self, open_one: Callable[[], T], path: str) -> T:
        """Return the result of `open_one`, which opens `path`, or files below it. `descriptors.py`
        describes the steps if the process has no descriptor left. Raise OutOfFiles."""
        return descriptor(open_one, path, self._free_one)

    def patiently(self, work: Callable[[], T]) -> T:
        """Return the result of `work`. In a thread of this disk, repeat it for some time while it
        raises OutOfFiles."""
        if self._worker.is_current() or self._long_worker.is_current():
            return patiently(work)
        return work()

    def _free_one(self) -> bool:
        """Close a file that no thread uses. Return False if there is none."""
        with self._open_files_lock:
            for file in self._open_files:
                if file.evict():
                    del self._open_files[file]
                    return True
        return False

    def exists(self, path: str) -> bool:
        """Return True if the path exists. A broken symbolic link exists too."""
        return os.path.lexists(path)

    def is_dir(self, path: str) -> bool:
        """Return True if the path is a directory."""
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(self.patiently(lambda: self.descriptor(lambda: os.listdir(path), path)))

    def make_dir(self, path: str) -> None:
        """Create one directory in an existing one. The name is not synced."""
        os.mkdir(path, DIRECTORY_MODE)

    def make_dirs(self, path: str) -> None:
        """Create a directory and its missing parents, durably."""
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for name in reversed(missing):
            os.mkdir(name, DIRECTORY_MODE)
            self.sync_dir(os.path.dirname(name))

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory atomically. A file at `target` is replaced."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory with everything in it."""
        self.patiently(lambda: self.descriptor(lambda: shutil.rmtree(path), path))

    def sync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        fd = self._open_dir(path)
        try:
            os.fsync(fd)
        except OSError as error:
            raise named(error, path) from None
        finally:
            os.close(fd)

    def _open_dir(self, path: str) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        return self.patiently(lambda: self.descriptor(lambda: os.open(path, flags), path))

    def restrict(self, path: str) -> bool:
        """Take the access of group and others from a directory. Return True if they had some.

        Raise PermissionError if another user owns the directory and they have access."""
        is_open = bool(stat.S_IMODE(os.stat(path).st_mode) & ~DIRECTORY_MODE)
        if is_open:
            os.chmod(path, DIRECTORY_MODE)
        return is_open

    def lock(self, path: str) -> OsLock:
        """Lock a file exclusively, and create it if it is missing. Raise BlockingIOError if another
        process, or another OsLock of this one, holds the lock."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(fd)
            raise
        return OsLock(fd)

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Run `work` in the first worker thread, and then `done(result, error)` on the running
        event loop. Raise RuntimeError if no loop runs."""
        self._worker.submit(work, done)

    def submit_long(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Run `work` in the second worker thread, and then `done(result, error)` on the running
        event loop. Raise RuntimeError if no loop runs."""
        self._long_worker.submit(work, done)

    def rest(self) -> bool:
        """Block for REST_SHARE of the last step. Return True if the work must end."""
        return self._long_worker.rest()

    def close(self) -> None:
        """Wait for the submitted work, stop the worker threads and close all files. Block.

        The `done` callbacks of that work are only scheduled."""
        self._worker.close()
        self._long_worker.close()
        for file in list(self._open_files):
            file.close()


class _Worker:
    """One thread and its work, in the order of the submissions, one piece at a time.

    The thread of the event loop owns it. The thread starts with the first work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._submitted: list[_Job] = []
        self._began_s = self._step_s = 0.0
        """The times at which the current work and its current step began."""

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Run `work` in the thread, and then `done(result, error)` on the running event loop.

        The thread gets the work when the loop has finished its current callbacks. Before, it would
        only wake to wait for the interpreter's lock, and each such switch costs both threads time.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        if not self._submitted:
            loop.call_soon(self._hand_over)
        self._submitted.append(_Job(loop, work, done))

    def _hand_over(self) -> None:
        submitted, self._submitted = self._submitted, []
        for job in submitted:
            self._jobs.put(job)

    def is_current(self) -> bool:
        """Return True if the calling thread is this one."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Wait for the submitted work and stop the thread. Block."""
        self._hand_over()
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._began_s = self._step_s = time.perf_counter()
            job.run()
            del job  # While this thread waits for work, it must not keep a closed log in memory.

    def rest(self) -> bool:
        """Block for REST_SHARE times the last step, MAX_REST_S at most. Return True if the work has
        run for MAX_WORK_S. Only the thread itself calls this."""
        now_s = time.perf_counter()
        if now_s - self._began_s >= MAX_WORK_S:
            return True
        time.sleep(min(REST_SHARE * (now_s - self._step_s), MAX_REST_S))
        self._step_s = time.perf_counter()
        return False


class _Job:
    """One piece of work for the worker thread."""

    __slots__ = ("_done", "_loop", "_work")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[], Any],
        done: Callable[[Any, BaseException | None], None],
    ) -> None:
        self._loop = loop
        self._work = work
        self._done = done

    def run(self) -> None:
        """Do the work, and schedule the callback on the loop."""
        result, error = None, None
        try:
            result = self._work()
        except BaseException as raised:
            error = raised
        try:
            self._loop.call_soon_threadsafe(self._done, result, error)
        except RuntimeError:  # the loop is closed, and with it the callback's owner
            if not self._loop.is_closed():
                raise

"""File descriptors for the disk, also while the process has none left.

Peers hold sockets, which count against the same limit (RLIMIT_NOFILE). A lack of descriptors is no
failure of the disk, and nothing was changed when one cannot be had. If the system refuses a
descriptor, these steps follow, each until one is free:

1. Close a file of this disk that no thread uses. It is opened again when it is used.
2. Release one of the RESERVED descriptors of the process. They are taken back when a file closes.
3. In the threads of the disk, wait for WAIT_S. The event loop never waits.

Then OutOfFiles is raised. `retried_work.py` repeats the work later.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from quorate.quorum.log.files.errors import OutOfFiles

T = TypeVar("T")
SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""The errors of an open or a dup for which no disk is at fault."""
RESERVED = 8
"""Descriptors that the process keeps for files."""
WAIT_S = 10.0
PAUSE_S = 0.02


class _Reserve:
    """Descriptors of /dev/null that the process holds. Any thread may use it."""

    def __init__(self) -> None:
        self._held: list[int] = []
        self._lock = threading.Lock()

    def fill(self) -> None:
        """Take descriptors until there are RESERVED, or until the system refuses one."""
        if len(self._held) >= RESERVED:
            return
        with self._lock:
            while len(self._held) < RESERVED:
                try:
                    self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
                except OSError:
                    return

    def release(self) -> bool:
        """Close one descriptor. Return False if there is none."""
        with self._lock:
            if not self._held:
                return False
            os.close(self._held.pop())
            return True


reserve = _Reserve()


def descriptor(open_one: Callable[[], T], path: str, free_one: Callable[[], bool]) -> T:
    """Return the result of `open_one`, which opens `path`, or files below it. Do not wait.

    `free_one` closes another file, and returns False if there is none. Raise OutOfFiles, or the
    OSError of `open_one` if it has another reason."""
    while True:
        try:
            return open_one()
        except OSError as error:
            if error.errno not in SHORTAGES:
                raise
            shortage = error
        if not free_one() and not reserve.release():
            raise OutOfFiles(shortage.errno, shortage.strerror, path)


def patiently(work: Callable[[], T]) -> T:
    """Return the result of `work`, which is repeated for WAIT_S while it raises OutOfFiles. Block.
    Raise its last error."""
    end_s = time.monotonic() + WAIT_S
    while True:
        try:
            return work()
        except OutOfFiles:
            if time.monotonic() >= end_s:
                raise
        time.sleep(PAUSE_S)

"""An in-memory Disk: a crash keeps the synced data, and an arbitrary part of the unsynced data.

A file consists of its current bytes, its bytes as last synced, and the changes in between.
`crash()` returns the disk that a node finds when power comes back. Of the unsynced writes to a
file, this disk has all, none, a prefix, or any of their 512-byte sectors. A sector is old or new,
never mixed. Unsynced changes of names and sizes are kept up to one moment and lost after it, over
the whole disk, as in a journaling file system. A write behind a lost truncation is lost, too. A
name that was synced stays, whatever the moment.

Faults:

- `before` is called with every operation and may raise an error (EIO, ENOSPC).
- `capacity_bytes` limits the disk. The write that exceeds it is partly done.
- `flip` damages stored bytes.
- A failed sync leaves its writes readable. They never become durable, not even by a later sync that
  succeeds.
- `landed` may store a synced write at another place, or not at all. A crash reveals this, because
  the page cache is lost.
- `mend` restores the bytes that the disk should hold.
- `die_at` ends the machine in the middle of its nth operation.
- `dies_before` ends the machine before the operation of its choice.
- `failed` has directories that are on a disk of their own, whose every operation fails. They stay
  failed after a crash and a restart.
- While `slow_calls` is set, the event loop runs between the calls of submitted work
  (`disk_thread.py`).

The injected random numbers decide everything. No code iterates in hash order.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from quorate.quorum.seams import Random
from tests.sim.world.disk_file import SimFile, SimLock
from tests.sim.world.disk_thread import DiskThread, Later
from tests.sim.world.disk_tree import (
    SECTOR_BYTES,
    Crash,
    Directory,
    Inode,
    Landed,
    Node,
    Rename,
    Truncate,
    Write,
    files_below,
    used_bytes,
)

__all__ = ["SECTOR_BYTES", "PowerCut", "SimDisk"]

T = TypeVar("T")

Done = Callable[[Any, BaseException | None], None]
Job = tuple[Callable[[], Any], Done]
Before = Callable[[str, str], None]
"""Called with (operation, path). Operations are open, pread, pwrite, truncate, sync, rename,
remove, sync_dir and others."""


class PowerCut(BaseException):
    """Raised to end all code that runs on the machine of this disk."""


class SimDisk:
    """The disk of one process of a machine. `later(callback)` calls back from the event loop after
    a time of its choice. By default, submitted work never runs."""

    def __init__(
        self,
        random: Random,
        later: Callable[[Callable[[], None]], None] = lambda callback: None,
        root: Directory | None = None,
    ) -> None:
        self.calls = 0
        self.die_at: int | None = None
        self.dies_before: Callable[[str, str], bool] = lambda operation, path: False
        self.failed: dict[str, None] = {}
        self.slow_calls: Later | None = None
        self.usual_calls: Later | None = None  # the value of `slow_calls` without a fault
        self.overlaps = 0  # calls by the event loop while submitted work waited between two calls
        self._threads: dict[DiskThread, None] = {}
        self._dead = False
        self.before: Before = lambda operation, path: None
        self.capacity_bytes: int | None = None
        self.landed: Landed = honestly
        self.hurt = 0  # failed operations, and sectors that were not stored where they should be
        self._random = random
        self._later = later
        self._long_later: Later | None = None
        self._root = root or Directory()
        self._moment = 0
        self._locks: dict[str, None] = {}
        self._jobs: deque[Job] = deque()
        self._long_jobs: deque[Job] = deque()

    # -- faults ----------------------------------------------------------------------------------

    @property
    def dead(self) -> bool:
        """True if the process is gone: each call raises PowerCut."""
        return self._dead

    @dead.setter
    def dead(self, dead: bool) -> None:
        self._dead = dead
        for thread in list(self._threads) if dead else ():
            thread.unwind()

    def crash(
        self,
        later: Callable[[Callable[[], None]], None] | None = None,
        *,
        forgetful: bool = False,
    ) -> SimDisk:
        """Return the disk after a power cut. This disk is dead from now on."""
        self.dead = True
        self._jobs.clear()
        self._long_jobs.clear()
        how = 0 if forgetful else self._random.randrange(0, 3)
        committed = (0, self._moment, self._random.randrange(0, self._moment + 1))[how]
        root = self._root.after_crash(Crash(self._random, committed, forgetful))
        after = SimDisk(self._random, later or self._later, root)
        after.failed = self.failed
        return after

    def restart(self, later: Callable[[Callable[[], None]], None] | None = None) -> SimDisk:
        """Return the disk after its process has ended without a power loss. It has all written
        data, also unsynced data."""
        self.dead = True
        self._jobs.clear()
        self._long_jobs.clear()
        after = SimDisk(self._random, later or self._later, self._root)
        after._moment = self._moment
        after.failed = self.failed
        return after

    def flip(self, path: str, position: int, mask: int = 0x01) -> None:
        """Damage one stored byte, for every read from now on and after any crash."""
        inode = self.inode(path)
        for content in (inode.data, inode.durable):
            if position < len(content):
                content[position] ^= mask

    def scar(self, path: str, position: int, mask: int) -> None:
        """Flip bits of the durable content. `mend` flips them back."""
        self.inode(path).remember()
        self.flip(path, position, mask)

    def scars(self) -> list[str]:
        """Return the paths of the files whose durable bytes differ from those that they should
        hold."""
        return [path for path, inode in files_below("", self._root) if inode.scarred]

    def mend(self) -> None:
        for _, inode in files_below("", self._root):
            inode.mend()

    def durable_inode(self, path: str) -> Inode | None:
        """Return the file that a power cut would leave at `path`, or None."""
        node: Node = self._root
        for name in path.strip("/").split("/"):
            child = node.durable.get(name) if isinstance(node, Directory) else None
            if child is None:
                return None
            node = child
        return node if isinstance(node, Inode) else None

    def content(self, path: str) -> bytes:
        return bytes(self.inode(path).data)

    def used_bytes(self) -> int:
        return used_bytes(self._root)

    def files(self, path: str) -> list[str]:
        """Return the paths of all files in a directory and below it."""
        below = files_below(path.rstrip("/"), self._directory(path))
        return [each for each, _ in below]

    def room_bytes(self) -> int | None:
        if self.capacity_bytes is None:
            return None
        return max(0, self.capacity_bytes - used_bytes(self._root))

    def moment(self) -> int:
        self._moment += 1
        return self._moment

    def turn(self) -> None:
        """Let the event loop run before a call of the disk's thread. Every disk call begins with
        this method."""
        if not self._threads:
            return
        own = next((each for each in self._threads if each.owns_this_thread()), None)
        if own is None:
            self.overlaps += 1
        elif self.slow_calls is not None:
            own.stop(self.slow_calls)

    def called(
        self, operation: str, path: str, half_done: Callable[[], None] = lambda: None
    ) -> None:
        """Count the operation, and let a fault make it fail. `half_done` makes the change that a
        power cut in the middle of the operation may leave."""
        if self.dead:
            raise PowerCut
        self.calls += 1
        if self.calls == self.die_at:
            if self._random.getrandbits(1):
                half_done()
            self.dead = True
            raise PowerCut
        if self.dies_before(operation, path):
            self.dead = True
            raise PowerCut
        for each in self.failed:
            if path == each or path.startswith(f"{each}/"):
                self.hurt += 1
                raise OSError(errno.EIO, errno.errorcode[errno.EIO], path)
        self.before(operation, path)

    # -- the seam --------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SimFile:
        self.turn()
        self.called("open", path)
        parent, name = self._parent(path)
        node = parent.names.get(name)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            node = Inode()
            parent.change(Rename({name: node}, self.moment()))
        return SimFile(self, path, node, writable)

    def exists(self, path: str) -> bool:
        self.turn()
        self.called("exists", path)
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        self.turn()
        self.called("is_dir", path)
        return isinstance(self._find(path), Directory)

    def list(self, path: str) -> list[str]:
        self.turn()
        self.called("list", path)
        return sorted(self._directory(path).names)

    def make_dir(self, path: str) -> None:
        self.turn()
        parent, name = self._parent(path)
        if name in parent.names:
            raise FileExistsError(errno.EEXIST, "File exists", path)
        made = Rename({name: Directory()}, self.moment())
        self.called("make_dir", path, lambda: parent.change(made))
        parent.change(made)

    def make_dirs(self, path: str) -> None:
        self.turn()
        self.called("make_dirs", path)
        directory = self._root
        for name in path.strip("/").split("/"):
            node = directory.names.get(name)
            if node is None:
                node = Directory()
                directory.change(Rename({name: node}, self.moment()))
                directory.sync()
            if not isinstance(node, Directory):
                raise FileExistsError(errno.EEXIST, "File exists", path)
            directory = node

    def rename(self, source: str, target: str) -> None:
        self.turn()
        old, old_name = self._parent(source)
        new, new_name = self._parent(target)
        node = old.names.get(old_name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", source)

        moment = self.moment()

        def both() -> None:
            if old is new:
                old.change(Rename({old_name: None, new_name: node}, moment))
            else:
                new.change(Rename({new_name: node}, moment))
                old.change(Rename({old_name: None}, moment))

        self.called("rename", source, both)
        both()

    def remove(self, path: str) -> None:
        self.turn()
        parent, name = self._parent(path)
        if not isinstance(parent.names.get(name), Inode):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        removed = Rename({name: None}, self.moment())
        self.called("remove", path, lambda: parent.change(removed))
        parent.change(removed)

    def remove_tree(self, path: str) -> None:
        self.turn()
        directory = self._directory(path)
        for name in sorted(directory.names):
            child = f"{path}/{name}"
            if isinstance(directory.names[name], Directory):
                self.remove_tree(child)
            else:
                self.remove(child)
        self.called("remove_tree", path)
        parent, own_name = self._parent(path)
        parent.change(Rename({own_name: None}, self.moment()))

    def sync_dir(self, path: str) -> None:
        self.turn()
        directory = self._directory(path)
        self.called("sync_dir", path)
        directory.sync()

    def restrict(self, path: str) -> bool:
        """Return False, because the simulation has one user only."""
        self._directory(path)
        return False

    def lock(self, path: str) -> SimLock:
        self.open(path, create=True)
        if path in self._locks:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable", path)
        self._locks[path] = None
        return SimLock(self._locks, path)

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Run the work after some time, and call `done` some time after the work."""
        self._submit(self._jobs, work, done)

    def submit_long(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Do the same, in any order relative to the work of `submit`."""
        self._submit(self._long_jobs, work, done)

    def rest(self) -> bool:
        """Return True, so that long work pauses after each step and any event can come in
        between."""
        return True

    def _submit(self, jobs: deque[Job], work: Callable[[], Any], done: Done) -> None:
        jobs.append((work, done))
        if len(jobs) == 1:
            self._delay(jobs, lambda: self._work(jobs))

    def _delay(self, jobs: deque[Job], callback: Callable[[], None]) -> None:
        long_later = self._long_later if jobs is self._long_jobs else None
        (long_later or self._later)(callback)

    def _work(self, jobs: deque[Job]) -> None:
        if self.dead:
            return
        work, _ = jobs[0]
        if self.slow_calls is not None:

            def ended(result: Any, error: BaseException | None) -> None:
                del self._threads[thread]
                self._worked(jobs, result, error)

            thread = DiskThread(work, ended, self.slow_calls)
            self._threads[thread] = None
            thread.advance()
            return
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        self._worked(jobs, result, error)

    def _worked(self, jobs: deque[Job], result: Any, error: BaseException | None) -> None:
        if isinstance(error, PowerCut):
            raise error

        def answer() -> None:
            if self.dead:
                return
            _, done = jobs.popleft()
            if jobs:
                self._delay(jobs, lambda: self._work(jobs))
            done(result, error)

        self._delay(jobs, answer)

    # -- the tree --------------------------------------------------------------------------------

    def _find(self, path: str) -> Node | None:
        node: Node = self._root
        for name in path.strip("/").split("/") if path != "/" else ():
            child = node.names.get(name) if isinstance(node, Directory) else None
            if child is None:
                return None
            node = child
        return node

    def _directory(self, path: str) -> Directory:
        node = self._find(path)
        if not isinstance(node, Directory):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return node

    def inode(self, path: str) -> Inode:
        node = self._find(path)
        assert isinstance(node, Inode), path
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        head, _, name = path.rpartition("/")
        return self._directory(head or "/"), name


def honestly(write: Write) -> list[Write | Truncate]:
    return [write]

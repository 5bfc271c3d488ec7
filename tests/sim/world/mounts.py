"""The disks of several machines as one disk, for an operator that has mounted all of them.

The first name of a path begins with the name of the machine that owns the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from quorate.quorum.seams import DirectoryLock, Disk, File
from tests.sim.world.shape import machine_of

T = TypeVar("T")


class Mounts:
    """A Disk for a tool that makes blocking calls only, and submits no work."""

    def __init__(self, disks: Mapping[str, Disk]) -> None:
        self._disks = disks

    def _of(self, path: str) -> Disk:
        return self._disks[machine_of(path)]

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        return self._of(path).open(path, create=create, writable=writable)

    def exists(self, path: str) -> bool:
        return self._of(path).exists(path)

    def is_dir(self, path: str) -> bool:
        return self._of(path).is_dir(path)

    def list(self, path: str) -> list[str]:
        return self._of(path).list(path)

    def make_dir(self, path: str) -> None:
        self._of(path).make_dir(path)

    def make_dirs(self, path: str) -> None:
        self._of(path).make_dirs(path)

    def rename(self, source: str, target: str) -> None:
        assert self._of(source) is self._of(target), f"{source} and {target}: two file systems"
        self._of(source).rename(source, target)

    def remove(self, path: str) -> None:
        self._of(path).remove(path)

    def remove_tree(self, path: str) -> None:
        self._of(path).remove_tree(path)

    def sync_dir(self, path: str) -> None:
        self._of(path).sync_dir(path)

    def restrict(self, path: str) -> bool:
        return self._of(path).restrict(path)

    def lock(self, path: str) -> DirectoryLock:
        return self._of(path).lock(path)

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        raise AssertionError("the tool waits for its disks")

    def submit_long(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        raise AssertionError("the tool waits for its disks")

    def rest(self) -> bool:
        raise AssertionError("the tool has no other thread")

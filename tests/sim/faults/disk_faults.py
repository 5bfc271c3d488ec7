"""Disks that fail while a node runs on them, or lie. Each function makes a disk faulty, and returns
the function that mends it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

from tests.sim.world.disk import SimDisk, honestly
from tests.sim.world.disk_tree import SECTOR_BYTES, Truncate, Write, apply, sectors

Mend = Callable[[], None]
MODIFYING = ("pwrite", "truncate", "rename", "remove", "make_dir", "make_dirs", "sync_dir")


def _raising(
    disk: SimDisk, number: int, operations: tuple[str, ...], when: Callable[[], bool]
) -> Mend:
    """Let `operations` (all if empty) raise the error `number` whenever `when` returns True."""

    def before(operation: str, path: str) -> None:
        if (not operations or operation in operations) and when():
            disk.hurt += 1
            raise OSError(number, errno.errorcode[number], path)

    disk.before = before

    def mend() -> None:
        disk.before = lambda operation, path: None

    return mend


def _once() -> Callable[[], bool]:
    left = [True]
    return lambda: bool(left) and left.pop()


def sync_fails(disk: SimDisk, random: Random) -> Mend:
    """Let one sync fail. The next sync would succeed without the lost pages, and thereby lie
    (fsyncgate)."""
    return _raising(disk, errno.EIO, ("sync",), _once())


def io_errors(disk: SimDisk, random: Random) -> Mend:
    """Let any operation fail from time to time."""
    share = random.choice((0.02, 0.3, 1.0))
    return _raising(disk, errno.EIO, (), lambda: random.random() < share)


def read_only(disk: SimDisk, random: Random) -> Mend:
    return _raising(disk, errno.EROFS, MODIFYING, lambda: True)


def full(disk: SimDisk, random: Random) -> Mend:
    """Let the disk become full. A write may be done in part."""
    disk.capacity_bytes = disk.used_bytes() + random.choice((0, 100, 2000))

    def mend() -> None:
        disk.capacity_bytes = None

    return mend


DISK_FAULTS: dict[str, Callable[[SimDisk, Random], Mend]] = {
    "sync_fails": sync_fails,
    "io_errors": io_errors,
    "read_only": read_only,
    "full": full,
}


def _lying(disk: SimDisk, random: Random, astray: Callable[[Write], None]) -> Mend:
    """Keep some sectors from the place where they belong. Each of them is passed to `astray`
    instead."""
    share = random.choice((0.02, 0.1, 0.5))

    def landed(write: Write) -> list[Write | Truncate]:
        if random.random() >= share:
            return [write]
        kept: list[Write | Truncate] = []
        for sector in sectors(write):
            if random.getrandbits(1):
                kept.append(sector)
            else:
                disk.hurt += 1
                astray(sector)
        return kept

    disk.landed = landed

    def mend() -> None:
        disk.landed = honestly

    return mend


def lost_writes(disk: SimDisk, random: Random) -> Mend:
    """Report all writes as done and durable, but let some sectors keep their old content."""
    return _lying(disk, random, lambda sector: None)


def misdirected_writes(disk: SimDisk, random: Random) -> Mend:
    """Write some sectors into the place of another sector, of any file."""

    def astray(sector: Write) -> None:
        inode = disk.inode(random.choice(disk.files("/")))
        if not inode.durable:
            return
        at = SECTOR_BYTES * random.randrange(0, 1 + (len(inode.durable) - 1) // SECTOR_BYTES)
        inode.remember()
        apply(inode.durable, Write(at, sector.data[: len(inode.durable) - at]))

    return _lying(disk, random, astray)


DISK_LIES: dict[str, Callable[[SimDisk, Random], Mend]] = {
    "lost_writes": lost_writes,
    "misdirected_writes": misdirected_writes,
}

"""A slow, full or faulty disk, and a wall clock that is wrong."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quorate.quorum.faults.clock import FaultClock
from quorate.quorum.faults.disk import FaultDisk
from quorate.quorum.faults.faults import Faults
from quorate.quorum.faults.rules import Rules
from quorate.quorum.log.disks.disk import OsDisk
from tests.unit.rpc.kafka.fakes import FakeClock


class Ruled:
    """A disk under fault rules, and a directory of it."""

    def __init__(self, path: Path) -> None:
        self.faults, self.inner = Faults(), OsDisk()
        self.disk = FaultDisk(self.inner, self.faults)
        self.path = str(path)


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[Ruled]:
    """A disk that is closed afterwards."""
    made = Ruled(tmp_path)
    yield made
    made.inner.close()


def failed(work: Callable[[], object]) -> tuple[int | None, str | None]:
    """Return the number and the file of the OSError that the work raises."""
    with pytest.raises(OSError) as raised:
        work()
    return raised.value.errno, raised.value.filename


def test_a_full_disk_writes_a_part_and_names_the_file(ruled: Ruled) -> None:
    path, other = f"{ruled.path}/log", f"{ruled.path}/other"
    file = ruled.disk.open(path, create=True)
    ruled.faults.apply(Rules(disk_full=(path,)))
    assert failed(lambda: file.pwrite(b"abcd", 0)) == (errno.ENOSPC, path)
    assert file.pread(9, 0) == b"ab"
    ruled.disk.open(other, create=True).pwrite(b"x", 0)
    ruled.faults.apply(Rules(disk_full=(ruled.path,)))
    for work in (
        lambda: ruled.disk.make_dir(f"{ruled.path}/d"),
        lambda: ruled.disk.make_dirs(f"{ruled.path}/d/e"),
        lambda: ruled.disk.open(f"{ruled.path}/new", create=True),
    ):
        assert failed(work)[0] == errno.ENOSPC
    ruled.disk.open(path, create=True).truncate(1)
    ruled.disk.make_dirs(ruled.path)
    ruled.disk.remove(other)
    assert ruled.faults.affected["disk_full"] == 4
    ruled.faults.apply(Rules())
    file.pwrite(b"abcd", 0)


def test_a_flush_fails_and_names_the_file(ruled: Ruled) -> None:
    path = f"{ruled.path}/log"
    file = ruled.disk.open(path, create=True)
    ruled.faults.apply(Rules(disk_error=("/",)))
    file.pwrite(b"x", 0)
    assert failed(file.sync) == (errno.EIO, path)
    assert failed(lambda: ruled.disk.sync_dir(ruled.path)) == (errno.EIO, ruled.path)
    assert ruled.faults.affected["disk_error"] == 2
    ruled.faults.apply(Rules(disk_error=("/elsewhere", path[:-1])))
    file.sync()


def test_a_slow_flush_ends_with_the_rule(ruled: Ruled) -> None:
    file = ruled.disk.open(f"{ruled.path}/log", create=True)
    ruled.faults.apply(Rules(disk_delay_ms=60_000))
    flushing = threading.Thread(target=file.sync)
    flushing.start()
    for _ in range(500):
        flushing.join(0.01)
        if ruled.faults.affected["disk_delay_ms"]:
            break
    assert flushing.is_alive()
    file.pwrite(b"only flushes are slow", 0)
    ruled.faults.apply(Rules())
    flushing.join(5)
    assert not flushing.is_alive()


def test_only_the_wall_clock_is_wrong() -> None:
    faults, inner = Faults(), FakeClock()
    clock = FaultClock(inner, faults)
    faults.apply(Rules(clock_offset_ms=-3_600_000))
    assert clock.wall_ms() == inner.wall_ms() - 3_600_000
    assert clock.now_ms() == inner.now_ms()
    assert faults.affected["clock_offset_ms"] == 1

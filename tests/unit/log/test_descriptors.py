"""The disk while the process has no file descriptor left."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quorate.quorum.log.disks import retried_work
from quorate.quorum.log.disks.descriptors import RESERVED, reserve
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.disks.retried_work import RETRY_MS, RetriedWork
from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.log.files.flushed_marker import FlushedMarker
from tests.sim.world.disk import SimDisk
from tests.unit.rpc.kafka.fakes import FakeClock


class Table:
    """The descriptors that the process may open: `left` more. None means that none is missing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self._counted: set[int] = set()
        for name in ("open", "dup"):
            monkeypatch.setattr(os, name, self.taking(getattr(os, name)))
        self._close = os.close
        monkeypatch.setattr(os, "close", self.close)

    def taking(self, really: Callable[..., int]) -> Callable[..., int]:
        def take(*arguments: object, **options: object) -> int:
            if self.left is not None:
                if self.left <= 0:
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                self.left -= 1
            return really(*arguments, **options)

        return take

    def close(self, fd: int) -> None:
        self._close(fd)
        if self.left is not None:
            self.left += 1


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    made = Table(monkeypatch)
    yield made
    made.left = None
    reserve.fill()


def test_files_that_nobody_uses_give_their_descriptors_away(tmp_path: Path, table: Table) -> None:
    disk = OsDisk()
    files = [disk.open(f"{tmp_path}/{number}", create=True) for number in range(5)]
    for number, file in enumerate(files):
        file.pwrite(b"%d" % number, 0)
    table.left = 0
    for _ in range(3):
        for number, file in enumerate(files):
            assert file.pread(10, 0) == b"%d" % number
            file.sync()
        disk.sync_dir(str(tmp_path))
        assert disk.list(str(tmp_path)) == ["0", "1", "2", "3", "4"]
    assert len(reserve._held) == RESERVED, "closed files were enough"
    disk.close()


def test_the_reserve_serves_a_disk_without_open_files(tmp_path: Path, table: Table) -> None:
    disk = OsDisk()
    table.left = 0
    for number in range(3 * RESERVED):
        file = disk.open(f"{tmp_path}/{number}", create=True)
        file.pwrite(b"x", 0)
        file.sync()
        file.close()
    assert reserve._held
    disk.close()


def test_the_event_loop_does_not_wait(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("waited"))
    disk = OsDisk()
    table.left = -2 * RESERVED
    with pytest.raises(OutOfFiles) as caught:
        disk.open(f"{tmp_path}/x", create=True)
    assert caught.value.filename == f"{tmp_path}/x" and caught.value.errno == errno.EMFILE
    disk.close()


@pytest.mark.asyncio
async def test_the_thread_of_the_disk_waits(tmp_path: Path, table: Table) -> None:
    disk = OsDisk()
    table.left = -2 * RESERVED
    loop = asyncio.get_running_loop()
    done: asyncio.Future[BaseException | None] = loop.create_future()
    disk.submit(lambda: disk.sync_dir(str(tmp_path)), lambda result, error: done.set_result(error))
    loop.call_later(0.1, setattr, table, "left", 1)
    assert await done is None
    disk.close()


def test_other_errors_stay_errors_of_the_disk(tmp_path: Path) -> None:
    disk = OsDisk()
    with pytest.raises(FileNotFoundError):
        disk.open(f"{tmp_path}/missing")
    with pytest.raises(NotADirectoryError):
        (tmp_path / "file").touch()
        disk.list(f"{tmp_path}/file")
    disk.close()


def test_work_is_repeated_until_there_is_a_descriptor(caplog: pytest.LogCaptureFixture) -> None:
    later: deque[Callable[[], None]] = deque()
    disk, clock = SimDisk(random.Random(1), later.append), FakeClock()
    results: list[object] = []
    tries: list[None] = []

    def work() -> str:
        tries.append(None)
        if len(tries) < 4:
            raise OutOfFiles(errno.EMFILE, "Too many open files", "/d/quorum-state")
        return "saved"

    RetriedWork(disk, clock).submit(work, lambda result, error: results.append((result, error)))
    for _ in range(10):
        while later:
            later.popleft()()
        clock.advance(RETRY_MS)
    assert results == [("saved", None)]
    assert len(tries) == 4 and len(caplog.messages) == 1
    assert retried_work.logger.name in caplog.records[0].name


def test_other_errors_are_not_repeated() -> None:
    later: deque[Callable[[], None]] = deque()
    disk, clock = SimDisk(random.Random(1), later.append), FakeClock()
    errors: list[BaseException | None] = []

    def work() -> None:
        raise OSError(errno.ENOMEM, "a failed fsync")

    RetriedWork(disk, clock).submit(work, lambda result, error: errors.append(error))
    while later:
        later.popleft()()
    clock.advance(RETRY_MS)
    assert len(errors) == 1 and isinstance(errors[0], OSError)


def test_closed_work_is_not_repeated() -> None:
    """The next node that opens the directory must not find an older election there."""
    later: deque[Callable[[], None]] = deque()
    disk, clock = SimDisk(random.Random(1), later.append), FakeClock()
    tries: list[None] = []

    def work() -> None:
        tries.append(None)
        raise OutOfFiles(errno.EMFILE, "Too many open files", "/d/quorum-state")

    repeated = RetriedWork(disk, clock)
    repeated.submit(work, lambda result, error: pytest.fail("ended"))
    for _ in range(3):
        while later:
            later.popleft()()
        repeated.close()
        clock.advance(RETRY_MS)
    assert len(tries) == 1


@pytest.mark.parametrize("name", ["listdir", "rmtree"])
def test_directories_are_read_and_removed_with_the_descriptors_of_idle_files(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    disk = OsDisk()
    (tmp_path / "d").mkdir()
    idle = [disk.open(f"{tmp_path}/{each}", create=True) for each in range(3)]
    owner = os if name == "listdir" else shutil
    really = getattr(owner, name)

    def refuse(*arguments: object) -> object:
        if disk.open_files > 1:  # it needs two descriptors
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return really(*arguments)

    monkeypatch.setattr(owner, name, refuse)
    if name == "listdir":
        assert disk.list(str(tmp_path)) == ["0", "1", "2", "d"]
    else:
        disk.remove_tree(f"{tmp_path}/d")
        assert not (tmp_path / "d").exists()
    assert disk.open_files == 1 < len(idle)
    disk.close()


def test_a_flush_counts_although_its_marker_lacks_a_descriptor() -> None:
    """The marker is a lower bound. The next flush raises it."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/d")
    marker = FlushedMarker(disk, "/d")
    marker.raise_to(1)

    def before(operation: str, path: str) -> None:
        raise OutOfFiles(errno.EMFILE, "Too many open files", path)

    disk.before = before
    marker.raise_to(5)
    assert marker.offset == 1
    disk.before = lambda operation, path: None
    marker.raise_to(5)
    assert FlushedMarker(disk, "/d").offset == 5

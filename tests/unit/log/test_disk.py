"""One conformance suite for all implementations of the Disk seam."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.quorum.faults.disk import FaultDisk
from quorate.quorum.faults.faults import Faults
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.open_files import LEAST_LOG_FILES
from quorate.quorum.seams import Disk
from tests.sim.world.disk import SimDisk


@pytest.fixture(params=["os", "os with one descriptor", "sim", "os behind faults"])
def disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    if request.param == "sim":
        yield SimDisk(random.Random(1), lambda call: _soon(call))
        return
    os_disk = OsDisk(max_open_files=1) if "one" in request.param else OsDisk()
    yield FaultDisk(os_disk, Faults()) if "faults" in request.param else os_disk
    os_disk.close()


def _soon(callback: object) -> None:
    assert callable(callback)
    asyncio.get_running_loop().call_soon(callback)


@pytest.fixture
def root(disk: Disk, tmp_path: Path) -> str:
    path = str(tmp_path)
    disk.make_dirs(path)
    return path


def write(disk: Disk, path: str, data: bytes) -> None:
    file = disk.open(path, create=True)
    file.pwrite(data, 0)
    file.close()


def read(disk: Disk, path: str) -> bytes:
    file = disk.open(path, writable=False)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def test_a_missing_file_is_made_only_when_asked_for(disk: Disk, root: str) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open(f"{root}/a")
    disk.open(f"{root}/a", create=True).close()
    assert disk.exists(f"{root}/a")
    assert disk.open(f"{root}/a").size() == 0


def test_reads_are_short_only_at_the_end(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"0123456789", 0)
    assert file.pread(4, 0) == b"0123"
    assert file.pread(100, 8) == b"89"
    assert file.pread(1, 10) == b""


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_writes_take_any_buffer_overwrite_and_extend(disk: Disk, root: str, kind: type) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"abcdef", 0)
    file.pwrite(kind(b"XY"), 2)
    assert file.pread(10, 0) == b"abXYef"
    file.pwrite(kind(b"Z"), 8)
    assert file.pread(10, 0) == b"abXYef\0\0Z"


def test_truncate_cuts_and_extends(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.pwrite(b"abcdef", 0)
    file.truncate(2)
    assert (file.size(), file.pread(10, 0)) == (2, b"ab")
    file.truncate(4)
    assert file.pread(10, 0) == b"ab\0\0"
    file.sync()


def test_a_file_that_is_not_writable_refuses(disk: Disk, root: str) -> None:
    write(disk, f"{root}/a", b"abc")
    file = disk.open(f"{root}/a", writable=False)
    with pytest.raises(OSError):
        file.pwrite(b"x", 0)
    assert file.pread(3, 0) == b"abc"


def test_rename_replaces_files_and_moves_directories(disk: Disk, root: str) -> None:
    write(disk, f"{root}/a", b"new")
    write(disk, f"{root}/b", b"old")
    disk.rename(f"{root}/a", f"{root}/b")
    assert not disk.exists(f"{root}/a")
    assert read(disk, f"{root}/b") == b"new"
    disk.make_dirs(f"{root}/d/e")
    write(disk, f"{root}/d/e/f", b"deep")
    disk.rename(f"{root}/d", f"{root}/moved")
    assert read(disk, f"{root}/moved/e/f") == b"deep"
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{root}/absent", f"{root}/b")
    disk.sync_dir(root)


def test_lists_are_sorted(disk: Disk, root: str) -> None:
    for name in ("c", "a", "b"):
        write(disk, f"{root}/{name}", b"")
    disk.make_dir(f"{root}/aa")
    assert disk.list(root) == ["a", "aa", "b", "c"]
    with pytest.raises(FileNotFoundError):
        disk.list(f"{root}/absent")


def test_directories(disk: Disk, root: str) -> None:
    disk.make_dirs(f"{root}/x/y")
    disk.make_dirs(f"{root}/x/y")
    assert disk.is_dir(f"{root}/x/y")
    with pytest.raises(FileExistsError):
        disk.make_dir(f"{root}/x/y")
    with pytest.raises(FileNotFoundError):
        disk.make_dir(f"{root}/absent/y")
    write(disk, f"{root}/x/y/f", b"1")
    assert not disk.is_dir(f"{root}/x/y/f")
    disk.remove_tree(f"{root}/x")
    assert not disk.exists(f"{root}/x")
    with pytest.raises(FileNotFoundError):
        disk.remove(f"{root}/x")


def test_a_lock_is_held_by_one(disk: Disk, root: str) -> None:
    lock = disk.lock(f"{root}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{root}/.lock")
    lock.release()
    lock.release()
    disk.lock(f"{root}/.lock").release()


async def test_submitted_work_is_done_in_order_one_at_a_time(disk: Disk, root: str) -> None:
    events: list[str] = []
    everything = asyncio.Event()

    def work(name: str) -> str:
        events.append(f"work {name}")
        return name

    def done(result: str | None, error: BaseException | None) -> None:
        assert error is None
        events.append(f"done {result}")
        if result == "c":
            everything.set()

    for name in ("a", "b", "c"):
        disk.submit(lambda name=name: work(name), done)  # type: ignore[misc]
        assert not any(event.startswith("done") for event in events)
    async with asyncio.timeout(10):
        await everything.wait()
    assert [event for event in events if event[:4] == "work"] == ["work a", "work b", "work c"]
    assert [event for event in events if event[:4] == "done"] == ["done a", "done b", "done c"]


async def test_an_error_of_submitted_work_is_handed_over(disk: Disk, root: str) -> None:
    answer: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    def fail() -> None:
        raise OSError(5, "EIO")

    disk.submit(fail, lambda result, error: answer.set_result(error))
    async with asyncio.timeout(10):
        assert isinstance(await answer, OSError)


@pytest.mark.parametrize("faults", [False, True])
async def test_a_flush_does_not_wait_for_long_work(faults: bool) -> None:
    """A decompression of 64 MiB, or a step of the log cleaner, once delayed each flush."""
    os_disk = OsDisk()
    disk: Disk = FaultDisk(os_disk, Faults()) if faults else os_disk
    release, answers = threading.Event(), asyncio.Queue[str]()
    disk.submit_long(lambda: release.wait(60), lambda *_: answers.put_nowait("long"))
    disk.submit_long(lambda: None, lambda *_: answers.put_nowait("behind it"))
    disk.submit(lambda: None, lambda *_: answers.put_nowait("flush"))
    async with asyncio.timeout(30):
        assert await answers.get() == "flush"
        release.set()
        assert [await answers.get(), await answers.get()] == ["long", "behind it"]
    os_disk.close()


async def test_closing_does_what_was_submitted_just_before() -> None:
    disk = OsDisk()
    done: list[str] = []
    disk.submit(lambda: done.append("work"), lambda result, error: done.append("answer"))
    disk.submit_long(lambda: done.append("long"), lambda result, error: done.append("its answer"))
    disk.close()
    assert done == ["work", "long"]
    await asyncio.sleep(0)
    assert done == ["work", "long", "answer", "its answer"]


async def test_work_waits_until_the_loop_is_done_with_what_it_is_at() -> None:
    """Otherwise the worker thread wakes only to wait for the interpreter's lock."""
    disk = OsDisk()
    begun, answer = threading.Event(), asyncio.get_running_loop().create_future()
    disk.submit(begun.set, lambda result, error: answer.set_result(error))
    assert not begun.wait(0.05)
    async with asyncio.timeout(60):
        assert await answer is None
    disk.close()


def test_more_files_than_descriptors_can_be_in_use(root: str) -> None:
    disk = OsDisk(max_open_files=3)
    disk.make_dirs(root)
    files = [disk.open(f"{root}/{number}", create=True) for number in range(20)]
    for number, file in enumerate(files):
        file.pwrite(b"%d" % number, 0)
    for number, file in enumerate(files):
        assert file.pread(10, 0) == b"%d" % number
        file.sync()
    assert disk.open_files <= 3
    disk.close()
    assert disk.open_files == 0


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(20_000, 5_000), (100, LEAST_LOG_FILES), (resource.RLIM_INFINITY, 2**31 // 4 - 1)],
)
def test_the_bound_follows_the_limit_of_the_process(
    monkeypatch: pytest.MonkeyPatch, limit: int, expected: int
) -> None:
    """With a fixed bound of 1,024, a node with many partitions opened a file for each append."""
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limit, limit))
    assert OsDisk()._max_open_files == expected


def test_other_users_get_no_access_even_under_a_permissive_umask(tmp_path: Path) -> None:
    disk = OsDisk()
    before = os.umask(0)
    try:
        disk.make_dirs(f"{tmp_path}/a/b")
        disk.make_dir(f"{tmp_path}/a/c")
        disk.open(f"{tmp_path}/a/b/file", create=True).close()
        disk.lock(f"{tmp_path}/a/.lock").release()
        os.mkdir(tmp_path / "open", 0o777)
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode)
        for path in tmp_path.rglob("*")
    }
    assert modes == {
        "a": 0o700,
        "a/b": 0o700,
        "a/c": 0o700,
        "a/b/file": 0o600,
        "a/.lock": 0o600,
        "open": 0o777,
    }
    assert disk.restrict(f"{tmp_path}/open") and not disk.restrict(f"{tmp_path}/a")
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o700
    disk.close()

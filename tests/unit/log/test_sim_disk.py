"""The simulated disk loses only bytes that a real disk may lose."""

from __future__ import annotations

import errno
import random

import pytest

from tests.sim.faults.disk_faults import DISK_LIES
from tests.sim.world.disk import SECTOR_BYTES, PowerCut, SimDisk, honestly


def disk_with_a_synced_file(seed: int) -> SimDisk:
    disk = SimDisk(random.Random(seed))
    disk.make_dirs("/d")
    file = disk.open("/d/f", create=True)
    file.pwrite(b"A" * 2 * SECTOR_BYTES, 0)
    file.sync()
    disk.sync_dir("/d")
    return disk


def test_what_was_synced_survives_every_crash() -> None:
    for seed in range(50):
        disk = disk_with_a_synced_file(seed)
        disk.open("/d/f").pwrite(b"B" * 3 * SECTOR_BYTES, 2 * SECTOR_BYTES)
        assert disk.crash().content("/d/f")[: 2 * SECTOR_BYTES] == b"A" * 2 * SECTOR_BYTES


def test_unsynced_sectors_survive_in_any_combination() -> None:
    found = set()
    for seed in range(300):
        disk = disk_with_a_synced_file(seed)
        disk.open("/d/f").pwrite(b"B" * 2 * SECTOR_BYTES, 0)
        content = disk.crash().content("/d/f")
        sectors = [content[start : start + SECTOR_BYTES] for start in (0, SECTOR_BYTES)]
        assert all(len(set(sector)) == 1 for sector in sectors), "a sector is old or new"
        found.add(bytes(sector[0] for sector in sectors))
    assert found == {b"AA", b"AB", b"BA", b"BB"}


def test_names_are_durable_only_after_their_directory_is_synced() -> None:
    found = set()
    for seed in range(100):
        disk = disk_with_a_synced_file(seed)
        disk.open("/d/new", create=True).sync()
        disk.rename("/d/f", "/d/g")
        found.add(tuple(disk.crash().list("/d")))
    assert found == {("f",), ("f", "new"), ("g", "new")}, "in order, any prefix"


def test_a_rename_never_loses_both_names() -> None:
    for seed in range(50):
        disk = disk_with_a_synced_file(seed)
        file = disk.open("/d/tmp", create=True)
        file.pwrite(b"new", 0)
        file.sync()
        disk.rename("/d/tmp", "/d/f")
        assert disk.crash().content("/d/f") in (b"A" * 2 * SECTOR_BYTES, b"new")


def test_a_failed_sync_never_becomes_durable() -> None:
    for seed in range(30):
        disk = disk_with_a_synced_file(seed)
        file = disk.open("/d/f")

        def broken(operation: str, path: str) -> None:
            if operation == "sync":
                raise OSError(errno.EIO, "Input/output error", path)

        file.pwrite(b"B", 0)
        disk.before = broken
        with pytest.raises(OSError):
            file.sync()
        disk.before = lambda operation, path: None
        file.sync()
        assert file.pread(1, 0) == b"B"
        assert disk.crash().content("/d/f")[:1] == b"A"


def test_a_full_disk_takes_a_part() -> None:
    disk = disk_with_a_synced_file(0)
    disk.capacity_bytes = 2 * SECTOR_BYTES + 10
    with pytest.raises(OSError) as raised:
        disk.open("/d/f").pwrite(b"C" * 100, 2 * SECTOR_BYTES)
    assert raised.value.errno == errno.ENOSPC
    assert disk.content("/d/f") == b"A" * 2 * SECTOR_BYTES + b"C" * 10


def test_the_machine_dies_at_the_call_it_was_told_and_stays_dead() -> None:
    disk = disk_with_a_synced_file(0)
    disk.die_at = disk.calls + 2
    file = disk.open("/d/f")
    with pytest.raises(PowerCut):
        file.pwrite(b"x", 0)
    with pytest.raises(PowerCut):
        file.pread(1, 0)


def test_the_same_seed_gives_the_same_crash() -> None:
    def run(seed: int) -> bytes:
        disk = disk_with_a_synced_file(seed)
        for number in range(20):
            disk.open("/d/f").pwrite(bytes([number]) * 700, number * 700)
        return disk.crash().content("/d/f")

    assert [run(seed) for seed in range(20)] == [run(seed) for seed in range(20)]


def test_a_process_that_dies_leaves_what_it_wrote_and_a_later_power_cut_may_take_it() -> None:
    disk = disk_with_a_synced_file(3)
    disk.open("/d/f").pwrite(b"B", 0)
    after = disk.restart()
    assert after.content("/d/f")[:1] == b"B"
    found = set()
    for seed in range(20):
        disk = disk_with_a_synced_file(seed)
        disk.open("/d/f").pwrite(b"B", 0)
        found.add(disk.restart().crash().content("/d/f")[:1])
    assert found == {b"A", b"B"}


def test_what_follows_a_lost_truncation_is_lost_with_it() -> None:
    found = set()
    for seed in range(200):
        disk = disk_with_a_synced_file(seed)
        file = disk.open("/d/f")
        file.truncate(10)
        file.pwrite(b"B" * 10, 10)
        disk.open("/d/later", create=True)
        after = disk.crash()
        content = after.content("/d/f")
        if len(content) == 2 * SECTOR_BYTES:
            assert set(content) == {ord("A")}
            assert not after.exists("/d/later")
        found.add(len(content))
    assert found == {10, 20, 2 * SECTOR_BYTES}


def new_disk(seed: int = 0) -> SimDisk:
    disk = SimDisk(random.Random(seed))
    disk.make_dirs("/d")
    return disk


def write(disk: SimDisk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.pwrite(content, 0)
    file.sync()
    disk.sync_dir("/d")


@pytest.mark.parametrize("kind", DISK_LIES)
def test_a_lie_shows_when_the_page_cache_is_gone_and_is_mended(kind: str) -> None:
    """Until the page cache is lost, later processes too read the bytes whose sync was false."""
    shown = elsewhere = 0
    for seed in range(40):
        disk = new_disk(seed)
        write(disk, "/d/a", b"a" * 2000)
        write(disk, "/d/b", b"b" * 2000)
        stop = DISK_LIES[kind](disk, random.Random(seed))
        write(disk, "/d/a", b"c" * 2000)
        stop()
        disk = disk.restart()
        wanted = {"/d/a": b"c" * 2000, "/d/b": b"b" * 2000}
        assert {path: disk.content(path) for path in wanted} == wanted
        disk = disk.crash()
        found = {path: disk.content(path) for path in wanted}
        assert sorted(path for path in wanted if found[path] != wanted[path]) == disk.scars()
        shown += found["/d/a"] != wanted["/d/a"]
        elsewhere += found["/d/b"] != wanted["/d/b"]
        disk.mend()
        assert {path: disk.content(path) for path in wanted} == wanted
        assert disk.crash().content("/d/a") == wanted["/d/a"]
    assert shown > 3
    assert (elsewhere > 0) == (kind == "misdirected_writes")


def test_what_is_written_over_a_lie_is_the_truth_again() -> None:
    disk = new_disk()
    write(disk, "/d/a", b"a" * 2000)
    disk.landed = lambda write: []
    write(disk, "/d/a", b"b" * 2000)
    assert disk.scars() == ["/d/a"]
    disk.landed = honestly
    write(disk, "/d/a", b"c" * 2000)
    assert not disk.scars()
    assert disk.crash().content("/d/a") == b"c" * 2000

"""EIO and ENOSPC at every disk call for the metadata. The error is reported, and after a restart on
the same disk the node has everything that was acknowledged."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest

from quorate.quorum.ids import Uuid
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.node.opening.meta_properties import MetaProperties, read_meta, write_meta
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from tests.sim.world.disk import PowerCut, SimDisk
from tests.unit.log.test_faults import fail_once
from tests.unit.node.metadata_disk import DIRECTORY, MetadataDisk
from tests.unit.node.test_metadata_storage import history, new_disk, opened, received

ERRORS = pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
AFTER = pytest.mark.parametrize("after", [SimDisk.crash, SimDisk.restart], ids=["power", "process"])


@ERRORS
@AFTER
@pytest.mark.parametrize("script", [history, received])
def test_log_and_snapshots(
    script: Callable[[MetadataDisk], None], error: int, after: Callable[[SimDisk], SimDisk]
) -> None:
    """Appends, rolls, flushes, snapshots that are written and received, and retention."""
    whole = opened()
    before = whole.disk.calls
    script(whole)
    told = 0
    for call in range(before + 1, whole.disk.calls + 1):
        node = opened()
        fail_once(node.disk, call, error)
        raised: list[BaseException] = []
        try:
            script(node)
        except (OSError, AssertionError) as failure:  # a script goes on without its snapshot
            raised.append(failure)
        told += bool(node.failures or raised)
        assert len(node.failures) <= 1, "told once"
        assert all(isinstance(each, OSError) for each in node.failures)
        node.disk.before = lambda operation, path: None
        again = MetadataDisk(after(node.disk), epochs=node.epochs, flushed=node.flushed)
        again.open()
        again.check()
        again.append(1, 4)
        again.check()
    assert told > 20


@ERRORS
@AFTER
def test_the_vote(error: int, after: Callable[[SimDisk], SimDisk]) -> None:
    """A start finds the old vote or the new one, and the new one if its save succeeded."""
    old, new = Election(4, None, 2), Election(5, None, 1)
    outcomes = set()
    for number in range(1, 15):
        disk = new_disk(number)
        file = ElectionFile(disk, DIRECTORY, (1, 2, 3))
        file.save(old)
        fail_once(disk, disk.calls + number, error)
        expected = (new,)
        try:
            file.save(new)
        except OSError:
            expected = (old, new)  # type: ignore[assignment]
        disk.before = lambda operation, path: None
        found = ElectionFile(after(disk), DIRECTORY, (1, 2, 3)).load()
        assert found in expected
        outcomes.add(found)
    assert outcomes == {old, new}


@ERRORS
@AFTER
def test_the_identity(error: int, after: Callable[[SimDisk], SimDisk]) -> None:
    """A directory is formatted completely or not at all."""
    meta = MetaProperties(cluster_id="c" * 22, node_id=1, directory_id=Uuid(b"d" * 16))
    for number in range(1, 16):
        disk = new_disk(number)
        fail_once(disk, disk.calls + number, error)
        failed = False
        try:
            write_meta(disk, "/data", meta)
        except OSError:
            failed = True
        disk.before = lambda operation, path: None
        found = read_meta(after(disk), "/data", repair=True)
        assert found in ((None, meta) if failed else (meta,))


def test_an_identity_that_is_repaired_while_the_power_goes() -> None:
    meta = MetaProperties(cluster_id="c" * 22, node_id=1, directory_id=Uuid(b"d" * 16))
    for die_after in range(1, 30):
        disk = new_disk(die_after)
        write_meta(disk, "/data", meta)
        disk.flip("/data/meta.properties", 3)
        disk.flip("/data/meta.properties", 0)
        disk.remove("/data/quorate-meta.properties")
        write_meta(disk, "/data", meta)
        disk.flip("/data/quorate-meta.properties", 3)
        disk.die_at = disk.calls + die_after
        try:
            assert read_meta(disk, "/data", repair=True) == meta
        except PowerCut:
            assert read_meta(disk.crash(), "/data", repair=True) == meta


@ERRORS
def test_a_start_on_a_failing_disk_is_refused_and_the_next_one_works(error: int) -> None:
    """A fault at each disk call of the recovery and of the load of the first state."""
    whole = opened()
    history(whole)
    calls = SimDisk.restart(whole.disk)
    before = calls.calls
    MetadataDisk(calls, epochs=whole.epochs, flushed=whole.flushed).open()
    for number in range(1, calls.calls - before + 1):
        node = opened()
        history(node)
        disk = node.disk.crash()
        fail_once(disk, disk.calls + number, error)
        first = MetadataDisk(disk, epochs=node.epochs, flushed=node.flushed)
        try:
            first.open()
        except (OSError, CorruptLog) as raised:
            assert not isinstance(raised, CorruptLog), "a fault of the disk is not damage"
        disk.before = lambda operation, path: None
        again = MetadataDisk(disk.crash(), epochs=node.epochs, flushed=node.flushed)
        again.open()
        again.check()


def test_a_directory_that_is_on_another_disk_now_is_empty_and_says_so() -> None:
    """The disk was exchanged or erased, so the directory is not formatted."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    assert read_meta(disk, "/data") is None

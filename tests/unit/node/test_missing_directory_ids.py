"""Log directories that Apache Kafka formatted before 3.7: meta.properties has no directory.id."""

from __future__ import annotations

import random
from typing import cast

import pytest

from quorate.config.node_config import NodeConfig
from quorate.quorum.node.opening.data_directory import LOCK_FILE, require_formatted
from quorate.quorum.node.opening.directory_lock import NodeRefused, lock_directories
from quorate.quorum.node.opening.meta_properties import META_COPY, META_FILE, StorageError
from quorate.quorum.node.replica.metadata_mark import MARK_NAME
from quorate.quorum.seams import Clock, Seams, Transport
from tests.sim.world.disk import PowerCut, SimDisk
from tests.sim.world.shape import Shape, node_config

OF_KAFKA = b"#\n#Mon Jan 01 2024\nversion=1\nnode.id=1\ncluster.id=cccccccccccccccccccccc"
DIRECTORIES = ("/a", "/b")
NONE = cast(Transport, None)


def config() -> NodeConfig:
    return node_config(1, "combined", Shape(overrides={"log.dirs": ",".join(DIRECTORIES)}))


def formatted_by_kafka(content: bytes = OF_KAFKA) -> SimDisk:
    disk = SimDisk(random.Random(1))
    for path in DIRECTORIES:
        disk.make_dirs(path)
        file = disk.open(f"{path}/{META_FILE}", create=True)
        file.pwrite(content, 0)
        file.sync()
        file.close()
        disk.sync_dir(path)
    return disk


def start(disk: SimDisk, seed: int = 2) -> None:
    """Do the part of a start that locks the directories, and that which repairs them."""
    seams = Seams(cast(Clock, None), random.Random(seed), NONE, disk)
    locks = lock_directories(config(), seams)
    require_formatted(disk, config())
    locks.release()


def test_each_directory_gets_an_id_and_keeps_it() -> None:
    disk = formatted_by_kafka()
    start(disk)
    found = require_formatted(disk, config())
    assert len(set(found.log_dirs.values())) == 2
    assert all(disk.exists(f"{each}/{META_COPY}") for each in DIRECTORIES)
    assert disk.exists(f"/a/{MARK_NAME}"), "the controller has a mark with its new id"
    start(disk, seed=3)
    assert require_formatted(disk, config()) == found


def test_a_crash_at_every_disk_call_of_the_start() -> None:
    whole = formatted_by_kafka()
    start(whole)
    crashes = 0
    for call in range(1, whole.calls):
        disk = formatted_by_kafka()
        disk.die_at = call
        try:
            start(disk)
        except PowerCut:
            crashes += 1
        disk = disk.crash()
        start(disk, seed=3)
        found = require_formatted(disk, config())
        assert len(set(found.log_dirs.values())) == 2
    assert crashes > 5


@pytest.mark.parametrize("name", [META_COPY, MARK_NAME])
def test_a_directory_that_quorate_has_used_gets_no_other_id(name: str) -> None:
    """With another id, a controller could vote twice in one epoch."""
    disk = formatted_by_kafka()
    disk.open(f"/a/{name}", create=True).close()
    with pytest.raises(StorageError, match=r"directory\.id is missing"):
        start(disk)


@pytest.mark.parametrize("content", [b"", b"version=7\nnode.id=1\n", OF_KAFKA[:-30]])
def test_a_file_with_another_fault_stays_as_it_is(content: bytes) -> None:
    disk = formatted_by_kafka(content)
    with pytest.raises(StorageError):
        start(disk)
    assert disk.content(f"/a/{META_FILE}") == content


def test_a_directory_in_use_stays_as_it_is() -> None:
    disk = formatted_by_kafka()
    lock = disk.lock(f"/a/{LOCK_FILE}")
    with pytest.raises(NodeRefused):
        start(disk)
    lock.release()
    assert disk.content(f"/a/{META_FILE}") == OF_KAFKA

"""Several log directories of a node: identities, locks and formats (KIP-858)."""

from __future__ import annotations

import errno
import random
from itertools import count

import pytest

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import Uuid
from quorate.quorum.node.opening.bootstrap_file import BOOTSTRAP_FILE
from quorate.quorum.node.opening.data_directory import require_formatted
from quorate.quorum.node.opening.directory_lock import NodeRefused, lock_directories
from quorate.quorum.node.opening.meta_properties import (
    META_FILE,
    MetaProperties,
    StorageError,
    read_meta,
    write_meta,
)
from quorate.quorum.offline.storage_format import format_directory, format_others
from quorate.quorum.seams import Seams
from tests.sim.world.disk import PowerCut, SimDisk
from tests.sim.world.shape import Shape, node_config

A, B, C = DIRECTORIES = ("/a", "/b", "/c")
CLUSTER = "c" * 22


def uuid(number: int) -> Uuid:
    return Uuid((number + 1000).to_bytes(16, "big"))


def config_of(log_dirs: str = "/a,/b,/c", **overrides: str) -> NodeConfig:
    keys = {key.replace("_", "."): value for key, value in overrides.items()}
    return node_config(11, "broker", Shape(overrides={"log.dirs": log_dirs, **keys}))


def format_all(disk: SimDisk, config: NodeConfig) -> None:
    numbers = count(1)
    format_directory(
        disk,
        config,
        cluster_id=CLUSTER,
        directory_id=uuid(0),
        wall_ms=0,
        new_id=lambda: uuid(next(numbers)),
    )


def formatted(config: NodeConfig | None = None) -> SimDisk:
    disk = SimDisk(random.Random(1))
    format_all(disk, config or config_of())
    return disk


def rewrite(disk: SimDisk, path: str, **changes: object) -> None:
    fields = {"cluster_id": CLUSTER, "node_id": 11, "directory_id": uuid(7), **changes}
    write_meta(disk, path, MetaProperties(**fields))  # type: ignore[arg-type]


def test_each_directory_has_an_id_of_its_own() -> None:
    disk = formatted()
    found = require_formatted(disk, config_of())
    assert found.log_dirs == {A: uuid(0), B: uuid(1), C: uuid(2)}
    assert found.metadata.directory_id == uuid(0)
    assert found.offline == {}
    assert [disk.exists(f"{each}/{BOOTSTRAP_FILE}") for each in DIRECTORIES] == [True, False, False]


def test_the_metadata_directory_may_be_any_other() -> None:
    inside = config_of(metadata_log_dir=B)
    found = require_formatted(formatted(inside), inside)
    assert found.metadata.directory_id == uuid(0) == found.log_dirs[B]
    outside = config_of(metadata_log_dir="/m")
    disk = formatted(outside)
    found = require_formatted(disk, outside)
    assert found.metadata.directory_id == uuid(0)
    assert found.log_dirs == {A: uuid(1), B: uuid(2), C: uuid(3)}
    single = config_of("/a", metadata_log_dir="/m")
    found = require_formatted(formatted(single), single)
    assert found.metadata.directory_id == found.log_dirs[A] == uuid(0), "as in earlier versions"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cluster_id": "other"}, "/b belongs to cluster other, but /a to cccc"),
        ({"node_id": 12}, "/b belongs to node.id 12, not to 11"),
        ({"directory_id": uuid(0)}, "/a and /b have the same directory.id"),
        ({"directory_id": Uuid(bytes(15) + b"\x63")}, "/b has the reserved directory.id"),
    ],
)
def test_directories_that_do_not_belong_together(changes: dict[str, object], says: str) -> None:
    disk = formatted()
    rewrite(disk, B, **changes)
    with pytest.raises(StorageError, match=says):
        require_formatted(disk, config_of())


def test_an_unformatted_directory_beside_formatted_ones_is_refused() -> None:
    disk = formatted(config_of("/a,/b"))
    with pytest.raises(StorageError, match=r"/c is not formatted.*--ignore-formatted"):
        require_formatted(disk, config_of())
    assert format_others(disk, config_of(), cluster_id=CLUSTER, new_id=lambda: uuid(9)) == [C]
    assert require_formatted(disk, config_of()).log_dirs[C] == uuid(9)


def unreadable(disk: SimDisk, *paths: str) -> None:
    def before(operation: str, file: str) -> None:
        if file.startswith(tuple(f"{each}/" for each in paths)):
            raise OSError(errno.EIO, "EIO", file)

    disk.before = before


def test_a_directory_that_cannot_be_read_is_offline() -> None:
    disk = formatted()
    unreadable(disk, B)
    found = require_formatted(disk, config_of())
    assert (found.log_dirs, list(found.offline)) == ({A: uuid(0), C: uuid(2)}, [B])
    for lost in ((A,), (A, B, C)):
        unreadable(disk, *lost)
        with pytest.raises(OSError, match="EIO"):
            require_formatted(disk, config_of())
    outside = config_of("/a,/b", metadata_log_dir="/m")
    disk = formatted(outside)
    unreadable(disk, A, B)
    with pytest.raises(OSError, match="EIO"):
        require_formatted(disk, outside)


def seams_of(disk: SimDisk) -> Seams:
    return Seams(None, None, None, disk)  # type: ignore[arg-type]


def test_each_directory_has_a_lock() -> None:
    disk = formatted()
    locks = lock_directories(config_of(), seams_of(disk))
    for path in DIRECTORIES:
        with pytest.raises(NodeRefused, match=f"{path} is in use by another process"):
            lock_directories(config_of(path, metadata_log_dir=A), seams_of(disk))
    locks.release()
    held = disk.lock(f"{C}/.lock")
    with pytest.raises(NodeRefused, match="/c is in use"):
        lock_directories(config_of(), seams_of(disk))
    held.release()
    lock_directories(config_of(), seams_of(disk)).release()


def test_a_directory_that_cannot_be_locked_is_offline() -> None:
    disk = formatted()

    def before(operation: str, file: str) -> None:
        if operation == "open" and file == f"{B}/.lock":
            raise OSError(errno.EROFS, "EROFS", file)

    disk.before = before
    locks = lock_directories(config_of(), seams_of(disk))
    assert list(locks.offline) == [B]
    found = require_formatted(disk, config_of(), offline=locks.offline)
    assert list(found.log_dirs) == [A, C]


def test_a_crash_at_every_disk_call_of_the_format() -> None:
    """Each directory is formatted or not, and formatting the rest completes the node."""
    whole = formatted()
    for die_at in range(1, whole.calls + 1):
        disk = SimDisk(random.Random(die_at))
        disk.die_at = die_at
        with pytest.raises(PowerCut):
            format_all(disk, config_of())
        disk = disk.crash()
        metas = {path: read_meta(disk, path) if disk.is_dir(path) else None for path in DIRECTORIES}
        if metas[A] is not None:
            assert None not in metas.values(), "the metadata directory is formatted last"
        known = {path: meta.directory_id for path, meta in metas.items() if meta is not None}
        format_all_missing(disk, metas[A] is None)
        found = require_formatted(disk, config_of())
        assert len(set(found.log_dirs.values())) == 3
        assert {path: found.log_dirs[path] for path in known} == known
        assert disk.exists(f"{A}/{BOOTSTRAP_FILE}")
        assert disk.exists(f"{A}/{META_FILE}")


def format_all_missing(disk: SimDisk, metadata: bool) -> None:
    numbers = count(100)
    if metadata:
        format_directory(
            disk,
            config_of(),
            cluster_id=CLUSTER,
            directory_id=uuid(99),
            wall_ms=0,
            new_id=lambda: uuid(next(numbers)),
        )

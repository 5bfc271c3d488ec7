"""Files that their readers find in a directory: each input is the content of one of them.

Damage to an index costs time, never records, so the log beside it is read as a whole each time.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from quorate.cli.client.errors import Refused
from quorate.cli.nodes.cluster_dir import decode_cluster
from quorate.quorum.ids import Uuid
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.node.opening import directory_replacement as replacement
from quorate.quorum.node.opening.data_directory import METADATA_DIRECTORY
from quorate.quorum.node.opening.meta_properties import StorageError
from tests.fuzz.stored import NESTED, Reader, Stored
from tests.fuzz.target import Target
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import batch

ROOT = "/data"
PATH = f"{ROOT}/t-0"
SETTINGS = LogSettings(segment_bytes=2_000, index_interval_bytes=200)
RECORDS = 40
STEP_MS = 10
TOPIC_ID = Uuid(bytes(range(16)))


def disk_with(files: dict[str, bytes]) -> SimDisk:
    disk = SimDisk(random.Random(0))
    disk.make_dirs(PATH)
    for path, content in files.items():
        disk.open(path, create=True).pwrite(content, 0)
    return disk


def opened(disk: SimDisk) -> Log:
    return Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=True)


def files_of_a_log() -> dict[str, bytes]:
    """Return the files of a closed log of several segments with RECORDS records."""
    disk = disk_with({})
    log = opened(disk)
    for number in range(RECORDS):
        # A record's timestamp is that of its batch plus its offset.
        data = batch(number, 0, [b"x" * 50], timestamp_ms=(STEP_MS - 1) * number)
        log.append(data, wall_ms=0)
    log.close()
    return {f"{PATH}/{name}": disk.content(f"{PATH}/{name}") for name in disk.list(PATH)}


def index_reader(files: dict[str, bytes], path: str) -> Reader:
    """Return a reader of the log whose index at `path` has other bytes."""

    def read(data: bytes) -> None:
        log = opened(disk_with({**files, path: data}))
        assert log.end_offset == RECORDS
        for number in range(RECORDS):
            assert log.read(number, 1), f"offset {number} is not found"
        for number in range(1, RECORDS, 5):
            found = log.offset_for_timestamp(STEP_MS * number - 4)
            assert found is not None and found.offset == number, f"{found} is not {number}"
        log.close()

    return Reader(read, (), (files[path],))


def index_readers() -> Iterator[Reader]:
    """Yield a reader for both indexes of the first segment and of the last one."""
    files = files_of_a_log()
    for suffix in (".index", ".timeindex"):
        of_kind = sorted(each for each in files if each.endswith(suffix))
        for path in (of_kind[0], of_kind[-1]):
            yield index_reader(files, path)


def partition_metadata(data: bytes) -> None:
    disk = disk_with({f"{PATH}/{checkpoints.PARTITION_METADATA_NAME}": data})
    checkpoints.read_partition_metadata(disk, PATH)


def clean_shutdown(data: bytes) -> None:
    path = f"{ROOT}/{checkpoints.CLEAN_SHUTDOWN_NAME}"
    disk = disk_with({path: data})
    epoch = checkpoints.take_clean_shutdown(disk, ROOT)
    assert epoch is None or epoch >= -1
    assert not disk.exists(path), "the next start would trust it again"


def decision(data: bytes) -> None:
    """Nothing outside of the directory may change, whatever name the file holds."""
    disk = disk_with({f"{ROOT}/{replacement.DECISION_FILE}": data})
    for name in (METADATA_DIRECTORY, replacement.REBUILT_DIRECTORY):
        disk.make_dirs(f"{ROOT}/{name}")
    replacement.finish_replacement(disk, ROOT)
    assert disk.list("/") == [ROOT.removeprefix("/")]
    names = set(disk.list(ROOT))
    assert METADATA_DIRECTORY in names and replacement.REBUILT_DIRECTORY not in names


def written(write: str) -> bytes:
    disk = disk_with({})
    if write == checkpoints.PARTITION_METADATA_NAME:
        checkpoints.write_partition_metadata(disk, PATH, TOPIC_ID)
        return disk.content(f"{PATH}/{write}")
    checkpoints.write_clean_shutdown(disk, ROOT, 5)
    return disk.content(f"{ROOT}/{write}")


def cluster_files() -> Sequence[bytes]:
    node = {"id": 1, "log_dir": "/a", "pid": 5, "host": "h", "port": 1}
    entry = {"bootstrap": "h:1", "controllers": [node], "brokers": [{**node, "id": 2}]}
    return (json.dumps(entry).encode(), b'{"controllers": [], "brokers": []}', NESTED)


@contextmanager
def directory_files() -> Iterator[Target]:
    backup = f"{METADATA_DIRECTORY}.before-x".encode()
    yield Stored(
        Reader(partition_metadata, (LogError,), (written(checkpoints.PARTITION_METADATA_NAME),)),
        Reader(clean_shutdown, (), (written(checkpoints.CLEAN_SHUTDOWN_NAME), b"", NESTED)),
        Reader(decision, (StorageError, LogError), (backup, b"__cluster_metadata-0./../x")),
        Reader(lambda data: decode_cluster(data, "cluster.json"), (Refused,), cluster_files()),
        *index_readers(),
    )

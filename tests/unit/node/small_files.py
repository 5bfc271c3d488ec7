"""The small files of a data directory as targets: any bytes are read, or refused as declared.

Each target takes the whole content of one file. It puts the bytes on a disk and reads them as a
node or a tool does. It returns normally if they are read or refused with a sentence for the
operator. Every other exception passes, and is a bug.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

from quorate.broker.logs.producer_snapshots import decode as decode_producers
from quorate.cli.client.errors import Refused
from quorate.cli.nodes.cluster_dir import decode_cluster
from quorate.config import properties
from quorate.config.key import ConfigError
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME, FlushedMarker
from quorate.quorum.metadata.snapshot_file import CorruptSnapshot, read_snapshot
from quorate.quorum.node.opening.directory_replacement import DECISION_FILE, finish_replacement
from quorate.quorum.node.opening.meta_properties import (
    META_COPY,
    META_FILE,
    StorageError,
    read_meta,
)
from quorate.quorum.node.replica.metadata_mark import MARK_NAME, read_mark
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME, ElectionFile
from quorate.quorum.raft.errors import ElectionFileError, GenerationFileError
from quorate.quorum.raft.generation import FILE_NAME, GenerationFile
from tests.sim.world.disk import SimDisk

DIRECTORY = "/data"
Read = Callable[[SimDisk], object]


def disk_with(name: str, content: bytes) -> SimDisk:
    disk = SimDisk(random.Random(0))
    disk.make_dirs(DIRECTORY)
    file = disk.open(f"{DIRECTORY}/{name}", create=True)
    file.pwrite(content, 0)
    return disk


def target(name: str, read: Read, *declared: type[Exception]) -> Callable[[bytes], None]:
    """Return the function that reads `content` as the file `name`."""

    def feed(content: bytes) -> None:
        with suppress(*declared):
            read(disk_with(name, content))

    return feed


def election(disk: SimDisk) -> None:
    ElectionFile(disk, DIRECTORY, (1,)).load()


def offsets(disk: SimDisk) -> None:
    checkpoints.read_offsets(disk, DIRECTORY, checkpoints.RECOVERY_POINTS_NAME)


def snapshot(content: bytes) -> None:
    with suppress(CorruptSnapshot):
        read_snapshot(EpochOffset(1, 100), [content])


def cluster_json(content: bytes) -> None:
    with suppress(Refused):
        decode_cluster(content, "cluster.json")


def properties_file(content: bytes) -> None:
    with suppress(ConfigError, UnicodeDecodeError):
        properties.parse(content.decode(), "server.properties")


def producers(content: bytes) -> None:
    decode_producers(content)


TARGETS: dict[str, Callable[[bytes], None]] = {
    META_FILE: target(META_FILE, lambda disk: read_meta(disk, DIRECTORY), StorageError),
    META_COPY: target(
        META_COPY, lambda disk: read_meta(disk, DIRECTORY, repair=True), StorageError
    ),
    MARK_NAME: target(MARK_NAME, lambda disk: read_mark(disk, DIRECTORY)),
    KAFKA_NAME: target(KAFKA_NAME, election, ElectionFileError),
    COPY_NAME: target(COPY_NAME, election, ElectionFileError),
    FILE_NAME: target(
        FILE_NAME, lambda disk: GenerationFile(disk, DIRECTORY).load(), GenerationFileError
    ),
    DECISION_FILE: target(
        DECISION_FILE, lambda disk: finish_replacement(disk, DIRECTORY), StorageError
    ),
    checkpoints.RECOVERY_POINTS_NAME: target(
        checkpoints.RECOVERY_POINTS_NAME, offsets, CorruptCheckpoint
    ),
    checkpoints.EPOCHS_NAME: target(
        checkpoints.EPOCHS_NAME, lambda disk: checkpoints.read_epochs(disk, DIRECTORY)
    ),
    checkpoints.PARTITION_METADATA_NAME: target(
        checkpoints.PARTITION_METADATA_NAME,
        lambda disk: checkpoints.read_partition_metadata(disk, DIRECTORY),
        CorruptCheckpoint,
    ),
    checkpoints.CLEAN_SHUTDOWN_NAME: target(
        checkpoints.CLEAN_SHUTDOWN_NAME,
        lambda disk: checkpoints.take_clean_shutdown(disk, DIRECTORY),
    ),
    FLUSHED_MARKER_NAME: target(FLUSHED_MARKER_NAME, lambda disk: FlushedMarker(disk, DIRECTORY)),
    "snapshot": snapshot,
    "producer snapshot": producers,
    "cluster.json": cluster_json,
    "server.properties": properties_file,
}

"""Writes the metadata directory of a rebuilt quorum, as `__cluster_metadata-0.rebuilt`.

It holds a copy of the chosen log and its snapshots, the records of the new voters, the new epoch
and the generations. `quorum/node/opening/directory_replacement.py` then replaces the old directory
with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import CONTROL, build_batch, build_value_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.checkpoints import EPOCHS_NAME
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME
from quorate.quorum.log.files.names import SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import NoOpRecord
from quorate.quorum.node.opening.directory_replacement import REBUILT_DIRECTORY
from quorate.quorum.node.replica.metadata_storage import MetadataStorage
from quorate.quorum.raft.control_records import Voter, encode_control
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from quorate.quorum.raft.generation import GenerationFile, Rebuilds
from quorate.quorum.raft.voter_history import QuorumVoters
from quorate.quorum.seams import Disk

COPIED_SUFFIXES = (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX)
COPIED_NAMES = (EPOCHS_NAME, FLUSHED_MARKER_NAME)
"""The files that are copied in addition to those with COPIED_SUFFIXES. The election is not copied.
"""
COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQuorum:
    """The state with which every voter of the rebuilt quorum begins."""

    source: str
    """The metadata directory that is copied."""
    end: EpochOffset
    """The last epoch and the end offset of its log."""
    epoch: int
    """The epoch of the new records and of the new election, in which no vote is saved."""
    rebuilds: Rebuilds
    """All rebuilds of this quorum, the new one included."""
    voters: tuple[Voter, ...]


def prepare(
    disk: Disk, parent: str, quorum: NewQuorum, settings: LogSettings, *, wall_ms: int
) -> None:
    """Write the rebuilt directory in `parent`. Block. It is durable on return, and not yet in use.

    `parent` is created if it is missing, and the rest of an earlier attempt is removed. Raise
    CorruptLog if the copied log does not end as planned. Raise other LogErrors and OSError."""
    directory = f"{parent}/{REBUILT_DIRECTORY}"
    disk.make_dirs(parent)
    if disk.is_dir(directory):
        disk.remove_tree(directory)
    disk.make_dirs(directory)
    for name in disk.list(quorum.source):
        if name.endswith(COPIED_SUFFIXES) or name in COPIED_NAMES:
            _copy(disk, f"{quorum.source}/{name}", f"{directory}/{name}")
    disk.sync_dir(directory)
    storage = MetadataStorage.open(
        disk, directory, replace(settings, archive_directory=""), wall_ms=wall_ms
    )
    log = storage.log
    if (log.last_epoch, log.end_offset) not in (
        (quorum.end.epoch, quorum.end.offset),
        (-1, quorum.end.offset),
    ):
        reason = (
            f"the copy of the log ends here in epoch {log.last_epoch}, but {quorum.end} was planned"
        )
        raise CorruptLog(quorum.source, 0, log.end_offset, reason)
    for batch in _records(quorum, wall_ms):
        log.append(batch, wall_ms=wall_ms)
    storage.close()
    ElectionFile(disk, directory, (), kraft_version=1).save(Election(epoch=quorum.epoch))
    GenerationFile(disk, directory).save(quorum.rebuilds)
    disk.sync_dir(parent)


def _records(quorum: NewQuorum, wall_ms: int) -> Iterable[bytearray]:
    """Yield two batches: the control records with the voters, and a no-op record with the cause.

    Apache Kafka's tools read both kinds of records."""
    offset = quorum.end.offset
    control = QuorumVoters(1, quorum.voters).records()
    yield build_batch(
        [
            Record(offset + number, wall_ms, *encode_control(each))
            for number, each in enumerate(control)
        ],
        leader_epoch=quorum.epoch,
        flags=CONTROL,
    )
    yield build_value_batch(
        [encode_record(NoOpRecord(cause=Cause.QUORUM_REBUILT))],
        base_offset=offset + len(control),
        leader_epoch=quorum.epoch,
        timestamp_ms=wall_ms,
    )


def _copy(disk: Disk, source: str, target: str) -> None:
    read = disk.open(source, writable=False)
    write = disk.open(target, create=True)
    try:
        position = 0
        while chunk := read.pread(COPY_BYTES, position):
            write.pwrite(chunk, position)
            position += len(chunk)
        write.sync()
    finally:
        read.close()
        write.close()

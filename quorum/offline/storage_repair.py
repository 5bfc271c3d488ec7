"""`quorate storage verify --repair`: makes the repairs of the next start, by the same code.

A log with any result of kind DAMAGED, at any offset, is not changed at all. Faults outside of the
logs are not repaired: those of kind DERIVED are settled by the next start. In addition, the
metadata directory of a broker can be moved away, because it is a copy of the quorum's metadata. The
caller must never move that of a voter, because the voter's records count as acknowledged.
"""

from __future__ import annotations

from quorate.quorum.log.checking.check_result import Kind
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import STRAY_DIRECTORY_SUFFIX
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.offline.storage_verify import METADATA, CheckedLog, Verification
from quorate.quorum.raft import generation
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME
from quorate.quorum.seams import Disk


def repair(disk: Disk, verification: Verification) -> None:
    """Repair the torn ends, the indexes and the leader epoch checkpoints of the logs without
    damage. Block.

    `verification` is the result of `verify`, and nothing has changed the directory since then.
    Raise LogError or OSError; the logs before the failed one are repaired then."""
    for each in verification.logs:
        if not each.damaged:
            _rebuild_indexes(disk, each)
            _recover(disk, each)


def _rebuild_indexes(disk: Disk, log: CheckedLog) -> None:
    for base_offset in sorted(set(log.wrong_indexes)):
        segment = Segment(disk, log.directory, base_offset, LogSettings().index_interval_bytes)
        segment.rebuild_indexes()
        segment.close()


def _recover(disk: Disk, log: CheckedLog) -> None:
    if any(
        each.kind is Kind.TORN or each.path.endswith(checkpoints.EPOCHS_NAME)
        for each in log.results
    ):
        Log.open(
            disk,
            log.directory,
            LogSettings(flushed_is_acknowledged=log.expected.metadata),
            wall_ms=0,
            clean=log.expected.clean,
            recovery_point=log.expected.trusted_offset,
            start_offset=log.expected.start_offset,
        ).close()


def set_aside_metadata(disk: Disk, log_dir: str, unique: str) -> str:
    """Rename a broker's metadata directory and return its new path. Block; durable on return.

    The new name is `__cluster_metadata-0.<unique>-stray`. A new directory gets copies of the
    election and of the quorum's generations. The broker fetches everything else again. The function
    does not check that the node is a broker. Raise OSError, and CorruptCheckpoint for a file that
    is too large."""
    directory = f"{log_dir}/{METADATA}"
    target = f"{directory}.{unique}{STRAY_DIRECTORY_SUFFIX}"
    disk.rename(directory, target)
    disk.make_dir(directory)
    for name in (KAFKA_NAME, COPY_NAME, generation.FILE_NAME):
        content = checkpoints.read_small(disk, f"{target}/{name}")
        if content is not None:
            checkpoints.replace(disk, f"{directory}/{name}", content)
    disk.sync_dir(log_dir)
    return target

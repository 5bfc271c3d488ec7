"""`storage verify --repair`: what the next start would do, by the same code, and one thing more.

A log in which anything is damaged below what was synced is left alone as a whole. A metadata log
goes only when its owner says that the node is a broker, whose log is a copy of the quorum's; a
voter's is never set aside: what it acknowledged counted.
"""

from __future__ import annotations

from quorate.quorum.log import checkpoints
from quorate.quorum.log.check_result import Kind
from quorate.quorum.log.log import Log
from quorate.quorum.log.names import STRAY_DIRECTORY_SUFFIX
from quorate.quorum.log.segment import Segment
from quorate.quorum.log.settings import LogSettings
from quorate.quorum.offline.storage_verify import METADATA, CheckedLog, Verification
from quorate.quorum.raft import generation
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME
from quorate.quorum.seams import Disk


def repair(disk: Disk, verification: Verification) -> None:
    """Blocks. Torn tails, indexes and lists of epochs of logs that are not damaged."""
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
    """A broker's metadata log goes, whole, and what it knew of the election and of the quorum's
    generation stays: the broker fetches everything anew. Where it is; durable."""
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

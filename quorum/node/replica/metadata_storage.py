"""The metadata on a node's disk: one log, its snapshots, and the state to start with.

Invariants of an opened directory. After a crash at any step, `MetadataStorage.open` restores them:

- The log starts at 0 or at the end of the earliest snapshot, without a gap. Its first segment may
  hold older records, which no reader gets.
- No snapshot ends below the start of the log.
- The log does not end below the latest snapshot, or in an older epoch. If it does at a start, a
  crash interrupted its replacement by this snapshot. The start completes the replacement.
- The node starts with the state of the latest undamaged snapshot. A damaged snapshot that is later
  than this one is set aside if the log, or an older snapshot and the log, still hold its records.
  Otherwise the node does not start. Older snapshots are not checked.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.log.files.archive import prepare_archive
from quorate.quorum.log.files.checkpoints import read_small
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.names import DAMAGED_SUFFIX
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.opening.recovery import ANY_EPOCH
from quorate.quorum.log.snapshots.snapshots import SnapshotFiles, is_behind, snapshot_name
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.snapshot_file import (
    CorruptSnapshot,
    SnapshotContents,
    read_snapshot,
)
from quorate.quorum.raft.control_records import decode_control
from quorate.quorum.raft.voter_history import STATIC_VOTERS, QuorumVoters, VoterHistory
from quorate.quorum.seams import Disk

BEFORE_ALL = EpochOffset(0, 0)
"""The end of the snapshot that `storage format` writes in a dynamic quorum, with only voters."""
EMPTY = SnapshotContents(MetadataImage(), STATIC_VOTERS)
"""The state before the first record, if there is no snapshot."""

logger = logging.getLogger("quorate.quorum.storage")


@dataclass(frozen=True, slots=True)
class MetadataStorage:
    """An opened metadata directory. `close` releases its files."""

    log: Log
    snapshots: SnapshotFiles
    beginning: SnapshotContents
    """The image and the voters of the latest snapshot, or EMPTY without one. The log after the
    snapshot is not replayed."""
    history: VoterHistory
    """The voter sets of the latest snapshot and of the log after it, committed or not."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        *,
        wall_ms: int,
        latest_unsaved_epoch: int = ANY_EPOCH,
    ) -> MetadataStorage:
        """Open the directory, recover the log and read the latest snapshot. Blocks.

        `latest_unsaved_epoch` is the highest epoch that a batch may have if the epoch checkpoint
        does not have it.

        Raise CorruptLog if the directory is damaged beyond repair, and ArchiveRefused if the
        archive of `settings` cannot be used."""
        snapshots = SnapshotFiles.open(disk, directory)
        log = Log.open(
            disk,
            directory,
            settings,
            wall_ms=wall_ms,
            clean=False,
            latest_unsaved_epoch=latest_unsaved_epoch,
        )
        if settings.archive_directory:
            prepare_archive(disk, directory, settings.archive_directory)
        beginning = _latest_whole(snapshots, log)
        latest = snapshots.latest
        end = EpochOffset(log.last_epoch, log.end_offset)
        if latest is not None and is_behind(end, latest):
            log.reset_to(latest.offset, latest.epoch)
        elif log.start_offset > 0:
            _start_at_snapshot(log, snapshots)
        snapshots.remove_before(log.start_offset)  # A power loss can undo a removal.
        return cls(log, snapshots, beginning, _history(log, snapshots, beginning))

    def close(self) -> None:
        """Make the log durable and close all files. Blocks."""
        self.snapshots.close()
        self.log.close()


def _history(log: Log, snapshots: SnapshotFiles, beginning: SnapshotContents) -> VoterHistory:
    """Return the voter sets. Blocks: it reads the headers of all batches after the snapshot."""
    latest = snapshots.latest
    if latest is None:
        history = VoterHistory(_formatted(log.disk, log.directory))
    else:
        history = VoterHistory(beginning.quorum, in_log=True)
    offset = latest.offset if latest else 0
    for batch in log.control_batches(offset):
        for position, header in batches(batch, verify=False):
            for record in records_of(batch, position, header):
                control = decode_control(record.key, record.value)
                if control is not None:
                    history.append(record.offset, control)
    return history


def _formatted(disk: Disk, directory: str) -> QuorumVoters:
    """Return the voters of a new quorum, from the snapshot at offset 0 of `storage format`."""
    path = f"{directory}/{snapshot_name(BEFORE_ALL)}"
    content = read_small(disk, path)
    if content is None:
        return STATIC_VOTERS
    try:
        return read_snapshot(BEFORE_ALL, [content]).quorum
    except CorruptSnapshot as error:
        raise CorruptLog(path, 0, 0, str(error)) from error


def _start_at_snapshot(log: Log, snapshots: SnapshotFiles) -> None:
    """Let the log start at the earliest snapshot that touches it.

    Segments are removed as a whole, so the first segment may begin below that snapshot."""
    first = next((each for each in snapshots if each.offset >= log.start_offset), None)
    if first is None:
        raise CorruptLog(
            log.directory,
            0,
            log.start_offset,
            "the log starts here, but no snapshot holds the records before it",
        )
    log.advance_start(first.offset)
    if log.last_epoch < first.epoch:
        log.epochs.assign(first.epoch, first.offset)


def _latest_whole(snapshots: SnapshotFiles, log: Log) -> SnapshotContents:
    """Return the latest undamaged snapshot, and set damaged ones aside. Blocks: it reads all of it.

    Raise CorruptLog if the log does not hold the records of a damaged snapshot."""
    while (snapshot := snapshots.latest) is not None:
        try:
            return read_snapshot(snapshot, snapshots.chunks(snapshot))
        except CorruptSnapshot as error:
            older = list(snapshots)[:-1]
            from_offset = older[-1].offset if older else 0
            if not log.start_offset <= from_offset <= snapshot.offset <= log.end_offset:
                path = snapshots.path(snapshot)
                raise CorruptLog(path, 0, snapshot.offset, str(error)) from error
            logger.warning(
                "set a damaged snapshot aside, because the log still holds its records: %s", error
            )
            snapshots.set_aside(snapshot, DAMAGED_SUFFIX)
    return EMPTY

"""What a node keeps of the metadata on its disk: one log, its snapshots, the state to begin with.

Invariants, also after a crash at any step:

- The log starts at 0 or where the earliest snapshot ends: there is no gap between the two.
- No snapshot is older than the log's start: who asks for what is cut off is judged by the earliest.
- A log that ends below the latest snapshot was being replaced by it: that is done first.
- The state to begin with is the latest whole snapshot's. A damaged one is set aside as long as the
  log, or an older snapshot, still says the same; else the node refuses to start.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.archive import prepare_archive
from quorate.quorum.log.batch import batches, records_of
from quorate.quorum.log.checkpoints import read_small
from quorate.quorum.log.errors import CorruptLog
from quorate.quorum.log.log import Log
from quorate.quorum.log.names import DAMAGED_SUFFIX
from quorate.quorum.log.settings import LogSettings
from quorate.quorum.log.snapshots import SnapshotFiles, is_behind, snapshot_name
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
EMPTY = SnapshotContents(MetadataImage(), STATIC_VOTERS)

logger = logging.getLogger("quorate.quorum.storage")


@dataclass(frozen=True, slots=True)
class MetadataStorage:
    log: Log
    snapshots: SnapshotFiles
    beginning: SnapshotContents
    history: VoterHistory
    """Who votes, as the beginning and the log behind it say, committed or not."""

    @classmethod
    def open(
        cls, disk: Disk, directory: str, settings: LogSettings, *, wall_ms: int
    ) -> MetadataStorage:
        """Blocks. Raises CorruptLog, ArchiveRefused."""
        snapshots = SnapshotFiles.open(disk, directory)
        log = Log.open(disk, directory, settings, wall_ms=wall_ms, clean=False)
        if settings.archive_directory:
            prepare_archive(disk, directory, settings.archive_directory)
        beginning = _latest_whole(snapshots, log)
        latest = snapshots.latest
        end = EpochOffset(log.last_epoch, log.end_offset)
        if latest is not None and is_behind(end, latest):
            log.reset_to(latest.offset, latest.epoch)
        elif log.start_offset > 0:
            _start_at_snapshot(log, snapshots)
        snapshots.remove_before(log.start_offset)  # a power cut brought it back
        return cls(log, snapshots, beginning, _history(log, snapshots, beginning))

    def close(self) -> None:
        self.snapshots.close()
        self.log.close()


def _history(log: Log, snapshots: SnapshotFiles, beginning: SnapshotContents) -> VoterHistory:
    """Blocks: walks over the headers of all batches behind the beginning."""
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
    """Who votes in a new quorum: the snapshot at offset 0 that `storage format` wrote."""
    path = f"{directory}/{snapshot_name(BEFORE_ALL)}"
    content = read_small(disk, path)
    if content is None:
        return STATIC_VOTERS
    try:
        return read_snapshot(BEFORE_ALL, [content]).quorum
    except CorruptSnapshot as error:
        raise CorruptLog(path, 0, 0, str(error)) from error


def _start_at_snapshot(log: Log, snapshots: SnapshotFiles) -> None:
    """Segments go whole, so the first one may begin below the snapshot that the log starts at."""
    first = next((each for each in snapshots if each.offset >= log.start_offset), None)
    if first is None:
        raise CorruptLog(
            log.directory,
            0,
            log.start_offset,
            "the log starts here, but no snapshot says what was before",
        )
    log.advance_start(first.offset)
    if log.last_epoch < first.epoch:
        log.epochs.assign(first.epoch, first.offset)


def _latest_whole(snapshots: SnapshotFiles, log: Log) -> SnapshotContents:
    """Blocks: reads and checks all of it."""
    while (snapshot := snapshots.latest) is not None:
        try:
            return read_snapshot(snapshot, snapshots.chunks(snapshot))
        except CorruptSnapshot as error:
            older = list(snapshots)[:-1]
            from_offset = older[-1].offset if older else 0
            if not log.start_offset <= from_offset <= snapshot.offset <= log.end_offset:
                path = snapshots.path(snapshot)
                raise CorruptLog(path, 0, snapshot.offset, str(error)) from error
            logger.warning("set aside, the log still has what it stands for: %s", error)
            snapshots.set_aside(snapshot, DAMAGED_SUFFIX)
    return EMPTY

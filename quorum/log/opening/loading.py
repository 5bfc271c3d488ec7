"""Opens a log: settles leftover files, finds the segments, and lets `recovery.py` find their end.

The result is a `LoadedLog`, from which `Log` is built. After a clean shutdown recovery takes the
end of the log from the index of the last segment. After any other stop it reads the batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired, TypedDict

from quorate.quorum.ids import EpochOffset
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.flushed_marker import FlushedMarker
from quorate.quorum.log.files.names import LOG_SUFFIX, offset_of
from quorate.quorum.log.files.offset_gaps import GAPS_NAME
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.opening.leftovers import settle_leftovers
from quorate.quorum.log.opening.recovery import ANY_EPOCH, LogRecovery, RecoveryReport
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.seams import Disk


class OpenOptions(TypedDict):
    """The facts about a log that its owner passes when it opens the log."""

    wall_ms: int
    """The time now. The age of an active segment without timestamps is counted from it."""
    clean: bool
    """True if the last shutdown was clean. No batch is checked then."""
    recovery_point: NotRequired[int]
    """Everything below this offset was flushed. 0 by default. In the metadata log the flushed
    marker counts too; the higher of the two is used."""
    start_offset: NotRequired[int]
    """The log start offset in the checkpoint. 0 by default."""
    gaps: NotRequired[bool]
    """True if offsets may be missing even without the marker (`offset_gaps.py`)."""
    set_aside: NotRequired[bool]
    """True if other replicas have all acknowledged records. After an unclean shutdown, all batches
    are then checked. Damage is cut off at any offset, and the cut bytes are kept in `.damaged`
    files."""
    latest_unsaved_epoch: NotRequired[int]
    """The highest leader epoch that an unflushed batch may have without an entry in the epoch
    checkpoint. Any epoch by default, as in Apache Kafka."""


@dataclass(slots=True)
class LoadedLog:
    """The contents of a log's directory, from which a `Log` is built."""

    segments: list[Segment]
    """At least one, in offset order; the last one is active."""
    epochs: list[EpochOffset]
    epochs_changed: bool
    """True if `epochs` differs from the epoch checkpoint on disk."""
    start_offset: int
    flushed_offset: int
    """Everything below it is on disk."""
    wall_ms: int
    report: RecoveryReport
    unsynced: list[Segment]
    """Segments with bytes that only the page cache may hold."""
    unsynced_directories: list[str]
    """Directories with names that may not be on disk."""
    marker: FlushedMarker | None
    """The flushed marker, which only the metadata log has."""
    gaps: bool
    """True if offsets may be missing between batches."""


def load(
    disk: Disk,
    directory: str,
    settings: LogSettings,
    *,
    wall_ms: int,
    clean: bool,
    recovery_point: int = 0,
    start_offset: int = 0,
    gaps: bool = False,
    set_aside: bool = False,
    latest_unsaved_epoch: int = ANY_EPOCH,
) -> IncrementalWork[LoadedLog]:
    """Return the steps that load the log in `directory`; `OpenOptions` defines the arguments.

    The directory is created if it is missing, but not its parent. Raise CorruptLog if the log lost
    bytes that may have been acknowledged, or OSError. Nothing else may use the directory before the
    last step."""
    try:
        names = disk.list(directory)
    except FileNotFoundError:
        disk.make_dir(directory)
        names = []
    names = settle_leftovers(disk, directory, names)
    segments = _segments(disk, directory, names, settings, start_offset)
    marker = FlushedMarker(disk, directory) if settings.flushed_is_acknowledged else None
    flushed = marker.offset if marker else 0
    saved = checkpoints.read_epochs(disk, directory) if checkpoints.EPOCHS_NAME in names else None
    vouched = max(recovery_point, flushed)
    recovery = LogRecovery(segments, settings, 0 if set_aside else vouched, vouched, saved)
    recovery.quarantine = disk if set_aside else None
    recovery.latest_unsaved_epoch = latest_unsaved_epoch
    recovery.gaps = gaps or GAPS_NAME in names
    if clean:
        yield from recovery.trust(start_offset)
    else:
        yield from recovery.check()
        if settings.flushed_is_acknowledged:
            recovery.write_again()
    end_offset = segments[-1].next_offset
    if clean and saved:
        # A clean stop saves both. If they differ, one is damaged, and the lower one loses nothing.
        start_offset = min(start_offset, saved[0].offset)
    start_offset = max(start_offset, segments[0].base_offset)
    epochs = recovery.epochs
    epochs.truncate_to(end_offset)
    epochs.advance_start(start_offset)
    return LoadedLog(
        segments=segments,
        epochs=epochs.entries,
        epochs_changed=epochs.entries != (saved or []),
        start_offset=start_offset,
        flushed_offset=end_offset if clean else min(recovery.trusted_offset, end_offset),
        wall_ms=wall_ms,
        report=recovery.report,
        unsynced=recovery.unsynced,
        unsynced_directories=[] if clean and names else [directory, directory.rpartition("/")[0]],
        marker=marker,
        gaps=recovery.gaps,
    )


def _segments(
    disk: Disk, directory: str, names: list[str], settings: LogSettings, start_offset: int
) -> list[Segment]:
    """Return the segments whose files exist, or one new segment that begins at `start_offset`."""
    offsets = [offset_of(name) for name in names if name.endswith(LOG_SUFFIX)]
    bases = sorted(offset for offset in offsets if offset is not None)
    interval = settings.index_interval_bytes
    segments = [Segment(disk, directory, base, interval) for base in bases]
    for segment, following in zip(segments, bases[1:], strict=False):
        segment.next_offset = following
    if not segments:
        segments.append(Segment(disk, directory, start_offset, interval))
        segments[0].create(settings.segment_bytes if settings.preallocate else 0)
    return segments

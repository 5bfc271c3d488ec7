"""Opens the log of one partition with the parameters of its manager.

The opening touches only the partition's directory, so that the disk's thread can run it in steps
while the event loop goes on (`broker/replication/partitions/partition_opener.py`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from quorate.broker.logs.offset_checkpoints import OffsetCheckpoints
from quorate.broker.logs.producer_snapshots import remove_snapshots_above
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.epochs import NO_EPOCH
from quorate.quorum.seams import Disk

logger = logging.getLogger("quorate.broker.replication")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOpenParameters:
    """The facts about a log that are known before it is read.

    `existed` is False if the start found no directory of this partition. `recovery_point`,
    `start_offset` and `high_watermark` are the checkpointed offsets, or 0. `latest_unsaved_epoch`
    is the highest leader epoch that an unflushed batch may have without an entry in the file of
    leader epochs; NO_EPOCH allows none. `wall_ms` is the time of day."""

    name: PartitionName
    topic_id: Uuid
    directory: str
    settings: LogSettings
    wall_ms: int
    existed: bool
    clean: bool
    """True if the log is new, or a clean shutdown closed it."""
    recovery_point: int
    start_offset: int
    gaps: bool
    """True if the log cleaner has compacted the log, so that offsets may be missing."""
    high_watermark: int
    latest_unsaved_epoch: int
    peers_have_it: bool
    """True if other replicas have everything acknowledged."""


def parameters_of(
    offsets: OffsetCheckpoints,
    name: PartitionName,
    topic_id: Uuid,
    settings: LogSettings,
    directory: str,
    *,
    existed: bool,
    clean: bool,
    wall_ms: int,
    leader_epoch: int,
    peers_have_it: bool,
) -> LogOpenParameters:
    """Return the parameters for the log in `directory`, which `existed` at the start or is to be
    made. `clean` is True if the last stop was clean, and `leader_epoch` is the partition's latest.
    Block until the checkpoints have no offsets of an earlier log of this name, or of a future log
    that is gone: the start after the next one would take them for those of the new log."""
    if not existed:
        offsets.remove(name)
        offsets.require_removed(name)
    recovery_point = offsets.recovery_points.get(name, 0) if existed else 0
    # Unflushed leader epochs have no proof. They are ignored if peers have the records.
    only_saved = peers_have_it and recovery_point > 0
    return LogOpenParameters(
        name=name,
        topic_id=topic_id,
        directory=directory,
        settings=settings,
        wall_ms=wall_ms,
        existed=existed,
        clean=clean or not existed,
        recovery_point=recovery_point,
        start_offset=offsets.start_offsets.get(name, 0) if existed else 0,
        gaps=existed and name in offsets.cleaner_offsets,
        high_watermark=offsets.high_watermarks.get(name, 0) if existed else 0,
        latest_unsaved_epoch=NO_EPOCH if only_saved else leader_epoch,
        peers_have_it=peers_have_it,
    )


def open_log(disk: Disk, parameters: LogOpenParameters) -> IncrementalWork[Log]:
    """Open the log, in steps, and recover it if it was not closed cleanly. Return the log. The
    directory of a new log is made.

    If the log is damaged and peers have the records, everything from the damage on is set aside:
    the log ends lower than before, and the replica fetches the rest. If peers do not have the
    records, raise CorruptLog. Disk errors are OSErrors."""
    trusted = parameters.clean
    try:
        log = yield from _opening(disk, parameters, clean=trusted)
    except CorruptLog as damage:
        if not parameters.peers_have_it:
            raise
        logger.warning(
            "%s. This replica sets the rest aside and fetches it from the leader", damage
        )
        trusted = False
        log = yield from _opening(disk, parameters, clean=False, set_aside=True)
        if log.recovery.cut_at_offset is None and log.start_offset > damage.offset:
            log.reset_to(damage.offset)  # the beginning of the log is damaged
    if not parameters.existed:
        checkpoints.write_partition_metadata(disk, parameters.directory, parameters.topic_id)
    elif not trusted:
        remove_snapshots_above(disk, parameters.directory, log.end_offset)
    return log


def _opening(
    disk: Disk, parameters: LogOpenParameters, *, clean: bool, set_aside: bool = False
) -> IncrementalWork[Log]:
    return Log.open_in_steps(
        disk,
        parameters.directory,
        parameters.settings,
        wall_ms=parameters.wall_ms,
        clean=clean,
        recovery_point=parameters.recovery_point,
        start_offset=parameters.start_offset,
        gaps=parameters.gaps,
        set_aside=set_aside,
        latest_unsaved_epoch=parameters.latest_unsaved_epoch,
    )

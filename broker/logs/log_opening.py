"""The log of one partition is opened, by what its manager judged before.

It touches nothing but the partition's directory and what it was given, so that it may run in the
disk's thread, step by step, while the loop goes on; see `partition_opener.py`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from quorate.broker.logs.producer_snapshots import remove_snapshots_above
from quorate.quorum.ids import Uuid
from quorate.quorum.log import checkpoints
from quorate.quorum.log.errors import CorruptLog
from quorate.quorum.log.log import Log
from quorate.quorum.log.names import PartitionName
from quorate.quorum.log.settings import LogSettings
from quorate.quorum.seams import Disk
from quorate.quorum.steps import Steps

logger = logging.getLogger("quorate.broker.replication")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOpenParameters:
    """What is known of a log before it is read."""

    name: PartitionName
    topic_id: Uuid
    directory: str
    settings: LogSettings
    wall_ms: int
    existed: bool
    clean: bool
    """Made just now, or closed in order."""
    recovery_point: int
    start_offset: int
    high_watermark: int
    latest_unsaved_epoch: int
    peers_have_it: bool
    """All that was acknowledged can be fetched again."""


def open_log(disk: Disk, parameters: LogOpenParameters) -> Steps[Log]:
    """Raises CorruptLog, unless peers have it."""
    trusted = parameters.clean
    try:
        log = yield from _opening(disk, parameters, clean=trusted)
    except CorruptLog as damage:
        if not parameters.peers_have_it:
            raise
        logger.warning("%s; what follows is set aside and fetched from the leader", damage)
        trusted = False
        log = yield from _opening(disk, parameters, clean=False, set_aside=True)
        if log.recovery.cut_at_offset is None and log.start_offset > damage.offset:
            log.reset_to(damage.offset)  # it is the beginning that is gone
    if not parameters.existed:
        checkpoints.write_partition_metadata(disk, parameters.directory, parameters.topic_id)
    elif not trusted:
        remove_snapshots_above(disk, parameters.directory, log.end_offset)
    return log


def _opening(
    disk: Disk, parameters: LogOpenParameters, *, clean: bool, set_aside: bool = False
) -> Steps[Log]:
    return Log.open_in_steps(
        disk,
        parameters.directory,
        parameters.settings,
        wall_ms=parameters.wall_ms,
        clean=clean,
        recovery_point=parameters.recovery_point,
        start_offset=parameters.start_offset,
        set_aside=set_aside,
        latest_unsaved_epoch=parameters.latest_unsaved_epoch,
    )

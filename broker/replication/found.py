"""What is found of a partition at the start: of which topic its directory is, and whether one is
missing.

partition.metadata says of which topic. It is not synced when the directory is made, so a crash of
the machine may take it, and it may be damaged.
"""

from __future__ import annotations

import logging

from quorate.quorum.ids import Uuid
from quorate.quorum.log import checkpoints
from quorate.quorum.log.errors import CorruptCheckpoint, CorruptLog
from quorate.quorum.seams import Disk

logger = logging.getLogger("quorate.broker.replication")


def topic_of(disk: Disk, directory: str, expected: Uuid, peers_have_it: bool) -> Uuid | None:
    """None when it is not known and need not be: the topic may have been made anew since, when this
    broker was away and so not in its ISR. The last one of an ISR cannot have missed that: what is
    missing is as `expected`, and what is damaged raises CorruptCheckpoint."""
    try:
        found = checkpoints.read_partition_metadata(disk, directory)
    except CorruptCheckpoint as error:
        if not peers_have_it:
            raise
        logger.warning("%s", error)
        return None
    if found is None and not peers_have_it:
        checkpoints.write_partition_metadata(disk, directory, expected)
        return expected
    return found


def require_none_lost(directory: str, recovery_point: int) -> None:
    """There is no `directory`, this broker is the last one of the ISR, and it was shut down in
    order with that recovery point: what it had then was not deleted by the cluster."""
    if recovery_point > 0:
        reason = f"it is gone, and was flushed up to offset {recovery_point}"
        raise CorruptLog(directory, 0, 0, reason)

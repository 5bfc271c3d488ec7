"""The partitions' directories that a start finds: whose they are, and whether one is missing.

partition.metadata says of which topic a directory is. It is not synced when the directory is made,
so a crash of the machine may take it, and it may be damaged.

Directories of other topics are never deleted but set aside as `-stray`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorate.quorum.ids import Uuid
from quorate.quorum.log import checkpoints
from quorate.quorum.log.errors import CorruptCheckpoint, CorruptLog
from quorate.quorum.log.names import PartitionName, stray_directory_name
from quorate.quorum.seams import Disk

logger = logging.getLogger("quorate.broker.replication")


class UnopenedDirectories:
    """Those that nobody has opened yet."""

    def __init__(
        self,
        disk: Disk,
        log_dir: str,
        unique: Callable[[], str],
        forget: Callable[[PartitionName], None],
    ) -> None:
        """`forget` is told what was set aside."""
        self._disk = disk
        self._log_dir = log_dir
        self._unique = unique
        self._forget = forget
        self._names: dict[PartitionName, None] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: PartitionName) -> bool:
        return name in self._names

    def add(self, name: PartitionName) -> None:
        self._names[name] = None

    def adopt(self, name: PartitionName, topic_id: Uuid, *, peers_have_it: bool) -> bool:
        """True when a directory of that very topic is there. Raises CorruptCheckpoint."""
        if name not in self._names:
            return False
        directory = f"{self._log_dir}/{name}"
        if topic_of(self._disk, directory, topic_id, peers_have_it=peers_have_it) == topic_id:
            return True
        self._set_aside(name)
        del self._names[name]
        return False

    def opened(self, name: PartitionName) -> None:
        """Until then it counts among those that the end of the node finds unread."""
        self._names.pop(name, None)

    def set_aside_all(self) -> None:
        for name in list(self._names):
            self._set_aside(name)
            del self._names[name]

    def _set_aside(self, name: PartitionName) -> None:
        target = stray_directory_name(name, self._unique())
        logger.warning(
            "%s in %s belongs to no replica of this broker: set aside as %s",
            name,
            self._log_dir,
            target,
        )
        self._disk.rename(f"{self._log_dir}/{name}", f"{self._log_dir}/{target}")
        self._forget(name)


def topic_of(disk: Disk, directory: str, expected: Uuid, *, peers_have_it: bool) -> Uuid | None:
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
        reason = (
            f"it is gone, and was flushed up to offset {recovery_point} (to give that up, take its "
            f"line out of {checkpoints.RECOVERY_POINTS_NAME})"
        )
        raise CorruptLog(directory, 0, 0, reason)

"""The failure of a log directory: only its own partitions become unavailable (KIP-112, KIP-858).

When a disk call fails for a file below a log directory, the following happens:

1. The directory is marked as failed. Nothing is flushed, checkpointed or placed there any more.
2. The broker reports the directory to the controller, which moves leaderships and ISRs.
3. The partitions in the directory are removed, in slices. Their requests fail with
   KAFKA_STORAGE_ERROR, and so do all later ones.
4. The files are closed.

The directory comes back only with a restart. The node stops instead if the metadata directory
fails, or the last log directory (`broker/logs/directory_choice.py`). It also stops after any other
error than that of a disk call, such as damaged records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from quorate.broker.logs.log_manager import LogManager
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.ids import Uuid
from quorate.quorum.log.disks.disk_failures import explained
from quorate.quorum.seams import Clock

REMOVED_PER_SLICE = 100
"""Maximum number of partitions that one loop iteration removes."""

logger = logging.getLogger("quorate.broker.replication")


@dataclass(frozen=True, slots=True)
class BrokerDirectories:
    """The identities of a broker's log directories.

    `ids` has the id of each directory that is online at the start. None means that all are online
    and that their ids do not matter. `on_offline` gets the path of each directory that fails
    later. `assign` reports the directory of a replica, and calls back when the controller has
    committed it (`AssignmentSender.assign`)."""

    ids: Mapping[str, Uuid] | None = None
    metadata_dir: str = ""
    on_offline: Callable[[str], None] = lambda path: None
    assign: Callable[[Key, Uuid, Callable[[], None]], None] = lambda key, directory, done: None


NO_DIRECTORIES = BrokerDirectories()


class OfflineDirectories:
    """The directories of one broker that have failed. The event loop owns it."""

    def __init__(
        self,
        clock: Clock,
        registry: PartitionRegistry,
        logs: LogManager,
        take_offline: Callable[[HostedPartition], None],
        on_offline: Callable[[str], None],
    ) -> None:
        """`take_offline` removes a partition. `on_offline` reports the path of a directory."""
        self._clock = clock
        self._registry = registry
        self._logs = logs
        self._take_offline = take_offline
        self._on_offline = on_offline

    def survives(self, error: BaseException) -> bool:
        """Return True if `error` costs only one log directory, and take that offline. Return False
        if the node must stop. Later errors of the same directory change nothing.

        On return the partitions of the directory are still there. They are removed in later
        iterations of the event loop."""
        path = self._logs.failed_directory(error)
        if path is None:
            return False
        if path in self._logs.online:
            logger.error(
                "log directory %s has failed and is offline until this broker is restarted: %s "
                "The partitions in the other directories are not affected",
                path,
                explained(error),
                extra={"event": "directory-failed"},
            )
            self._logs.begin_failure(path)
            self._clock.call_soon(lambda: self._report(path))
        return True

    def _report(self, path: str) -> None:
        self._on_offline(path)
        self._remove(path, iter(list(self._registry)))

    def _remove(self, path: str, remaining: Iterator[HostedPartition]) -> None:
        """Remove the next partitions of the directory. Close its files after the last one."""
        some = list(islice(remaining, REMOVED_PER_SLICE))
        for hosted in some:
            name = hosted.name
            if not hosted.gone and self._logs.home_of(name) == path:
                self._take_offline(hosted)
        if some:
            self._clock.call_soon(lambda: self._remove(path, remaining))
        else:
            names = self._logs.take_offline(path)
            logger.error("%d logs in %s are offline", len(names), path)

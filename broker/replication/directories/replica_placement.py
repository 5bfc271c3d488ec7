"""The log directories of this broker's replicas: where a replica is opened, and what the controller
must know about that (KIP-858).

The metadata names the directory of each replica. If it names another one than that of the open log,
or none, the broker reports the directory. A replica whose log may be in a directory that is offline
is not opened. Its requests fail with KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorate.broker.logs.log_manager import LogManager
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.partition_opener import OpenRequest, PartitionOpener
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.directory_ids import LOST, MIGRATING, UNASSIGNED
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata import image as images
from quorate.quorum.metadata.replica_directories import replica_directory

logger = logging.getLogger("quorate.broker.replication")


class ReplicaPlacement:
    """The placement of one broker's replicas. The event loop owns it."""

    def __init__(
        self,
        registry: PartitionRegistry,
        logs: LogManager,
        opening: PartitionOpener,
        broker_id: int,
        assign: Callable[[Key, Uuid, Callable[[], None]], None],
    ) -> None:
        """`assign` reports the directory of a replica to the controller, and calls back later."""
        self._registry = registry
        self._logs = logs
        self._opening = opening
        self._broker_id = broker_id
        self._assign = assign

    def is_available(self, wanted: OpenRequest, *, is_new: bool) -> bool:
        """Return True if the replica can be opened. Otherwise note that it is offline. `is_new` is
        True unless the first image has the partition."""
        if self._opening.place(wanted, is_new=is_new) is not None:
            return True
        self._registry.offline[wanted.key] = None
        recorded = replica_directory(wanted.value, self._broker_id)
        if recorded in (MIGRATING, UNASSIGNED) or recorded in self._logs.ids_online:
            # The controller would take the replica for online.
            self._assign(wanted.key, LOST, lambda: None)
        logger.error(
            "%s is offline on this broker, because its log may be in a log directory that is "
            "offline",
            wanted.name,
        )
        return False

    def check(self, hosted: HostedPartition, value: images.Partition) -> None:
        """Report the log directory of a replica if the metadata names another one or none. A move
        that has reported its target reports the directory itself."""
        if hosted.promised:
            return
        recorded = replica_directory(value, self._broker_id)
        if recorded != self._logs.sole_id:
            actual = self._logs.id_of(hosted.name)
            if actual is not None and actual != recorded:
                self._assign(hosted.key, actual, lambda: None)

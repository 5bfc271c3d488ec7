"""The log directories of this broker's replicas: where a replica is opened, and what the controller
must know about that (KIP-858).

The metadata names the directory of each replica. If it names another one than that of the open log,
or none, the broker reports the directory. A replica whose log may be in a directory that is offline
is not opened. Its requests fail with KAFKA_STORAGE_ERROR.

One such replica may get a second log: the metadata names no directory for it, and other brokers
have all acknowledged records. The broker first reports an online directory, and makes the log when
the metadata names that directory. If a later start finds both logs, the name says which one counts.
Without the name it could not decide, and would refuse to start (`found_logs.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorate.broker.logs.directory_choice import with_fewest_logs
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
        recorded = replica_directory(wanted.value, self._broker_id)
        second = self._second(wanted) if recorded == UNASSIGNED else None
        self._registry.offline[wanted.key] = second
        if second is not None:
            self._assign(wanted.key, second, lambda: None)
            logger.warning(
                "the log of %s may be in a log directory that is offline; the broker copies the "
                "partition from other brokers when the metadata names the new directory",
                wanted.name,
            )
            return False
        if recorded in (MIGRATING, UNASSIGNED) or recorded in self._logs.ids_online:
            # The controller would take the replica for online.
            self._assign(wanted.key, LOST, lambda: None)
        logger.error(
            "%s is offline on this broker, because its log may be in a log directory that is "
            "offline",
            wanted.name,
        )
        return False

    def _second(self, wanted: OpenRequest) -> Uuid | None:
        """Return the directory for a second log of a partition, or None if there must be none: the
        first log is known to be in a directory that is offline, or may be the only copy."""
        if wanted.name in self._logs.found.hidden or not self._opening.peers_have_it(wanted):
            return None
        return with_fewest_logs(self._logs.candidates()).directory_id

    def stays_offline(self, key: Key, value: images.Partition) -> bool:
        """Return True if the replica is offline, also with the metadata `value`."""
        if key not in self._registry.offline:
            return False
        second = self._registry.offline[key]
        if second is None or replica_directory(value, self._broker_id) != second:
            return True
        del self._registry.offline[key]
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

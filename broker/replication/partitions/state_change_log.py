"""Log lines about the metadata changes on which this broker acts (Kafka's state-change.log).

The counts of the changes are logged at most once in SUMMARY_INTERVAL_MS. With
`quorate.state.change.log.enable`, the logger `state.change` also gets a line for each partition,
which `quorate state-changes merge` reads. Without it, a change costs an entry of a dictionary."""

from __future__ import annotations

import logging
from collections import Counter

from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.metadata.image import Partition
from quorate.quorum.seams import Clock, Timer

SUMMARY_INTERVAL_MS = 1000
LED, FOLLOWED, UPDATED, REMOVED = "led", "followed", "updated", "removed"
"""The changes of a partition. A summary counts each partition once, by its last change. An update
does not replace another change."""

logger = logging.getLogger("quorate.broker.replication")
partition_logger = logging.getLogger("state.change")


class StateChangeLog:
    """The changes since the last summary. The event loop owns it."""

    def __init__(self, clock: Clock, hosted: PartitionRegistry, *, every_partition: bool) -> None:
        """`hosted` are the open partitions. If `every_partition`, write a line for each change."""
        self._clock = clock
        self._hosted = hosted
        self._every_partition = every_partition
        self._changes: dict[Key, str] = {}
        self._end_offset = 0
        self._timer: Timer | None = None

    def role_taken(
        self, hosted: HostedPartition, value: Partition, end_offset: int, *, new_epoch: bool
    ) -> None:
        """Note that the replica has taken the role that `value` gives it. `end_offset` is the end
        of the applied metadata. `new_epoch` is True if a new leader epoch begins."""
        leads = hosted.partition.leadership is not None
        if new_epoch:
            self._changes[hosted.key] = LED if leads else FOLLOWED
        else:
            self._changes.setdefault(hosted.key, UPDATED)
        self._note(end_offset)
        if self._every_partition:
            role = "leads" if leads else f"follows {broker_name(value.leader)}"
            partition_logger.info(
                "partition %s-%d: this broker %s %s leader epoch %d, partition epoch %d, isr %s, "
                "adding %s, removing %s, log %d to %d, high watermark %d; metadata below %d",
                hosted.topic,
                hosted.key[1],
                role,
                "from" if new_epoch else "still in",
                value.leader_epoch,
                value.partition_epoch,
                list(value.isr),
                list(value.adding),
                list(value.removing),
                hosted.log.start_offset,
                hosted.log.end_offset,
                hosted.partition.high_watermark,
                end_offset,
            )

    def removed(self, hosted: HostedPartition, end_offset: int) -> None:
        """Note that this broker has removed its replica."""
        self._changes[hosted.key] = REMOVED
        self._note(end_offset)
        if self._every_partition:
            partition_logger.info(
                "partition %s-%d: this broker removes its replica, log %d to %d; metadata below %d",
                hosted.topic,
                hosted.key[1],
                hosted.log.start_offset,
                hosted.log.end_offset,
                end_offset,
            )

    def close(self) -> None:
        """Write the counts that are left, and cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._summarize()

    def _note(self, end_offset: int) -> None:
        self._end_offset = end_offset
        if self._timer is None:
            self._timer = self._clock.call_later(SUMMARY_INTERVAL_MS, self._summarize)

    def _summarize(self) -> None:
        self._timer = None
        leads = sum(each.partition.leadership is not None for each in self._hosted)
        counts = Counter(self._changes.values())
        logger.info(
            "acted on the metadata below offset %d: of its partitions, this broker leads %d and "
            "follows %d from a new epoch, updates %d, and removes %d. It now leads %d and follows "
            "%d",
            self._end_offset,
            *(counts[each] for each in (LED, FOLLOWED, UPDATED, REMOVED)),
            leads,
            len(self._hosted) - leads,
            extra={"event": "roles-taken"},
        )
        self._changes.clear()


def broker_name(broker_id: int) -> str:
    """Return the leader as text."""
    return f"broker {broker_id}" if broker_id >= 0 else "no leader"

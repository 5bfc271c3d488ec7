"""A hosted partition as the log cleaner sees it (`broker/logs/compacted_log.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.broker.compaction.cleanable import CompactionSettings
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.log import Log


@dataclass(frozen=True, slots=True)
class CompactedPartition:
    """The view of one hosted partition. The event loop owns it."""

    hosted: HostedPartition
    load_producers: Callable[[HostedPartition], None]
    """Begins to load the producer states of a partition."""

    @property
    def name(self) -> PartitionName:
        """Return the name of the partition's directory."""
        return self.hosted.name

    @property
    def log(self) -> Log:
        """Return the open log."""
        return self.hosted.log

    @property
    def settings(self) -> CompactionSettings | None:
        """Return the settings of compaction, or None once the topic is not compacted any more, the
        replica was removed, or it is being moved to another log directory."""
        settings, hosted = self.hosted.partition.settings, self.hosted
        is_cleaned = settings.compacted and not (hosted.gone or hosted.moving)
        return settings.compaction if is_cleaned else None

    @property
    def deletes(self) -> bool:
        """Return True if cleanup.policy contains delete, too."""
        return self.hosted.partition.settings.deletes

    @property
    def high_watermark(self) -> int:
        """Return the high watermark of the replica."""
        return self.hosted.partition.high_watermark

    def ready(self) -> bool:
        """Return True if the producer states are known. Otherwise begin to load them."""
        if self.hosted.partition.producers.loaded is None:
            self.load_producers(self.hosted)
            return False
        return True

    def last_batches(self, end_offset: int, found: dict[int, int]) -> IncrementalWork[None] | None:
        """Return the steps that put the last offset of the newest batch below `end_offset` of each
        active producer into `found`, or None if the producer states are not known."""
        states = self.hosted.partition.producers.loaded
        return None if states is None else states.last_offsets_below(end_offset, found)

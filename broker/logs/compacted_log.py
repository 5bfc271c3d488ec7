"""The view that the log cleaner has of one compacted partition."""

from __future__ import annotations

from typing import Protocol

from quorate.broker.compaction.cleanable import Cleanable, CompactionSettings, cleanable
from quorate.broker.compaction.cleaning import Cleaning, CleaningPlan
from quorate.broker.compaction.log_cleaning import source_of
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.seams import Disk


class CompactedLog(Protocol):
    """An open partition of this broker whose cleanup.policy contains compact."""

    @property
    def name(self) -> PartitionName:
        """The name of its directory."""

    @property
    def log(self) -> Log:
        """The open log."""

    @property
    def settings(self) -> CompactionSettings | None:
        """The settings of compaction, or None once the topic is not compacted any more or the
        replica was removed."""

    @property
    def deletes(self) -> bool:
        """True if cleanup.policy contains delete, too."""

    @property
    def high_watermark(self) -> int:
        """The high watermark."""

    def ready(self) -> bool:
        """Return True if the producer states are known. Otherwise begin to load them."""

    def last_batches(self, end_offset: int, found: dict[int, int]) -> IncrementalWork[None] | None:
        """Return the steps that put the last offset of the newest batch below `end_offset` of each
        active producer into `found`, or None if the producer states are not known."""


def range_of(
    partition: CompactedLog, settings: CompactionSettings, checkpoint: int | None, wall_ms: int
) -> Cleanable:
    """Return the range of the log that may be cleaned. Raise CorruptLog or OSError."""
    log = partition.log
    return cleanable(
        log.sealed_segments,
        settings,
        checkpoint=checkpoint,
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        high_watermark=partition.high_watermark,
        flushed_offset=log.flushed_offset,
        active_base_offset=log.active_base_offset,
        wall_ms=wall_ms,
    )


def cleaning_of(
    disk: Disk,
    partition: CompactedLog,
    settings: CompactionSettings,
    cleaner: CleanerSettings,
    found: Cleanable,
    wall_ms: int,
) -> tuple[Cleaning, IncrementalWork[None], list[Segment]] | None:
    """Return the cleaning of the range `found`, the steps that prepare it on the event loop, and
    the segments that it cleans.

    Return None if the producer states are not known yet: without them, the last batch of a producer
    could be lost, and with it the proof that a retry is a repetition."""
    log = partition.log
    last_batches: dict[int, int] = {}
    steps = partition.last_batches(found.first_uncleanable, last_batches)
    if steps is None:
        return None
    segments = [each for each in log.sealed_segments if each.next_offset <= found.first_uncleanable]
    dirty = tuple(source_of(each) for each in segments if each.next_offset > found.first_dirty)
    plan = CleaningPlan(
        directory=log.directory,
        index_interval_bytes=log.settings.index_interval_bytes,
        dirty=dirty,
        first_dirty=found.first_dirty,
        now_ms=wall_ms,
        delete_retention_ms=settings.delete_retention_ms,
        map_bytes=cleaner.map_bytes,
        load_factor=cleaner.load_factor,
        buffer_bytes=cleaner.buffer_bytes,
        epoch_of=log.epochs_now(),
        last_batches=last_batches,
    )
    return Cleaning(disk, plan), steps, segments

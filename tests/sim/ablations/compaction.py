"""Safeguards of the log cleaner: the records that it may remove, and the order in which it replaces
segments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quorate.broker.compaction import batch_filter, cleaning
from quorate.broker.compaction.batch_filter import Retention
from quorate.broker.compaction.cleanable import Cleanable, CompactionSettings, cleanable
from quorate.broker.compaction.offset_map import OffsetMap
from quorate.broker.compaction.record_spans import RecordSpan
from quorate.broker.logs import compacted_log
from quorate.broker.logs.cleaner_worker import CleanerWorker
from quorate.broker.logs.compacted_log import CompactedLog
from quorate.broker.logs.offset_checkpoints import OffsetCheckpoints
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.files.names import DELETED_SUFFIX
from quorate.quorum.log.segments.segment_swap import SegmentSwap
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.storage_scripts import on_brokers
from tests.sim.ablations.stories import Script
from tests.unit.compaction import test_property, test_unreadable_batches
from tests.unit.replication import test_log_cleaner

_kept = Retention.kept
_begin_cleaning = CleanerWorker._begin
_cleanable = cleanable
_begin = SegmentSwap.begin


def crashes_during_cleanings() -> None:
    test_property.test_a_crash_at_every_disk_call_of_a_history_keeps_the_latest_values(0, 1)


def checkpoint_behind_the_replacements() -> None:
    on_brokers(test_log_cleaner.test_the_checkpoint_is_raised_behind_the_last_replacement)


def unflushed_tail() -> None:
    test_property.test_a_crash_between_two_replacements_loses_no_key_of_the_unflushed_tail(0)


def raise_the_checkpoint_first(
    self: CleanerWorker, partition: CompactedLog, found: Cleanable, settings: CompactionSettings
) -> bool:
    self._cleaner.logs.checkpoint_cleaned(partition.name, found.first_uncleanable)
    return _begin_cleaning(self, partition, found, settings)


def clean_unflushed_segments(*arguments: Any, **named: Any) -> Cleanable:
    named["flushed_offset"] = named["end_offset"]
    return _cleanable(*arguments, **named)


def unreadable_batch() -> None:
    test_unreadable_batches.test_the_keys_before_the_fault_of_a_batch_remove_nothing(50, Codec.NONE)


def truncations_during_cleanings() -> None:
    test_property.test_an_unclean_truncation_at_any_moment_is_not_undone_by_the_next_start(0)


def truncation_below_the_checkpoint() -> None:
    on_brokers(test_log_cleaner.test_a_truncation_lowers_the_checkpoint_before_it_removes_records)


def retry_after_a_cleaning() -> None:
    on_brokers(test_log_cleaner.test_the_last_batch_of_an_idempotent_producer_stays)


def drop_tombstones_at_once(
    self: Retention, spans: Iterable[RecordSpan], base_offset: int, *, tombstones: bool
) -> list[RecordSpan]:
    return _kept(self, spans, base_offset, tombstones=False)


def rename_the_sources_first(self: SegmentSwap) -> None:
    for source in self.sources:
        self._disk.rename(source.path, source.path + DELETED_SUFFIX)
        source.path += DELETED_SUFFIX
    _begin(self)


ABLATIONS = (
    Ablation(
        "delete-horizon",
        "a tombstone stays for delete.retention.ms, so that readers that began before it see it",
        Retention,
        "kept",
        drop_tombstones_at_once,
        Script(test_property.test_a_reader_that_began_before_a_tombstone_sees_it),
        "if value is not None} == latest(",
    ),
    Ablation(
        "swap-order",
        "the cleaned segment is named `.swap` before its sources are renamed",
        SegmentSwap,
        "begin",
        rename_the_sources_first,
        Script(crashes_during_cleanings),
        "no batch up to",
    ),
    Ablation(
        "cleaned-fsync",
        "a cleaned segment is on the disk before it replaces other segments",
        cleaning,
        "seal",
        lambda disk, directory, cleaned: cleaned.seal(),
        Script(crashes_during_cleanings),
        "has magic 0",
    ),
    Ablation(
        "cancelled-swap",
        "a replacement of segments that has begun is cancelled durably before a truncation",
        SegmentSwap,
        "cancel",
        lambda self: None,
        Script(truncations_during_cleanings),
        "replica.read() == found",
    ),
    Ablation(
        "cleaner-checkpoint",
        "the checkpoint of the cleaner is lowered durably before a truncation",
        OffsetCheckpoints,
        "lower_cleaner_offset",
        lambda self, name, offset: None,
        Script(truncation_below_the_checkpoint),
        "all(each[T0] == log.end_offset",
    ),
    Ablation(
        "checkpoint-after-replacements",
        "the cleaner raises its checkpoint only when all replacements are durable",
        CleanerWorker,
        "_begin",
        raise_the_checkpoint_first,
        Script(checkpoint_behind_the_replacements),
        "len(keys) == len(set(keys))",
    ),
    Ablation(
        "cleaning-of-flushed-segments",
        "the cleaner removes an earlier record only if the later one is on the disk",
        compacted_log,
        "cleanable",
        clean_unflushed_segments,
        Script(unflushed_tail),
        "latest(found) == latest(self.written)",
    ),
    Ablation(
        "offset-gaps",
        "a compacted log is marked durably before an offset is missing for the first time",
        cleaning,
        "allow_gaps",
        lambda disk, directory: None,
        Script(crashes_during_cleanings),
        "the batch has base offset",
    ),
    Ablation(
        "keys-of-an-unreadable-batch",
        "the cleaner discards the keys of a batch that turns out to be unreadable",
        OffsetMap,
        "discard",
        lambda self: self.commit(self.latest_offset),
        Script(unreadable_batch),
        "readable(replica) == before",
    ),
    Ablation(
        "last-batch-of-a-producer",
        "the cleaner keeps the last batch of each active producer, so that a retry is recognized",
        batch_filter,
        "_keeps_empty",
        lambda header, retention, *, last: last,
        Script(retry_after_a_cleaning),
        "[(0, 4)]",
    ),
)

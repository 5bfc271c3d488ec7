"""Safeguards of disks: the moments at which data is durable, and the checks of a directory that a
node opens."""

from __future__ import annotations

from quorate.broker.logs.log_directory import LogDirectory
from quorate.broker.logs.offset_checkpoints import OffsetCheckpoints
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log import log_reader
from quorate.quorum.log.files.flushed_marker import FlushedMarker
from quorate.quorum.log.files.names import PART_SUFFIX, TEMPORARY_SUFFIX
from quorate.quorum.log.log import Log
from quorate.quorum.log.opening import recovery
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.log.snapshots.snapshots import SnapshotFiles
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node.replica import snapshot_generator
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from tests.sim.ablations import storage_scripts as scripts
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import Script
from tests.unit.log import test_faults, test_recovery
from tests.unit.log.batches import delete_expired

_begin = snapshot_generator.SnapshotGenerator._begin


def save_without_sync(self: ElectionFile, election: Election) -> None:
    for name, content in self._contents(election).items():
        file = self._disk.open(self._path(name) + TEMPORARY_SUFFIX, create=True)
        file.truncate(0)
        file.pwrite(content, 0)
        file.close()
        self._disk.rename(self._path(name) + TEMPORARY_SUFFIX, self._path(name))


def freeze_without_sync(self: SnapshotFiles, snapshot: EpochOffset) -> int:
    size = self._part(snapshot).size()
    self.disk.rename(self.path(snapshot) + PART_SUFFIX, self.path(snapshot))
    self.disk.sync_dir(self.directory)
    return size


def cut_before_it_is_written(
    self: snapshot_generator.SnapshotGenerator, image: MetadataImage
) -> None:
    _begin(self, image)
    end_offset = image.last.offset + 1
    self._log.advance_start(end_offset)
    delete_expired(self._log, high_watermark=end_offset, wall_ms=self._clock.wall_ms())


ABLATIONS = (
    Ablation(
        "vote-fsync",
        "an election is on the disk when it counts as saved",
        ElectionFile,
        "save",
        save_without_sync,
        Script(scripts.election_after_a_power_cut),
        "after a power cut",
    ),
    Ablation(
        "log-fsync",
        "records that count as flushed are on the disk",
        Segment,
        "sync",
        lambda self: None,
        Script(scripts.power_cuts_while_a_log_is_written),
        "entries(node.open()) == expected",
    ),
    Ablation(
        "torn-tail",
        "a node distinguishes a torn write at the end of a log from damage, and cuts it off",
        recovery,
        "is_torn",
        lambda segment, position, offset: False,
        Script(scripts.power_cuts_while_a_log_is_written),
        "damaged at byte",
    ),
    Ablation(
        "durable-truncation",
        "truncated records do not come back among the records that follow them",
        Log,
        "_after_truncation",
        lambda self: None,
        Script(test_recovery.test_a_truncation_of_the_metadata_log_is_durable_at_once),
        "node.open().end_offset == 3",
    ),
    Ablation(
        "lowered-marker",
        "the flushed marker is lowered durably before a truncation",
        FlushedMarker,
        "lower_to",
        lambda self, offset: None,
        Script(scripts.power_cuts_while_a_log_is_written),
        "but was flushed up to offset",
    ),
    Ablation(
        "flush-messages",
        "records that are acknowledged under flush.messages are on the disks of all ISR members",
        Log,
        "must_flush",
        property(lambda self: False),
        Script(scripts.power_cuts_after_acknowledged_flushes),
        "acknowledged records are lost",
    ),
    Ablation(
        "trimmed-segment",
        "the end of a preallocated segment is on the disk before the flushed offset passes it",
        Log,
        "_roll",
        lambda self, wall_ms: self._segments.roll(self.end_offset, wall_ms, self.settings),
        Script(scripts.power_cuts_after_preallocated_segments_rolled),
        "damaged at byte",
    ),
    Ablation(
        "flushed-marker",
        "a node refuses a log that is shorter than its flushed marker says",
        recovery.LogRecovery,
        "_require_flushed",
        lambda self: None,
        Script(test_recovery.test_a_metadata_log_that_somebody_shortened_is_refused),
        "DID NOT RAISE",
    ),
    Ablation(
        "write-again",
        "a node writes the records again that a failed fsync left in the page cache, before it "
        "counts them (R45)",
        recovery.LogRecovery,
        "write_again",
        lambda self: None,
        Script(test_faults.test_what_a_failed_fsync_left_in_the_page_cache_is_not_believed),
        "[: len(acknowledged)] == acknowledged",
    ),
    Ablation(
        "lowered-recovery-point",
        "the recovery point of a partition is lowered durably before a truncation",
        OffsetCheckpoints,
        "lower_recovery_point",
        lambda self, name, offset: None,
        Script(scripts.crashes_while_a_partition_is_cut),
        "but was flushed up to offset",
    ),
    Ablation(
        "checked-reads",
        "a batch that differs from the appended one is sent to no reader",
        log_reader,
        "check_read",
        lambda *arguments, **options: None,
        Script(scripts.damage_below_the_recovery_point_is_read),
        "it was handed out",
    ),
    Ablation(
        "distrusted-log",
        "the next start reads a log in which damage was found, and repairs it",
        LogDirectory,
        "distrust",
        lambda self, damage: None,
        Script(scripts.damage_below_the_recovery_point_is_read),
        "damaged at byte",
    ),
    Ablation(
        "snapshot-fsync",
        "a snapshot gets its name only when all of it is on the disk",
        SnapshotFiles,
        "freeze",
        freeze_without_sync,
        Script(scripts.power_cuts_while_snapshots_are_taken),
        "it ends without a footer",
    ),
    Ablation(
        "snapshot-before-cut",
        "the head of the log is removed only behind a durable snapshot",
        snapshot_generator.SnapshotGenerator,
        "_begin",
        cut_before_it_is_written,
        Script(scripts.power_cuts_while_snapshots_are_taken),
        "no snapshot holds the records before",
    ),
)

"""The four offsets of each partition that the broker keeps in Kafka's checkpoint files.

| file                               | offset of a partition                   | at a start        |
|------------------------------------|-----------------------------------------|-------------------|
| `recovery-point-offset-checkpoint` | the log was flushed up to here          | recovery starts   |
| `log-start-offset-checkpoint`      | the log starts here (DeleteRecords)     | log start offset  |
| `replication-offset-checkpoint`    | a high watermark, perhaps an old one    | high watermark    |
| `cleaner-offset-checkpoint`        | the log cleaner has compacted up to it  | first dirty       |

Rules:

- A recovery point never exceeds the flushed offset. It is lowered durably before a truncation
  removes records below it, because a log that ends below its recovery point counts as damaged.
- A high watermark is lowered durably in the same way.
- A log start offset is lowered durably before a log begins again below it. A start after a crash
  deletes everything below the checkpointed offset.
- A cleaner offset is raised only after the compacted segments are durably in place. It is lowered
  durably before a truncation. Records below it count as compacted: a tombstone among them may be
  removed while an earlier record of its key is still there.
- The offsets of a deleted partition are removed durably before another partition gets its name.

The event loop owns the maps. At the end, `write_all` runs in the disk's thread, after the loop has
stopped changing them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from quorate.broker.logs.checkpoint_files import CheckpointFiles
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.seams import Disk

logger = logging.getLogger("quorate.broker.replication")


class OffsetCheckpoints:
    """The checkpointed offsets of one log directory, in memory and on the disk."""

    def __init__(self, disk: Disk, log_dir: str) -> None:
        """Begin without offsets; `read` loads the files."""
        self.high_watermarks: dict[PartitionName, int] = {}
        self.recovery_points: dict[PartitionName, int] = {}
        self.start_offsets: dict[PartitionName, int] = {}
        self.cleaner_offsets: dict[PartitionName, int] = {}
        self._disk = disk
        self._log_dir = log_dir
        self._files = CheckpointFiles(disk, log_dir)
        self._written: dict[str, dict[PartitionName, int]] = {}
        self._removals = 0
        self._removed: dict[str, dict[PartitionName, int]] = {each: {} for each in self._by_file}
        """By file, the removed partitions whose offsets it may still have, and the number of each
        removal."""

    def read(self) -> None:
        """Load the four files. Blocks. A damaged file counts as empty: the start reads more, and
        without the log start offsets, deleted records may be readable again."""
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARKS_NAME)
        self.recovery_points = self._read(checkpoints.RECOVERY_POINTS_NAME)
        self.start_offsets = self._read(checkpoints.START_OFFSETS_NAME)
        self.cleaner_offsets = self._read(checkpoints.CLEANER_OFFSETS_NAME)

    def _read(self, checkpoint: str) -> dict[PartitionName, int]:
        try:
            return checkpoints.read_offsets(self._disk, self._log_dir, checkpoint)
        except CorruptCheckpoint as error:
            # A broker that refused to start would lose more than these offsets are worth.
            logger.warning("%s. The broker starts without the offsets of this file", error)
            return {}

    def lower_recovery_point(self, name: PartitionName, offset: int) -> None:
        """Lower the recovery point to `offset` durably. Do nothing if it is not above `offset`.

        Blocks for the fsync of a small file, because the truncation must not come first."""
        self._lower(checkpoints.RECOVERY_POINTS_NAME, name, offset)

    def lower_high_watermark(self, name: PartitionName, offset: int) -> None:
        """Lower the high watermark to `offset` durably. Do nothing if it is not above `offset`.

        Blocks for the fsync. Only an unclean election makes a follower truncate below its high
        watermark."""
        self._lower(checkpoints.HIGH_WATERMARKS_NAME, name, offset)

    def lower_start_offset(self, name: PartitionName, offset: int) -> None:
        """Lower the log start offset to `offset` durably. Do nothing if it is not above `offset`.

        Blocks for the fsync. A log begins again below its start only after an unclean election."""
        self._lower(checkpoints.START_OFFSETS_NAME, name, offset)

    def lower_cleaner_offset(self, name: PartitionName, offset: int) -> None:
        """Lower the cleaner offset to `offset` durably. Do nothing if it is not above `offset`.

        Blocks for the fsync, because the truncation must not come first."""
        self._lower(checkpoints.CLEANER_OFFSETS_NAME, name, offset)

    def _lower(self, checkpoint: str, name: PartitionName, offset: int) -> None:
        offsets = self._by_file[checkpoint]
        if offsets.get(name, 0) > offset:
            offsets[name] = offset
            self._files.write(checkpoint, offsets)
            self._written.pop(checkpoint, None)  # the file differs from what was submitted last

    def remove(self, name: PartitionName) -> None:
        """Remove the offsets of `name` from memory. The files follow with their next write."""
        self._removals += 1
        for checkpoint, offsets in self._by_file.items():
            if offsets.pop(name, None) is not None:
                self._removed[checkpoint][name] = self._removals

    def require_removed(self, name: PartitionName) -> None:
        """Make the removal of `name` durable if it is not. Blocks.

        Otherwise a crash would let a new log of this name be opened with the offsets of the old
        one."""
        if any(name in removed for removed in self._removed.values()):
            self.write_all()
            self._written.clear()
            for removed in self._removed.values():
                removed.clear()

    def submit(self, checkpoint: str, done: Callable[[None, BaseException | None], None]) -> None:
        """Write one file in the disk's thread, and call `done` on the event loop afterwards. Do
        nothing, and do not call `done`, if its offsets are those that were submitted last."""
        offsets = self._by_file[checkpoint]
        if self._written.get(checkpoint) == offsets:
            return
        copy = self._written[checkpoint] = dict(offsets)
        removals = self._removals

        def written(_: None, error: BaseException | None) -> None:
            if error is None:
                removed = self._removed[checkpoint]
                for name in [each for each, number in removed.items() if number <= removals]:
                    del removed[name]
            done(None, error)

        self._disk.submit(self._files.writing(checkpoint, copy), written)

    def submit_high_watermarks(
        self,
        offsets: Iterable[tuple[PartitionName, int]],
        done: Callable[[None, BaseException | None], None],
    ) -> None:
        """Take over these high watermarks, and write their file as `submit` does."""
        self.high_watermarks.update(offsets)
        self.submit(checkpoints.HIGH_WATERMARKS_NAME, done)

    def write_all(self) -> None:
        """Write the four files durably. Blocks."""
        for checkpoint, offsets in self._by_file.items():
            self._files.write(checkpoint, offsets)

    @property
    def _by_file(self) -> dict[str, dict[PartitionName, int]]:
        return {
            checkpoints.HIGH_WATERMARKS_NAME: self.high_watermarks,
            checkpoints.RECOVERY_POINTS_NAME: self.recovery_points,
            checkpoints.START_OFFSETS_NAME: self.start_offsets,
            checkpoints.CLEANER_OFFSETS_NAME: self.cleaner_offsets,
        }

"""Reads the metadata in the directories of stopped nodes, from which a quorum can be rebuilt.

Nothing is changed. The rules for a log are those of `storage verify`. A torn end ends the log.
Damage before a torn end is refused, because the records after it may have been committed. A damaged
snapshot is skipped in favor of an older one or of the log. A broker holds committed records only.
Its directory is therefore as good as a controller's. The log of a controller may also hold records
that were never committed. They are kept, because no directory alone shows which they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import BatchHeader
from quorate.quorum.log.checking.check_result import UNKNOWN, CheckResult, Kind
from quorate.quorum.log.checking.verify import LogCheck, LogExpectations, SegmentFile
from quorate.quorum.log.files.checkpoints import read_small
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME
from quorate.quorum.log.files.names import LOG_SUFFIX, offset_of
from quorate.quorum.log.segments.scan import scan
from quorate.quorum.log.snapshots.snapshots import SnapshotFiles, is_behind
from quorate.quorum.metadata.batches import MetadataBatch, metadata_batches
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.snapshot_file import CorruptSnapshot, read_snapshot
from quorate.quorum.node.opening.data_directory import METADATA_DIRECTORY
from quorate.quorum.node.opening.meta_properties import MetaProperties, StorageError, read_meta
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME
from quorate.quorum.raft.generation import GenerationFile, Rebuilds
from quorate.quorum.raft.quorum_state import decode_copy, decode_kafka
from quorate.quorum.seams import Disk

REPLAYED_AT_ONCE = 1000
"""Batches that are replayed in one call."""
NOTHING = EpochOffset(0, 0)
"""The end of an empty log."""


class DamagedSource(Exception):
    """The log of a source is damaged, not torn. The records after the damage are not known."""

    for_operator = True
    """The message says what the operator has to do."""

    def __init__(self, directory: str, damage: CheckResult) -> None:
        marker = f"remove {FLUSHED_MARKER_NAME} beside it"
        if damage.position != UNKNOWN:
            marker = f"`truncate --size {damage.position} {damage.path}`, and {marker}"
        super().__init__(
            f"{damage.path}: damaged at offset {damage.offset}: {damage.what}. The records "
            "after it "
            f"cannot be read. If another directory has a longer log, leave {directory} out. "
            "Otherwise "
            f"restore this file from a backup, or give up the unreadable records: {marker}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDirectory:
    """The metadata in one directory that was given to `force-voters`."""

    directory: str
    """The `log.dirs` or the `metadata.log.dir` of the node."""
    meta: MetaProperties
    rebuilds: Rebuilds
    """All rebuilds of its quorum. Their number is its generation."""
    highest_epoch: int
    """The highest epoch in its log and in the readable files of its election."""
    epochs: tuple[EpochOffset, ...]
    """The start of each leader epoch of its log. If the log begins after a snapshot of an older
    epoch, that snapshot's end comes first. If a snapshot replaces the log, its end is the only
    entry."""
    end: EpochOffset
    """The last epoch and the end offset of its log, or of the snapshot that replaces the log."""
    image: MetadataImage
    """The metadata at `end`."""

    @property
    def rank(self) -> tuple[int, EpochOffset]:
        """The key by which sources are compared: the generation, then the last epoch, then the end
        offset."""
        return len(self.rebuilds), self.end

    def end_of(self, epoch: int) -> int:
        """Return the offset at which `epoch` ended in this log: the start of the next epoch."""
        later = (each.offset for each in self.epochs if each.epoch > epoch)
        return next(later, self.end.offset)


def agreed_offset(one: SourceDirectory, other: SourceDirectory) -> int:
    """Return the offset up to which two logs are the same.

    Both logs have the same records of the latest epoch that both contain, up to the shorter end. If
    they have no epoch in common, one log is empty, or begins with a snapshot of a later epoch than
    the other log has. The result is then the lower end offset, which may be too high."""
    common = {each.epoch for each in one.epochs} & {each.epoch for each in other.epochs}
    if not common:  # one log is empty, or begins with a snapshot after the other's last epoch
        return min(one.end.offset, other.end.offset)
    epoch = max(common)
    return min(one.end_of(epoch), other.end_of(epoch))


def read_source(disk: Disk, directory: str) -> SourceDirectory:
    """Read the metadata in `directory`, the data directory of a stopped node. Block.

    If the node has no metadata directory yet, the result has an empty log. Raise StorageError if
    `directory` is not formatted or its identity is unreadable. Raise DamagedSource,
    GenerationFileError, LogError, MetadataError or OSError."""
    meta = read_meta(disk, directory)
    if meta is None:
        raise StorageError(
            f"{directory} holds no meta.properties. Give the directory that is the log.dirs (or "
            "metadata.log.dir) of a node"
        )
    metadata = f"{directory}/{METADATA_DIRECTORY}"
    if not disk.is_dir(metadata):
        return _empty(directory, meta)
    _require_whole(disk, directory, metadata)
    reading = _Reading(disk, metadata)
    reading.read()
    return SourceDirectory(
        directory=directory,
        meta=meta,
        rebuilds=GenerationFile(disk, metadata).load(),
        highest_epoch=max(reading.end.epoch, _election_epoch(disk, metadata)),
        epochs=tuple(reading.epochs),
        end=reading.end,
        image=reading.loader.image,
    )


def _require_whole(disk: Disk, directory: str, metadata: str) -> None:
    """Raise DamagedSource if the first fault of the log is damage and no torn write."""
    check = LogCheck(disk, metadata, LogExpectations(metadata=True))
    check.run()
    first = next((each for each in check.results if each.kind in (Kind.TORN, Kind.DAMAGED)), None)
    if first is not None and first.kind is Kind.DAMAGED:
        raise DamagedSource(directory, first)


def _empty(directory: str, meta: MetaProperties) -> SourceDirectory:
    return SourceDirectory(
        directory=directory,
        meta=meta,
        rebuilds=(),
        highest_epoch=0,
        epochs=(),
        end=NOTHING,
        image=MetadataImage(),
    )


def _election_epoch(disk: Disk, directory: str) -> int:
    """Return the epoch of the saved election, 0 if it cannot be read.

    The vote itself does not matter any more; only the epoch must not be used again."""
    found = []
    for name, decode in ((KAFKA_NAME, decode_kafka), (COPY_NAME, decode_copy)):
        content = read_small(disk, f"{directory}/{name}")
        found.append(None if content is None else decode(content))
    return max((each.epoch for each in found if isinstance(each, Election)), default=0)


class _Reading:
    """One pass over the snapshot and the log."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._names = disk.list(directory)
        self._snapshots = SnapshotFiles(disk, directory, self._names)
        self._batches: list[MetadataBatch] = []
        self.loader = Loader(MetadataImage())
        self.end = NOTHING
        self.epochs: list[EpochOffset] = []

    def read(self) -> None:
        """Read the snapshot and the log, and replay their records."""
        snapshot = self._load_snapshot() or NOTHING
        for header, batch in self._stored_batches():
            if not self.epochs or header.leader_epoch > self.epochs[-1].epoch:
                self.epochs.append(EpochOffset(header.leader_epoch, header.base_offset))
            self.end = EpochOffset(header.leader_epoch, header.next_offset)
            is_replaced = (
                header.leader_epoch < snapshot.epoch
            )  # the snapshot replaces or contains it
            if header.next_offset > self.loader.position and not is_replaced:
                self._replay(batch)
        earliest = self._snapshots.earliest
        if earliest is not None and self.epochs and earliest.epoch < self.epochs[0].epoch:
            self.epochs.insert(0, earliest)
        if is_behind(self.end, snapshot):
            self.end = snapshot
            self.epochs = [snapshot]
        self._replay_rest()

    def _load_snapshot(self) -> EpochOffset | None:
        for snapshot in reversed(list(self._snapshots)):
            try:
                contents = read_snapshot(snapshot, self._snapshots.chunks(snapshot))
            except CorruptSnapshot:
                continue  # an older snapshot and the log, or the log alone, give the same state
            self.loader = Loader(contents.image)
            return snapshot
        return None

    def _stored_batches(self) -> Iterator[tuple[BatchHeader, bytes]]:
        """Yield the stored batches up to the end or the torn end. There is no other damage."""
        found = (offset_of(each) for each in self._names if each.endswith(LOG_SUFFIX))
        bases = sorted(each for each in found if each is not None)
        offset = bases[0] if bases else 0
        for base in bases:
            if base != offset:
                return
            segment = SegmentFile(self._disk, self._directory, base)
            try:
                for position, header, intact in scan(segment):
                    if header is None or not intact or header.base_offset != offset:
                        return
                    yield header, segment.file.pread(header.size_bytes, position)
                    offset = header.next_offset
            finally:
                segment.file.close()

    def _replay(self, batch: bytes) -> None:
        self._batches.extend(metadata_batches(batch))
        if len(self._batches) >= REPLAYED_AT_ONCE:
            self._replay_rest()

    def _replay_rest(self) -> None:
        self.loader.feed(self._batches)
        self._batches.clear()

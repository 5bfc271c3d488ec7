"""What is left of the metadata in the directories of nodes that do not run, read without changing
anything.

A log is judged as by `storage verify`: a torn tail ends it, damage is refused, for what stands
behind it may have been committed. Brokers hold committed records only, so any of their directories
is as good as a controller's; what a controller's log has beyond what was committed is kept too, for
nobody can tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorate.quorum.ids import METADATA_TOPIC, EpochOffset
from quorate.quorum.log.batch import BatchHeader
from quorate.quorum.log.check_result import UNKNOWN, CheckResult, Kind
from quorate.quorum.log.checkpoints import read_small
from quorate.quorum.log.flushed_marker import FLUSHED_MARKER_NAME
from quorate.quorum.log.names import LOG_SUFFIX, offset_of
from quorate.quorum.log.scan import scan
from quorate.quorum.log.snapshots import SnapshotFiles, is_behind
from quorate.quorum.log.verify import Expected, LogCheck, SegmentFile
from quorate.quorum.metadata.batches import MetadataBatch, metadata_batches
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.snapshot_file import CorruptSnapshot, read_snapshot
from quorate.quorum.node.meta_properties import MetaProperties, StorageError, read_meta
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME
from quorate.quorum.raft.generation import GenerationFile, Rebuilds
from quorate.quorum.raft.quorum_state import decode_copy, decode_kafka
from quorate.quorum.seams import Disk

METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
REPLAYED_AT_ONCE = 1000
NOTHING = EpochOffset(0, 0)


class DamagedSource(Exception):
    """Its log is damaged, not torn: nobody can tell what it held behind that."""

    for_operator = True

    def __init__(self, directory: str, damage: CheckResult) -> None:
        marker = f"remove {FLUSHED_MARKER_NAME} beside it"
        if damage.position != UNKNOWN:
            marker = f"`truncate --size {damage.position} {damage.path}`, and {marker}"
        super().__init__(
            f"{damage.path}: damaged at offset {damage.offset}: {damage.what}. What stood behind "
            f"that cannot be read. If another directory goes further, leave {directory} out; if "
            f"none does, restore this file from a backup, or give up what cannot be read: {marker}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDirectory:
    directory: str
    meta: MetaProperties
    rebuilds: Rebuilds
    highest_epoch: int
    """That this node has seen, in its log or in an election."""
    epochs: tuple[EpochOffset, ...]
    """Where each epoch of its log began; first the one in which a snapshot ends, where that is what
    the log begins behind."""
    end: EpochOffset
    image: MetadataImage

    @property
    def rank(self) -> tuple[int, EpochOffset]:
        """A later generation counts more than any offset of an older one."""
        return len(self.rebuilds), self.end

    def end_of(self, epoch: int) -> int:
        """The offset at which that epoch of this log ended."""
        later = (each.offset for each in self.epochs if each.epoch > epoch)
        return next(later, self.end.offset)


def agreed_offset(one: SourceDirectory, other: SourceDirectory) -> int:
    """Up to where two logs are the same: what both have of the last epoch that both know."""
    common = {each.epoch for each in one.epochs} & {each.epoch for each in other.epochs}
    if not common:  # one of them is empty, or a snapshot has replaced what the other ends with
        return min(one.end.offset, other.end.offset)
    epoch = max(common)
    return min(one.end_of(epoch), other.end_of(epoch))


def read_source(disk: Disk, directory: str) -> SourceDirectory:
    """Blocks. Raises StorageError, DamagedSurvivor, GenerationFileError, MetadataError."""
    meta = read_meta(disk, directory)
    if meta is None:
        raise StorageError(
            f"{directory} holds no meta.properties: give the directory that log.dirs (or "
            "metadata.log.dir) of a node names"
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
    check = LogCheck(disk, metadata, Expected(metadata=True))
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
    """A vote that is lost matters no more: only how high epochs went."""
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
        snapshot = self._load_snapshot() or NOTHING
        for header, batch in self._stored_batches():
            if not self.epochs or header.leader_epoch > self.epochs[-1].epoch:
                self.epochs.append(EpochOffset(header.leader_epoch, header.base_offset))
            self.end = EpochOffset(header.leader_epoch, header.next_offset)
            is_replaced = header.leader_epoch < snapshot.epoch  # or stands in the snapshot
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
                continue  # an older one, or the log from its start, says the same
            self.loader = Loader(contents.image)
            return snapshot
        return None

    def _stored_batches(self) -> Iterator[tuple[BatchHeader, bytes]]:
        """Up to the end, or a torn tail: there is no other damage."""
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

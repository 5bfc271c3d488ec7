"""One node's metadata on a simulated disk, with a model of what the disk must never lose."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.node.replica.metadata_storage import MetadataStorage
from quorate.quorum.node.replica.snapshot_generator import SnapshotGenerator, SnapshotSettings
from quorate.quorum.raft.voter_history import QuorumVoters
from quorate.quorum.seams import Seams
from tests.sim.world.disk import SimDisk
from tests.unit.rpc.kafka.fakes import FakeClock

DIRECTORY = "/data/__cluster_metadata-0"
ARCHIVE = "/data/archive"
WALL_MS = 1_700_000_000_000
SETTINGS = LogSettings(segment_bytes=400, flushed_is_acknowledged=True)
OFTEN = SnapshotSettings(bytes_between=300, interval_ms=0, retention_bytes=1_000, retention_ms=-1)


def config_batch(offset: int, epoch: int) -> bytes:
    record = ConfigRecord(
        resource_type=2, resource_name="t", name=f"k{offset % 7}", value=f"v{offset}"
    )
    batch = build_value_batch(
        [encode_record(record)],
        base_offset=offset,
        leader_epoch=epoch,
        timestamp_ms=WALL_MS + offset,
    )
    return bytes(batch)


def image_at(end_offset: int, epoch_of: dict[int, int]) -> MetadataImage:
    """Return the image after a replay of everything below `end_offset`."""
    loader = Loader(MetadataImage())
    for offset in range(end_offset):
        loader.feed(metadata_batches(config_batch(offset, epoch_of[offset])))
    return loader.image


@dataclass
class MetadataDisk:
    """A node's metadata directory. `epochs` has the epoch of each offset, and everything below
    `flushed` is acknowledged."""

    disk: SimDisk = field(default_factory=lambda: SimDisk(random.Random(0)))
    settings: LogSettings = SETTINGS
    snapshots: SnapshotSettings = OFTEN
    epochs: dict[int, int] = field(default_factory=dict)
    flushed: int = 0
    failures: list[BaseException] = field(default_factory=list)

    def open(self) -> MetadataStorage:
        storage = MetadataStorage.open(self.disk, DIRECTORY, self.settings, wall_ms=WALL_MS)
        self.storage = storage
        self._loader = Loader(storage.beginning.image)
        return storage

    def append(self, count: int, epoch: int = 1) -> None:
        log = self.storage.log
        for _ in range(count):
            offset = log.end_offset
            self.epochs[offset] = epoch
            log.append(config_batch(offset, epoch), wall_ms=WALL_MS)
        log.flush()
        self.flushed = log.end_offset

    def image(self) -> MetadataImage:
        """Return the node's image: the snapshot that it started with, and the log from there."""
        loader, log = self._loader, self.storage.log
        while loader.position < log.end_offset:
            loader.feed(metadata_batches(log.read(loader.position, 1 << 20)))
        return loader.image

    def generator(self) -> tuple[SnapshotGenerator, FakeClock]:
        clock = FakeClock()
        self.disk._later = lambda callback: clock.call_soon(callback)
        seams = Seams(clock=clock, random=random.Random(0), transport=None, disk=self.disk)  # type: ignore[arg-type]
        generator = SnapshotGenerator(
            seams,
            self.storage,
            self.snapshots,
            self.image,
            lambda end_offset: QuorumVoters(),
            self.failures.append,
        )
        generator.start()
        return generator, clock

    def check(self) -> None:
        """Check that nothing acknowledged is lost, and that the state equals a full replay."""
        log, snapshots = self.storage.log, self.storage.snapshots
        assert log.end_offset >= self.flushed, "acknowledged records are lost"
        earliest = snapshots.earliest
        assert log.start_offset in (0, earliest.offset if earliest else 0)
        assert self.image().configs == image_at(log.end_offset, self.epochs).configs

    def names(self, directory: str = DIRECTORY) -> list[str]:
        return self.disk.list(directory)

    def latest(self) -> EpochOffset:
        latest = self.storage.snapshots.latest
        assert latest is not None
        return latest

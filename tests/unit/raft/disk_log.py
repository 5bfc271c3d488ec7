"""The production log on a simulated disk, for the harness of the Raft core."""

from __future__ import annotations

import random

from quorate.quorum.log.batches.batch import Placed, batches
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.epochs import NO_EPOCH, EpochCache
from quorate.quorum.seams import Buffer
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import delete_expired
from tests.unit.log.memory_log import Batch
from tests.unit.raft.memory_log import MemoryMetadataLog

DIRECTORY = "/data/__cluster_metadata-0"
SETTINGS = LogSettings(segment_bytes=1000, flushed_is_acknowledged=True)


class DiskLog(MemoryMetadataLog):
    """The log of one node. It implements `RaftLog` and the test methods of `MemoryMetadataLog`."""

    def __init__(self, seed: int) -> None:
        self.truncations = []
        self.disk = SimDisk(random.Random(seed))
        self.disk.make_dirs(DIRECTORY)
        self._open()

    def _open(self) -> None:
        self.log = Log.open(self.disk, DIRECTORY, SETTINGS, wall_ms=0, clean=False)

    @property
    def start_offset(self) -> int:
        return self.log.start_offset

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    @property
    def last_epoch(self) -> int:
        return self.log.last_epoch

    @property
    def epochs(self) -> EpochCache:
        return self.log.epochs

    @property
    def flushed_offset(self) -> int:
        return self.log.flushed_offset

    @property
    def batches(self) -> list[Batch]:
        found: list[Batch] = []
        while True:
            offset = found[-1].next_offset if found else self.log.start_offset
            data = self.log.read(offset, 1 << 20)
            if not data:
                return found
            for position, header in batches(data):
                whole = bytes(data[position : position + header.size_bytes])
                found.append(
                    Batch(header.base_offset, header.next_offset, header.leader_epoch, whole)
                )

    def append(self, data: Buffer, *, wall_ms: int, placed: Placed | None = None) -> None:
        self.log.append(data, wall_ms=wall_ms, placed=placed)

    def read(self, offset: int, max_bytes: int, *, end: int | None = None) -> bytes:
        return self.log.read(offset, max_bytes, end=end)

    def truncate_to(self, offset: int) -> None:
        self.truncations.append(offset)
        self.log.truncate_to(offset)

    def reset_to(self, offset: int, epoch: int = NO_EPOCH) -> None:
        self.log.reset_to(offset, epoch)

    def cut_head(self, offset: int) -> None:
        self.log.advance_start(offset)
        delete_expired(self.log, high_watermark=offset, wall_ms=0)

    def flush(self, offset: int) -> None:
        self.log.flush()

    def crash(self) -> None:
        """Lose any part of the bytes that were not flushed."""
        self.disk = self.disk.crash()
        self._open()

"""What it does to a node to come to a large image: by a snapshot from the leader, and by its log.

A standby controller and a broker at once, on the loop that nodes have: the snapshot is read by the
disk's thread as `metadata_replica.py` has it, surveyed and taken over; or the log is replayed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

from quorate.quorum.clock import AsyncioClock
from quorate.quorum.committed_image import CommittedImage
from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.settings import ControllerSettings
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batch import build_value_batch
from quorate.quorum.log.disk import OsDisk
from quorate.quorum.log.log import Log
from quorate.quorum.log.settings import LogSettings
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.difference import differing
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.metadata.snapshot_file import SnapshotContents, reading
from quorate.quorum.seams import File
from quorate.quorum.steps import Steps, finished

BROKER_ID = 1
BATCH_RECORDS = 100
CHUNK_BYTES = 1 << 20
POLL_S = 0.01


class WatchedClock(AsyncioClock):
    """Knows whether anything goes on in steps: old images are let go of after all else."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        super().__init__(loop)
        self.pending = 0

    def call_soon(self, callback: Callable[[], None]) -> None:
        def called() -> None:
            self.pending -= 1
            callback()

        self.pending += 1
        super().call_soon(called)


class Follower:
    """A standby controller's rules and what a broker makes of an image."""

    def __init__(self, clock: WatchedClock, log: Log) -> None:
        self.clock = clock
        self.rules = Controller(ControllerSettings(cluster_id="bench", node_id=1), Random())
        self.failures: list[BaseException] = []
        self.committed = CommittedImage(clock, log, self.follow, self.survey, self.failures.append)

    def follow(self, image: MetadataImage, delta: ImageDelta) -> None:
        self.rules.replayed(image, delta)

    def survey(self, image: MetadataImage) -> Steps[Callable[[], None]]:
        take_over = yield from self.rules.survey(image)
        yield from differing(self.committed.image, image, concerns_broker)

        def taken_over() -> None:
            old = self.rules.index
            take_over()
            self.committed.let_go(old.emptied())

        return taken_over

    @classmethod
    def of(
        cls, clock: WatchedClock, log: Log, snapshot: EpochOffset, image: MetadataImage
    ) -> Follower:
        """It has `image`; its log goes on behind a snapshot that it does not have yet."""
        log.reset_to(snapshot.offset, snapshot.epoch)
        follower = cls(clock, log)
        finished(follower.rules.survey(image))()
        follower.committed.adopt(image)
        return follower

    async def until(self, end_offset: int) -> MetadataImage:
        while not (self._there(end_offset) or self.failures):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
        if self.failures:
            raise self.failures[0]
        return self.committed.image

    def _there(self, end_offset: int) -> bool:
        return self.committed.caught_up_with(end_offset) and not self.clock.pending


def concerns_broker(partition: Partition) -> bool:
    return BROKER_ID in partition.replicas


async def received(
    disk: OsDisk, follower: Follower, snapshot: EpochOffset, path: Path
) -> MetadataImage:
    """Read in steps in the disk's thread, then loaded."""
    file = disk.open(str(path), writable=False)
    steps = reading(snapshot, chunks_of(file))
    found: asyncio.Future[SnapshotContents] = asyncio.get_running_loop().create_future()

    def stepped(contents: SnapshotContents | None, error: BaseException | None) -> None:
        if error is not None:
            found.set_exception(error)
        elif contents is not None:
            found.set_result(contents)
        else:
            disk.submit(lambda: next(steps), stepped)

    disk.submit(lambda: next(steps), stepped)
    follower.committed.load((await found).image)
    return await follower.until(snapshot.offset)


def chunks_of(file: File) -> Iterator[bytes]:
    position = 0
    while chunk := file.pread(CHUNK_BYTES, position):
        yield chunk
        position += len(chunk)


def write_log(root: str, batches: Iterable[list[MetadataRecord]]) -> Log:
    """As a controller writes it under some load."""
    log = Log.open(OsDisk(), f"{root}/log", LogSettings(), wall_ms=0, clean=False)
    for records in batches:
        for first in range(0, len(records), BATCH_RECORDS):
            values = [encode_record(each) for each in records[first : first + BATCH_RECORDS]]
            batch = build_value_batch(
                values, base_offset=log.end_offset, leader_epoch=1, timestamp_ms=1
            )
            log.append(batch, wall_ms=0)
    log.flush()
    return log


async def replayed(log: Log) -> MetadataImage:
    follower = Follower(WatchedClock(), log)
    follower.committed.committed(log.end_offset)
    return await follower.until(log.end_offset)

"""Loading a large image in a node: from a snapshot of the leader, and from its own log.

The node is a standby controller and a broker in one, on the event loop that nodes use. For a
snapshot, the disk's thread reads it as `metadata_replica.py` does, and the loader compares it with
the present image and takes it over. Or the node replays its log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

from quorate.quorum.clock import AsyncioClock
from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.ids import EpochOffset
from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.difference import differing
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.metadata.snapshot_file import SnapshotContents, reading
from quorate.quorum.node.replica.committed_image import CommittedImage
from quorate.quorum.seams import File

BROKER_ID = 1
BATCH_RECORDS = 100
CHUNK_BYTES = 1 << 20
POLL_S = 0.01


class WatchedClock(AsyncioClock):
    """A clock that counts the callbacks that are scheduled and have not run.

    Old images are released in steps after all other work, so the count shows when this is finished.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        super().__init__(loop)
        self.pending = 0

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` soon, and count it as pending until then."""

        def called() -> None:
            self.pending -= 1
            callback()

        self.pending += 1
        super().call_soon(called)


class Follower:
    """A standby controller, with the work that a broker does for an image."""

    def __init__(self, clock: WatchedClock, log: Log) -> None:
        self.clock = clock
        self.rules = Controller(ControllerSettings(cluster_id="bench", node_id=1), Random())
        self.failures: list[BaseException] = []
        self.committed = CommittedImage(
            clock, log, self.follow, self.prepare_load, self.failures.append
        )

    def follow(self, image: MetadataImage, delta: ImageDelta) -> None:
        """Apply a small change of the image."""
        self.rules.replayed(image, delta)

    def prepare_load(self, image: MetadataImage) -> IncrementalWork[Callable[[], None]]:
        """Prepare to load a whole image, in steps. Return the function that installs it."""
        install = yield from self.rules.prepare_load(image)
        yield from differing(self.committed.image, image, concerns_broker)

        def install_all() -> None:
            old = self.rules.index
            install()
            self.committed.release(old.emptied())

        return install_all

    @classmethod
    def of(
        cls, clock: WatchedClock, log: Log, snapshot: EpochOffset, image: MetadataImage
    ) -> Follower:
        """Return a follower that has `image`, but whose log begins at the end of `snapshot`.

        Like a replica that fetched the snapshot, it must load it before it can replay more."""
        log.reset_to(snapshot.offset, snapshot.epoch)
        follower = cls(clock, log)
        finished(follower.rules.prepare_load(image))()
        follower.committed.adopt(image)
        return follower

    async def until(self, end_offset: int) -> MetadataImage:
        """Wait until everything below `end_offset` is loaded, and return the image.

        Old images are also released by then. Raise the error if the loading failed."""
        while not (self._there(end_offset) or self.failures):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
        if self.failures:
            raise self.failures[0]
        return self.committed.image

    def _there(self, end_offset: int) -> bool:
        return self.committed.caught_up_with(end_offset) and not self.clock.pending


def concerns_broker(partition: Partition) -> bool:
    """Return True if the broker has a replica of the partition."""
    return BROKER_ID in partition.replicas


async def received(
    disk: OsDisk, follower: Follower, snapshot: EpochOffset, path: Path
) -> MetadataImage:
    """Read a snapshot in steps in the disk's thread, load it, and return the image."""
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
    """Yield the content of a file in chunks."""
    position = 0
    while chunk := file.pread(CHUNK_BYTES, position):
        yield chunk
        position += len(chunk)


def write_log(root: str, batches: Iterable[list[MetadataRecord]]) -> Log:
    """Write a log as a controller under load does, and flush it."""
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
    """Replay the log in a new follower, and return the image."""
    follower = Follower(WatchedClock(), log)
    follower.committed.committed(log.end_offset)
    return await follower.until(log.end_offset)

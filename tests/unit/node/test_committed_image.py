"""The committed image: replay in slices, and the load of a snapshot, in steps but atomically."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import NoOpRecord
from quorate.quorum.node.replica import committed_image
from quorate.quorum.node.replica.committed_image import CommittedImage
from tests.unit.node.metadata_disk import DIRECTORY, WALL_MS, MetadataDisk, image_at
from tests.unit.node.test_metadata_storage import opened, received, reopened
from tests.unit.rpc.kafka.fakes import FakeClock

STEPS = 3


class Follower:
    """A listener that prepares in three steps. `seen` has the end offsets of the images that it was
    given."""

    def __init__(self, node: MetadataDisk) -> None:
        self.clock = FakeClock()
        self.seen: list[int] = []
        self.prepared: list[int] = []
        self.failures: list[BaseException] = []
        self.image = CommittedImage(
            self.clock, node.storage.log, self.follow, self.prepare_load, self.failures.append
        )

    def follow(self, image: MetadataImage, delta: ImageDelta) -> None:
        self.seen.append(image.last.offset + 1)

    def prepare_load(self, image: MetadataImage) -> IncrementalWork[Callable[[], None]]:
        for _ in range(STEPS):
            self.prepared.append(image.last.offset + 1)
            yield

        def install() -> None:
            assert self.image.image is image, "what is taken over is what is there"
            self.seen.append(image.last.offset + 1)

        return install

    def run(self, iterations: int = 100) -> None:
        for _ in range(iterations):
            self.clock.advance(0)


def behind_a_snapshot() -> tuple[MetadataDisk, Follower]:
    """Return a node that has replayed 4 records, and whose log now starts at a snapshot, at 40."""
    node = opened()
    follower = Follower(node)
    node.append(4)
    follower.image.committed(4)
    assert follower.seen == [4]
    received(node)
    return node, follower


def load(node: MetadataDisk, follower: Follower, end_offset: int) -> MetadataImage:
    image = image_at(end_offset, node.epochs)
    follower.image.load(image)
    return image


def test_the_image_is_the_old_one_until_all_is_surveyed() -> None:
    node, follower = behind_a_snapshot()
    old = follower.image.image
    image = load(node, follower, 40)
    for _ in range(STEPS - 1):
        assert follower.image.image is old and follower.seen == [4]
        assert not follower.image.caught_up_with(follower.image.position)
        follower.run(1)
    follower.run()
    assert follower.image.image is image and follower.seen == [4, 40]
    assert follower.image.caught_up_with(40)


def test_what_is_committed_meanwhile_waits() -> None:
    node, follower = behind_a_snapshot()
    load(node, follower, 40)
    node.append(3, 2)
    follower.image.committed(43)
    follower.image.committed(42, at_once=False)
    assert follower.seen == [4]
    follower.run()
    assert follower.seen == [4, 40, 43]
    assert follower.image.image == image_at(43, node.epochs)


def test_a_newer_snapshot_begins_anew() -> None:
    node, follower = behind_a_snapshot()
    load(node, follower, 40)
    follower.run(1)
    node.append(10, 2)
    load(node, follower, 50)
    follower.run()
    assert follower.seen == [4, 50], "nobody acts on the one that was not taken over"
    assert follower.prepared == [40] * 2 + [50] * STEPS


def test_a_closed_listener_takes_over_nothing() -> None:
    node, follower = behind_a_snapshot()
    load(node, follower, 40)
    follower.run(1)
    follower.image.close()
    follower.run()
    assert follower.seen == [4] and follower.clock.waiting == 0


def test_a_listener_that_prepares_again_catches_up_only_afterwards() -> None:
    """A deposed controller that is elected again makes no decision before its index is that of the
    committed image."""
    node = opened()
    follower = Follower(node)
    node.append(4)
    follower.image.committed(4)
    assert follower.image.caught_up_with(4)
    follower.image.prepare(follower.prepare_load)
    assert follower.image.position == 4 and not follower.image.caught_up_with(4)
    node.append(2)
    follower.image.committed(6)
    follower.run()
    assert follower.seen == [4, 4, 6] and follower.image.caught_up_with(6)


def test_a_listener_about_to_prepare_prepares_for_the_snapshot() -> None:
    node, follower = behind_a_snapshot()
    anew: list[int] = []

    def prepare_load(image: MetadataImage) -> IncrementalWork[Callable[[], None]]:
        yield
        return lambda: anew.append(image.last.offset + 1)

    follower.image.prepare(prepare_load)
    load(node, follower, 40)
    follower.run()
    assert follower.seen == [4, 40] and anew == [40]


def test_a_backlog_is_replayed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_image, "SLICE_BYTES", 200)
    node = opened()
    follower = Follower(node)
    node.append(30)
    follower.image.committed(30)
    assert 0 < follower.seen[-1] < 10
    follower.run()
    assert len(follower.seen) > 5 and follower.seen[-1] == 30
    assert follower.image.image == image_at(30, node.epochs)


def test_a_high_watermark_inside_of_a_batch_waits_for_its_end() -> None:
    """A faulty leader can send one. The replay neither fails nor uses the CPU until it rises."""
    node = opened()
    follower = Follower(node)
    node.append(2)
    batch = build_value_batch(
        [encode_record(NoOpRecord())] * 4, base_offset=2, leader_epoch=1, timestamp_ms=WALL_MS
    )
    node.storage.log.append(batch, wall_ms=WALL_MS)
    follower.image.committed(4)
    follower.run()
    assert follower.clock.waiting == 0 and follower.image.position == 2
    follower.image.committed(6)
    follower.run()
    assert follower.image.position == 6 and not follower.failures


@pytest.mark.parametrize("byte", range(61))
def test_damage_to_what_was_flushed_names_file_and_offset(byte: int) -> None:
    """The checksum of a batch does not cover its base offset. Once, a wrong base offset stopped the
    node with an error that named no file."""
    node = opened()
    node.append(16)
    node.storage.close()
    again = reopened(node)
    path = f"{DIRECTORY}/{0:020}.log"
    size = len(again.disk.content(path)) // 4
    again.disk.flip(path, size + byte, 0x10)
    follower = Follower(again)
    follower.image.committed(again.storage.log.end_offset)
    follower.run()
    (failure,) = follower.failures
    assert isinstance(failure, CorruptLog) and failure.path == path
    assert 0 < failure.offset < 16

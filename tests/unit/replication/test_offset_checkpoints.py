"""The removed partitions whose offsets a checkpoint file may still have."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from quorate.broker.logs.offset_checkpoints import OffsetCheckpoints
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from tests.sim.world.disk import SimDisk

HIGH_WATERMARKS = checkpoints.HIGH_WATERMARKS_NAME


class Place:
    """The checkpoints of one directory, on a disk whose thread runs jobs only in `run`."""

    def __init__(self) -> None:
        self.jobs: deque[Callable[[], None]] = deque()
        self.disk = SimDisk(random.Random(0), self.jobs.append)
        self.disk.make_dirs("/d")
        self.offsets = OffsetCheckpoints(self.disk, "/d")

    def submit(self) -> None:
        self.offsets.submit(HIGH_WATERMARKS, lambda _, error: None)

    def run(self) -> None:
        while self.jobs:
            self.jobs.popleft()()

    def on_disk(self) -> dict[PartitionName, int]:
        return checkpoints.read_offsets(self.disk, "/d", HIGH_WATERMARKS)


def remembered(place: Place) -> int:
    return sum(map(len, place.offsets._removed.values()))


def test_a_removed_partition_is_forgotten_when_its_file_is_written() -> None:
    """Each partition that was ever deleted took some hundred bytes until the broker restarted."""
    place = Place()
    for number in range(50):
        name = PartitionName(f"t{number}", 0)
        place.offsets.high_watermarks[name] = number
        place.submit()
        place.offsets.remove(name)
        place.submit()
        place.run()
    assert remembered(place) == 0
    assert place.on_disk() == {}


def test_a_removal_during_the_write_is_remembered() -> None:
    """The copy that is being written still has the partition."""
    place = Place()
    name = PartitionName("t", 0)
    place.offsets.high_watermarks[name] = 7
    place.submit()
    place.offsets.remove(name)
    place.run()
    assert place.on_disk() == {name: 7} and remembered(place) == 1
    place.offsets.require_removed(name)
    assert place.on_disk() == {} and remembered(place) == 0


def test_a_partition_removed_twice_is_remembered_for_the_second_time() -> None:
    place = Place()
    name, other = PartitionName("t", 0), PartitionName("u", 0)
    place.offsets.high_watermarks[name] = 7
    place.submit()
    place.run()
    place.offsets.remove(name)
    place.submit()  # without the partition, and not yet written
    place.offsets.require_removed(name)
    place.offsets.high_watermarks.update({name: 9, other: 1})
    place.offsets._files.write(HIGH_WATERMARKS, place.offsets.high_watermarks)
    place.offsets.remove(name)
    place.run()
    assert place.on_disk() == {name: 9, other: 1} and remembered(place) == 1
    place.submit()
    place.run()
    assert place.on_disk() == {other: 1} and remembered(place) == 0


def test_an_offset_that_was_lowered_and_rises_again_is_written() -> None:
    """The same offset was submitted before it was lowered, and was not submitted again."""
    place = Place()
    name = PartitionName("t", 0)
    place.offsets.high_watermarks[name] = 7
    place.submit()
    place.run()
    place.offsets.lower_high_watermark(name, 5)
    assert place.on_disk() == {name: 5}
    place.offsets.high_watermarks[name] = 7
    place.submit()
    place.run()
    assert place.on_disk() == {name: 7}

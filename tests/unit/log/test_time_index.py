"""Damage to a time index costs time, never records (R51)."""

from __future__ import annotations

import random

from quorate.quorum.log.log import Log
from quorate.quorum.log.settings import LogSettings
from tests.sim.disk import SimDisk
from tests.unit.log.batches import batch

SETTINGS = LogSettings(segment_bytes=2_000, index_interval_bytes=200)
COUNT = 40
PATH = "/data/t-0"


def opened(disk: SimDisk) -> Log:
    return Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=True)


def closed_log() -> SimDisk:
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    log = opened(disk)
    for number in range(COUNT):
        log.append(batch(number, 0, [b"x" * 50], timestamp_ms=9 * number), wall_ms=0)
    log.close()
    return disk.restart()


def test_no_flipped_bit_hides_a_record_from_its_timestamp() -> None:
    disk = closed_log()
    path = next(f"{PATH}/{name}" for name in disk.list(PATH) if name.endswith(".timeindex"))
    content = disk.content(path)
    assert len(content) > 4 * 12
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        disk.open(path).pwrite(bytes(damaged), 0)
        log = opened(disk)
        for number in range(0, 20, 4):
            found = log.offset_for_timestamp(10 * number - 4)
            assert found is not None and found.offset == number, (bit, number, found)

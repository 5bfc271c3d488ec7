"""The quarantine: where other replicas have the records, no byte that recovery cuts off is lost."""

from __future__ import annotations

import random

import pytest

from quorate.quorum.log.files.names import DAMAGED_SUFFIX
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from tests.sim.world.disk import PowerCut, SimDisk
from tests.unit.log.batches import append, entries

PATH = "/data/topic-0"
SETTINGS = LogSettings(segment_bytes=1_500, index_interval_bytes=100)


def damaged_disk(seed: int) -> tuple[SimDisk, dict[str, bytes]]:
    """Return a disk with four synced segments, and its files as they were before the damage.

    The second batch of the second segment is damaged."""
    disk = SimDisk(random.Random(seed))
    disk.make_dirs("/data")
    log = Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=False)
    for number in range(16):
        append(log, 0, b"%2d " % number + b"x" * 270)
    log.flush()
    paths = [f"{PATH}/{name}" for name in disk.list(PATH) if name.endswith(".log")]
    assert len(paths) == 4
    disk.flip(paths[1], 500)
    return disk, {path: disk.content(path) for path in paths}


def reopen(disk: SimDisk) -> Log:
    return Log.open(disk, PATH, SETTINGS, wall_ms=0, clean=False, recovery_point=16, set_aside=True)


def check_kept(disk: SimDisk, written: dict[str, bytes]) -> None:
    """Check that the log ends at the damage, and that all other bytes are in `.damaged` files."""
    first, second, *others = written
    assert disk.content(first) == written[first]
    kept = disk.content(second)
    assert 0 < len(kept) < len(written[second])
    assert kept + disk.content(second + DAMAGED_SUFFIX) == written[second]
    for other in others:
        assert not disk.exists(other)
        assert disk.content(other + DAMAGED_SUFFIX) == written[other]


def test_segments_behind_the_damage_are_kept_whole() -> None:
    disk, written = damaged_disk(0)
    log = reopen(disk)
    assert len(entries(log)) == log.end_offset == 5
    check_kept(disk, written)


@pytest.mark.parametrize("forgetful", [False, True])
def test_a_power_cut_at_any_call_loses_nothing_of_it(forgetful: bool) -> None:
    """The copied bytes survive until the cut is durable, and the renamed files always."""
    disk, _ = damaged_disk(0)
    before = disk.calls
    reopen(disk).flush()
    calls = disk.calls - before
    assert calls > 20
    for call in range(1, calls + 1):
        for seed in range(2 if forgetful else 8):
            disk, written = damaged_disk(seed)
            disk.die_at = disk.calls + call
            with pytest.raises(PowerCut):
                reopen(disk).flush()
            disk = disk.crash(forgetful=forgetful)
            assert reopen(disk).end_offset == 5
            check_kept(disk, written)

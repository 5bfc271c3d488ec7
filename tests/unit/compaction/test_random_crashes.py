"""The property of compaction in random histories with crashes, and with two replicas of which the
follower takes over."""

from __future__ import annotations

import random

import pytest

from tests.sim.world.disk import PowerCut
from tests.unit.compaction.histories import DELETE_RETENTION_MS, Replica

CRASHES = 6


def step(replica: Replica, *, truncates: bool) -> None:
    """Do one random operation. A power cut may undo a truncation, which is not synced, so that
    there is none before one."""
    what = replica.random.random()
    if what < 0.72:
        replica.append(replica.random.randrange(1, 6))
    elif what < 0.85:
        if replica.random.random() < 0.3:  # many crashes hit a cleaning
            replica.disk.die_at = replica.disk.calls + replica.random.randrange(1, 80)
        replica.clean()
    elif what < 0.9:
        replica.flush()
    elif what < 0.95:
        if truncates:
            replica.truncate(replica.random.randint(replica.high_watermark, replica.log.end_offset))
            replica.epoch += 1
    else:
        replica.wall_ms += replica.random.choice([1, 400, DELETE_RETENTION_MS])


@pytest.mark.parametrize("power", [False, True], ids=["kills", "power cuts"])
@pytest.mark.parametrize("seed", range(30))
def test_crashes_at_any_disk_call_of_any_history(seed: int, power: bool) -> None:
    """The history goes on after each crash, with the files that the crash left."""
    replica, rand = Replica(seed), random.Random(seed)
    crashes = 0
    while crashes < CRASHES or not replica.cleanings:
        replica.disk.die_at = replica.disk.calls + rand.randrange(1, 900)
        try:
            for _ in range(120):
                step(replica, truncates=not power)
                replica.check()
        except PowerCut:
            crashes += 1
        forgetful = rand.random() < 0.5
        disk = replica.disk
        replica.start_again(disk.crash(forgetful=forgetful) if power else disk.restart())
        assert replica.log.end_offset >= replica.recovery_point
        replica.check()


class Pair:
    """A leader and a follower of one log, both compacted. They change roles."""

    def __init__(self, seed: int) -> None:
        self.leader, self.follower = Replica(seed), Replica(seed + 1000)
        self.random = random.Random(seed)
        self.replicate()

    def replicate(self, fetches: int = 1 << 30) -> None:
        """Let the follower fetch, which raises the high watermarks."""
        leader, follower = self.leader, self.follower
        for _ in range(fetches):
            data = leader.log.read(follower.log.end_offset, 200)
            if not data:
                break
            follower.log.append(data, wall_ms=leader.wall_ms, gaps=True)
        self.raise_high_watermarks()

    def raise_high_watermarks(self) -> None:
        ends = (self.leader.log.end_offset, self.follower.log.end_offset)
        assert min(ends) >= self.leader.high_watermark, "a committed record is lost"
        self.leader.high_watermark = self.follower.high_watermark = min(ends)

    def append(self, count: int) -> None:
        before = self.leader.high_watermark
        self.leader.append(count)
        self.leader.high_watermark = before
        self.follower.wall_ms = self.leader.wall_ms

    def take_over(self) -> None:
        """Let the follower lead. It appends other records than the earlier leader, which truncates
        to the end of its epoch."""
        self.leader, self.follower = self.follower, self.leader
        leader, earlier = self.leader, self.follower
        end = leader.log.end_offset
        leader.written = [each for each in earlier.written if each.offset < end]
        leader.epoch = earlier.epoch + 1
        leader.wall_ms = earlier.wall_ms
        self.append(self.random.randrange(1, 9))
        if earlier.log.end_offset > end:
            earlier.truncate(end)

    def check(self) -> None:
        leader, follower = self.leader, self.follower
        end = follower.log.end_offset
        follower.written = [each for each in leader.written if each.offset < end]
        leader.check()
        follower.check()


@pytest.mark.parametrize("seed", range(40))
def test_a_follower_with_other_records_takes_over(seed: int) -> None:
    """Each replica is compacted by itself, so their files differ, and a fetch has gaps."""
    pair = Pair(seed)
    changes = diverged = 0
    for _ in range(150):
        what = pair.random.random()
        if what < 0.6:
            pair.append(pair.random.randrange(1, 6))
        elif what < 0.7:
            pair.replicate(pair.random.randrange(1, 30))
        elif what < 0.9:
            replica = pair.random.choice([pair.leader, pair.follower])
            replica.flush()
            replica.clean()
        elif what < 0.96:
            for replica in (pair.leader, pair.follower):
                replica.wall_ms += DELETE_RETENTION_MS // 2
        else:
            diverged += pair.leader.log.end_offset > pair.follower.log.end_offset
            pair.take_over()
            changes += 1
        pair.check()
    pair.replicate()
    pair.check()
    assert pair.leader.cleanings + pair.follower.cleanings > 3
    assert changes > 0 and diverged > 0

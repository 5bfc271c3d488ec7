"""Moves between log directories: a crash at every disk call, and a failure of each directory at
every disk call. What was acknowledged is there afterwards, once and in order."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from quorate.quorum.log.files.names import PartitionName, future_partition_of, partition_of
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import ProducePartitionResult
from tests.sim.world.disk import PowerCut, SimDisk
from tests.thirds import THIRDS
from tests.unit.replication.cluster import ReplicaCluster
from tests.unit.replication.moves import A, B, alter, committed, placed_in

MakeCluster = Callable[..., ReplicaCluster]
T0 = PartitionName("t", 0)


class Moving:
    """One broker with two directories, and a producer while its log moves from A to B."""

    def __init__(self, make_cluster: MakeCluster, *, flush_messages: int, seed: int = 0) -> None:
        self.cluster = make_cluster(
            brokers=1,
            seed=seed,
            log_dirs=(A, B),
            file_delete_delay_ms=20,
            flush_checkpoint_interval_ms=70,
            high_watermark_checkpoint_interval_ms=60,
        )
        self.cluster.log_settings = LogSettings(
            segment_bytes=700, index_interval_bytes=100, flush_messages=flush_messages
        )
        committed(self.cluster)
        self.topic = self.cluster.create("t", [placed_in(self.cluster, A)])
        self.cluster.run(50)
        self.answers: list[list[ProducePartitionResult]] = []
        self.produce(12)

    @property
    def disk(self) -> SimDisk:
        return self.cluster.nodes[1].disk

    def produce(self, count: int) -> None:
        for _ in range(count):
            value = b"<%d>" % len(self.answers)
            self.answers.append(self.cluster.produce(1, self.topic, value))
            self.cluster.run(2)

    def script(self) -> None:
        assert alter(self.cluster, "t-0", B) is ErrorCode.NONE
        for _ in range(40):
            self.produce(1)
            self.cluster.run(3)
        self.cluster.run(60)

    @property
    def home(self) -> str | None:
        return self.cluster.nodes[1].replicas.logs.home_of(T0)

    @property
    def acknowledged(self) -> int:
        return sum(bool(each) and each[0].error == 0 for each in self.answers)

    def check(self) -> None:
        """Every acknowledged record is in the log. The record at an offset is the one that was sent
        as the one with that number, because nothing is sent twice."""
        log = self.cluster.hosted(1, self.topic).log
        log.check()
        assert log.end_offset >= self.acknowledged
        for offset, batch in enumerate(self.cluster.content(1, self.topic)):
            assert b"<%d>" % offset in batch

    def again(self, disk: SimDisk) -> None:
        """Start with this disk. The move is over or goes on to its end."""
        self.cluster.loop.failures.clear()
        disk.before = lambda operation, path: None
        self.cluster.start(1, disk)
        self.cluster.run(100)
        self.check()
        self.cluster.run(1500)
        self.check()
        plain = [path for path in (A, B) if "t-0" in disk.list(path)]
        assert plain == [self.home]
        for path in (A, B):
            for each in disk.list(path):
                if future_partition_of(each) or each.endswith("-delete"):
                    raise AssertionError(f"{path}/{each} is left")
                assert partition_of(each) in (None, T0)


@pytest.mark.parametrize("first", THIRDS)
@pytest.mark.parametrize("power", [False, True])
def test_a_crash_at_every_disk_call(make_cluster: MakeCluster, power: bool, first: int) -> None:
    """A kill leaves the page cache. A power cut leaves what was flushed, so that flush.messages=1
    is the bound of what must be there."""
    flush_messages = 1 if power else 1 << 40
    whole = Moving(make_cluster, flush_messages=flush_messages)
    before = whole.disk.calls
    whole.script()
    assert whole.home == B
    calls = whole.disk.calls - before
    homes = set()
    for call in range(first, calls + 1, 3):
        life = Moving(make_cluster, flush_messages=flush_messages, seed=call)
        life.disk.die_at = life.disk.calls + call
        with pytest.raises(PowerCut):
            life.script()
        disk = life.cluster.cut_power(1) if power else life.cluster.kill(1)
        both = [path for path in (A, B) if "t-0" in disk.list(path)]
        homes.add(tuple(both))
        life.again(disk)
    assert {(A,), (A, B), (B,)} <= homes, "the crashes lie before, in and after the swap"


@pytest.mark.parametrize("first", THIRDS)
@pytest.mark.parametrize("failing", [A, B])
def test_a_directory_fails_at_every_disk_call_of_a_move(
    make_cluster: MakeCluster, failing: str, first: int
) -> None:
    """The broker goes on. After a restart with a healthy disk, the records are there."""
    calls = 0
    fail_at = 1 << 30

    def before(operation: str, path: str) -> None:
        nonlocal calls
        if path == failing or path.startswith(f"{failing}/"):
            calls += 1
            if calls >= fail_at:
                raise OSError(errno.EIO, "EIO", path)

    def run() -> Moving:
        nonlocal calls
        life = Moving(make_cluster, flush_messages=1 << 40)
        calls = 0
        life.disk.before = before
        life.script()
        return life

    run()
    whole = calls
    offline = 0
    for fail_at in range(first, whole, 3):
        life = run()
        logs = life.cluster.nodes[1].replicas.logs
        if calls >= fail_at:
            assert logs.offline == (failing,), fail_at
            offline += life.cluster.nodes[1].replicas.registry.get((life.topic, 0)) is None
            assert not len(life.cluster.nodes[1].replicas.moves)
        life.again(life.cluster.kill(1))
    assert 0 < offline < whole // 2

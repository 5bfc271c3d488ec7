"""EIO and ENOSPC at every disk call of a broker's log directory.

The script creates, fills, flushes, checkpoints and deletes partitions, and saves producer states.
The broker must stop at the first error, and its next start must find every acknowledged record.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from quorate.quorum.ids import Uuid
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.log.test_faults import fail_once
from tests.unit.replication.cluster import ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]
SMALL = LogSettings(segment_bytes=300, index_interval_bytes=100)
PRODUCER = {"producer_id": 9, "producer_epoch": 0}


class Life:
    """One broker, alone in its ISRs, with the number of acknowledged records of each topic."""

    def __init__(self, make_cluster: MakeCluster) -> None:
        self.cluster = make_cluster(
            brokers=1, flush_checkpoint_interval_ms=500, retention_check_interval_ms=700
        )
        self.cluster.log_settings = SMALL
        self.topics: dict[str, Uuid] = {}
        self.acknowledged: dict[Uuid, int] = {}
        self.deleted = 0

    def create(self, name: str) -> None:
        self.topics[name] = topic = self.cluster.create(name, [led_by(1)])
        self.acknowledged[topic] = 0
        self.run(50)

    def produce(self, name: str, count: int) -> None:
        topic = self.topics[name]
        for _ in range(count):
            sequence = self.acknowledged[topic]
            producer = {**PRODUCER, "base_sequence": sequence}
            answers = self.cluster.produce(1, topic, b"%d" % sequence, producer=producer)
            if not answers:  # after a crash, the disk's thread reads the producers first
                self.run(20)
            if not answers or answers[0].error:
                raise OSError(errno.EIO, str(answers))
            self.acknowledged[topic] += 1

    def run(self, ms: float) -> None:
        """Run for a time. Raise the failure that would stop the node."""
        self.cluster.loop.run_for(ms / 1000)
        self.cluster.loop.raise_failure()
        if self.cluster.failures:
            raise self.cluster.failures[0]

    def script(self) -> None:
        self.create("t")
        self.produce("t", 6)
        self.run(1100)
        self.create("u")
        self.produce("u", 3)
        self.cluster.hosted(1, self.topics["t"]).log.advance_start(3)
        self.deleted = 3
        self.run(1500)
        self.cluster.delete("u")
        del self.acknowledged[self.topics.pop("u")]
        self.run(100)
        self.create("u")
        self.produce("u", 2)
        self.run(6000)

    def again(self, *, power_cut: bool = False) -> None:
        """Start the broker again on a working disk.

        The last member of an ISR keeps its page cache after a crash of the process. After a power
        loss it need only start and serve."""
        self.cluster.failures.clear()
        disk = self.cluster.cut_power(1) if power_cut else self.cluster.kill(1)
        disk.before = lambda operation, path: None
        self.cluster.start(1, disk)
        self.run(50)
        for topic, count in self.acknowledged.items():
            log = self.cluster.hosted(1, topic).log
            assert log.start_offset <= self.deleted
            assert log.end_offset >= count or power_cut
            log.check()
        for name in () if power_cut else self.topics:
            self.produce(name, 2)


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
@pytest.mark.parametrize("power_cut", [False, True], ids=["process", "power"])
def test_an_error_at_every_disk_call(
    make_cluster: MakeCluster, error: int, power_cut: bool
) -> None:
    whole = Life(make_cluster)
    disk = whole.cluster.nodes[1].disk
    before = disk.calls
    whole.script()
    stopped = 0
    for number in range(1, disk.calls - before + 1):
        life = Life(make_cluster)
        disk_of_it = life.cluster.nodes[1].disk
        fail_once(disk_of_it, disk_of_it.calls + number, error)
        try:
            life.script()
        except OSError:
            stopped += 1
        except LogError as raised:
            pytest.fail(f"call {number}: a fault of the disk is not damage: {raised}")
        life.again(power_cut=power_cut)
        life.cluster.close()
    assert stopped > 30


def test_a_full_disk_stops_the_broker_at_an_append(make_cluster: MakeCluster) -> None:
    """As in Kafka, where the only log directory goes offline, another replica leads then."""
    life = Life(make_cluster)
    life.create("t")
    life.produce("t", 3)
    disk = life.cluster.nodes[1].disk
    disk.capacity_bytes = 0
    answers = life.cluster.produce(1, life.topics["t"])
    assert answers[0].error == ErrorCode.KAFKA_STORAGE_ERROR
    (failure,) = life.cluster.failures
    assert isinstance(failure, OSError) and failure.errno == errno.ENOSPC
    disk.capacity_bytes = None
    life.again()


def test_a_sync_that_failed_once_is_never_tried_again(make_cluster: MakeCluster) -> None:
    """R45 (tests/scenarios): the page cache may have discarded the bytes."""
    life = Life(make_cluster)
    life.create("t")
    life.produce("t", 3)
    disk = life.cluster.nodes[1].disk
    syncs: list[str] = []

    def broken(operation: str, path: str) -> None:
        if operation == "sync":
            syncs.append(path)
            raise OSError(errno.EIO, "fault", path)

    disk.before = broken
    life.cluster.loop.run_for(5)
    assert len(life.cluster.failures) == 1
    logs = [path for path in syncs if path.endswith(".log")]
    assert len(logs) == 1, "the watermark's checkpoint may fail beside it"

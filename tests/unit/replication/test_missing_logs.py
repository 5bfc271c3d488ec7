"""A broker that starts without the logs that the metadata assigns to it says so."""

from __future__ import annotations

import logging
import random

import pytest

from quorate.broker.replication.directories.missing_logs import NAMED, missing_logs_warning
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.metadata.image import Partition
from tests.sim.world.disk import SimDisk
from tests.unit.replication.cluster import ReplicaCluster, led_by
from tests.unit.replication.test_log_directories import broken
from tests.unit.replication.test_restarts import MakeCluster


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if hasattr(each, "event")]


def test_a_wiped_disk_is_reported_and_a_restart_is_not(
    make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster: ReplicaCluster = make_cluster(brokers=2)
    cluster.create("orders", [led_by(1, 2), led_by(1)])
    cluster.run(20)
    caplog.set_level(logging.WARNING)
    cluster.start(1, cluster.kill(1))
    cluster.run(20)
    assert warnings(caplog) == []
    cluster.kill(1)
    cluster.start(1, SimDisk(random.Random(1)))
    cluster.run(20)
    (line,) = warnings(caplog)
    assert line.startswith("none of the 2 partitions that the metadata assigns to this broker has")
    assert "The broker copies 1 of them from their leaders" in line
    assert "1 of them have no other replica (RF 1), so their records are gone unless" in line
    assert line.endswith("restore its disk: orders-1")


def test_a_log_that_may_be_in_an_offline_directory_is_not_called_lost(
    make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster: ReplicaCluster = make_cluster(brokers=2, log_dirs=("/a", "/b"))
    topic = cluster.create("t", [led_by(1, 2), led_by(1), led_by(1)])
    cluster.run(20)
    for index in range(3):
        cluster.produce(1, topic, partition_id=index)
    cluster.run(20)
    disk = cluster.kill(1)
    disk.before = broken("/b")
    caplog.set_level(logging.WARNING)
    node = cluster.start(1, disk)
    assert node.replicas.logs.offline == ("/b",)
    cluster.run(20)
    (line,) = warnings(caplog)
    assert line.startswith("1 of the 3 partitions that the metadata assigns to this broker have")
    assert "online log directories: t-1. Offline is /b. A partition whose log may be there" in line
    assert "(RF 1), so their records are in such a directory or gone: t-1" in line
    assert "The broker copies 1 of them" not in line


def test_the_line_is_bounded() -> None:
    alone = Partition(replicas=(1,), isr=(1,))
    missing = [(PartitionName("t", number), alone) for number in range(1000)]
    line = missing_logs_warning(missing, 1001, 1)
    assert line is not None
    assert line.startswith("1000 of the 1001 partitions")
    assert line.endswith(f"t-4 and {1000 - NAMED} more")
    assert missing_logs_warning((), 5, 1) is None

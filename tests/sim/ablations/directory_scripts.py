"""Brokers with several log directories, of which one fails or is replaced."""

from __future__ import annotations

from contextlib import closing

from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.protocol.errors import ErrorCode
from tests.sim.run import play, simulation
from tests.sim.scripts import log_directory_scenarios as scenarios
from tests.unit.replication.cluster import ReplicaCluster, led_by
from tests.unit.replication.moves import alter, committed, contents, moved, produce
from tests.unit.replication.test_log_directories import A, B, broken, placed


def one_directory_fails() -> None:
    with closing(ReplicaCluster(brokers=1, log_dirs=(A, B))) as cluster:
        topic = cluster.create("t", [led_by(1), led_by(1)])
        cluster.run(50)
        cluster.nodes[1].disk.before = broken(B)
        cluster.produce(1, topic, partition_id=1)
        assert not cluster.failures, "the broker has stopped"
        assert cluster.produce(1, topic, partition_id=0)[0].error == ErrorCode.NONE


def one_directory_fails_and_the_controller_moves_its_partitions() -> None:
    with simulation("directory_failed", scenarios.TWO) as stage:
        play(stage, scenarios.directory_failed(stage))


def a_broker_starts_without_one_directory() -> None:
    with closing(ReplicaCluster(brokers=1, log_dirs=(A, B))) as cluster:
        topic = cluster.create("t", [placed(cluster.directory_id(1, each)) for each in (A, B)])
        cluster.run(50)
        assert cluster.produce(1, topic, partition_id=1)[0].error == ErrorCode.NONE
        disk = cluster.shut_down(1)
        disk.before = broken(B)
        cluster.start(1, disk)
        cluster.run(50)
        hosted = cluster.nodes[1].replicas.registry.get((topic, 1))
        assert hosted is None, f"a second, empty log of {hosted!r} in {hosted.log.directory}"


def one_disk_is_replaced_after_a_clean_stop() -> None:
    with closing(ReplicaCluster(brokers=1, log_dirs=(A, B))) as cluster:
        disk = cluster.shut_down(1)
        checkpoints.take_clean_shutdown(disk, B)
        node = cluster.start(1, disk)
        epoch = node.replicas.logs.previous_broker_epoch
        assert epoch == -1, "a new disk counts as a clean stop"


def a_log_moves_to_another_directory() -> None:
    with closing(ReplicaCluster(brokers=1, log_dirs=(A, B))) as cluster:
        committed(cluster)
        topic = cluster.create("t", [placed(cluster.directory_id(1, A))])
        cluster.run(50)
        produce(cluster, topic, 20)
        before = contents(cluster, topic)
        alter(cluster, "t-0", B)
        moved(cluster, "t-0", B)
        assert contents(cluster, topic) == before, "records are left behind"


def a_broker_is_killed_before_the_controller_knows_the_target() -> None:
    killed_after_the_swap(report_first=False)


def a_broker_is_killed_after_the_swap_of_two_logs() -> None:
    killed_after_the_swap(report_first=True)


def killed_after_the_swap(*, report_first: bool) -> None:
    """Kill the broker in the moment after the swap, when both directories have a log of the
    partition."""
    with closing(ReplicaCluster(brokers=1, log_dirs=(A, B))) as cluster:
        if report_first:
            committed(cluster)
        topic = cluster.create("t", [placed(cluster.directory_id(1, A))])
        cluster.run(50)
        produce(cluster, topic, 20)
        alter(cluster, "t-0", B)
        home = cluster.nodes[1].replicas.logs.home_of
        for _ in range(3000):
            if home(PartitionName("t", 0)) == B:
                break
            cluster.run(0.1)
        acknowledged = 20 + produce(cluster, topic, 5)
        disk = cluster.kill(1)
        committed(cluster)
        cluster.start(1, disk)
        cluster.run(50)
        found = cluster.hosted(1, topic).log.end_offset
        assert found >= acknowledged, f"{acknowledged - found} acknowledged records are lost"

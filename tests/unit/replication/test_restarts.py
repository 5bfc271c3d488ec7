"""The log directory over restarts: clean stops, kills and power losses, deletions, strays and
checkpoints.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from quorate.broker.logs.checkpoint_files import CheckpointFiles
from quorate.quorum.ids import Uuid
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.protocol.errors import ErrorCode
from tests.sim.world.disk import SimDisk
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]

ALONE = led_by(1)
T0 = PartitionName("t", 0)


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    return make_cluster(brokers=1)


def produced(cluster: ReplicaCluster, topic: Uuid, count: int) -> None:
    for index in range(count):
        assert cluster.produce(1, topic, b"v%d" % index)[0].error == 0


def test_clean_restart_trusts_the_log(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    epoch = cluster.nodes[1].epoch
    disk = cluster.shut_down(1)
    assert checkpoints.read_offsets(disk, LOG_DIR, checkpoints.HIGH_WATERMARKS_NAME) == {T0: 3}
    assert checkpoints.read_offsets(disk, LOG_DIR, checkpoints.RECOVERY_POINTS_NAME) == {T0: 3}
    node = cluster.start(1, disk)
    assert node.replicas.logs.previous_broker_epoch == epoch
    cluster.run(20)
    assert cluster.offsets(topic) == {1: (3, 3)}
    assert not disk.exists(f"{LOG_DIR}/{checkpoints.CLEAN_SHUTDOWN_NAME}")


def test_killed_broker_says_so(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    node = cluster.start(1, cluster.kill(1))
    assert node.replicas.logs.previous_broker_epoch == -1
    cluster.run(20)
    assert cluster.offsets(topic)[1][0] == 3


def test_stopped_before_its_logs_were_recovered(cluster: ReplicaCluster) -> None:
    """Found by simulation seed 7015. A broker was killed, started, and stopped cleanly before the
    controller had registered it. It left a clean shutdown file. The next start trusted logs that
    nothing had read since the crash, and acknowledged records were lost."""
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    cluster.start(1, cluster.kill(1))
    disk = cluster.shut_down(1)
    assert not disk.exists(f"{LOG_DIR}/{checkpoints.CLEAN_SHUTDOWN_NAME}")
    cluster.start(1, disk)
    cluster.run(20)
    assert cluster.offsets(topic)[1][0] == 3


def test_clean_shutdown_outlives_a_start_that_opened_nothing(cluster: ReplicaCluster) -> None:
    cluster.create("t", [ALONE])
    cluster.run(20)
    epoch = cluster.nodes[1].epoch
    node = cluster.start(1, cluster.shut_down(1))
    logs = node.replicas.logs
    logs.close(-1, (), lambda error: None)
    cluster.run(20)
    assert checkpoints.take_clean_shutdown(node.disk, LOG_DIR) == epoch


def test_power_cut_keeps_what_was_flushed(make_cluster: MakeCluster) -> None:
    for seed in range(8):
        cluster = make_cluster(brokers=1, seed=seed, flush_checkpoint_interval_ms=1000)
        topic = cluster.create("t", [ALONE])
        cluster.run(20)
        produced(cluster, topic, 3)
        before = cluster.content(1, topic)
        cluster.run(1500)
        produced(cluster, topic, 3)
        cluster.start(1, cluster.cut_power(1))
        cluster.run(20)
        after = cluster.content(1, topic)
        assert after[:3] == before


def test_high_watermark_is_checkpointed_while_running(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    cluster.run(5100)
    disk = cluster.nodes[1].disk
    assert checkpoints.read_offsets(disk, LOG_DIR, checkpoints.HIGH_WATERMARKS_NAME) == {T0: 3}


def test_damaged_checkpoint_is_only_a_lost_hint(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    disk = cluster.shut_down(1)
    checkpoints.replace(disk, f"{LOG_DIR}/{checkpoints.HIGH_WATERMARKS_NAME}", b"0\n9\nrubbish")
    cluster.start(1, disk)
    cluster.run(20)
    assert cluster.offsets(topic) == {1: (3, 3)}, "alone in the ISR it commits anew"


def test_deleted_topic_frees_its_name_at_once(cluster: ReplicaCluster) -> None:
    old = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, old, 3)
    waiting = cluster.fetch(1, old, 3, max_wait_ms=10_000)
    cluster.delete("t")
    new = cluster.create("t", [ALONE])
    assert new != old
    cluster.run(20)
    assert waiting[0].error == ErrorCode.UNKNOWN_TOPIC_ID
    assert cluster.offsets(new) == {1: (0, 0)}
    disk = cluster.nodes[1].disk
    assert sum(name.endswith("-delete") for name in disk.list(LOG_DIR)) == 1
    cluster.run(61_000)
    assert not any(name.endswith("-delete") for name in disk.list(LOG_DIR))
    assert disk.exists(f"{LOG_DIR}/t-0")


def test_deletion_that_a_crash_interrupted_is_finished_at_the_start(
    cluster: ReplicaCluster,
) -> None:
    cluster.create("t", [ALONE])
    cluster.run(20)
    cluster.delete("t")
    cluster.run(20)
    node = cluster.start(1, cluster.kill(1))
    cluster.run(20)
    assert not any(name.endswith("-delete") for name in node.disk.list(LOG_DIR))


def test_nothing_needs_the_directory_of_a_deleted_partition(cluster: ReplicaCluster) -> None:
    cluster.create("t", [ALONE])
    cluster.run(20)
    cluster.delete("t")
    cluster.run(20)
    disk = cluster.kill(1)
    (deleted,) = (name for name in disk.list(LOG_DIR) if name.endswith("-delete"))
    disk.remove_tree(f"{LOG_DIR}/{deleted}")
    cluster.start(1, disk)
    new = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, new, 3)
    assert cluster.offsets(new)[1][0] == 3


def test_strays_are_set_aside_not_deleted(cluster: ReplicaCluster) -> None:
    """No node reads a stray, so that its loss changes nothing."""
    topic = cluster.create("t", [ALONE])
    kept = cluster.create("u", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    disk = cluster.kill(1)
    cluster.delete("t")
    node = cluster.start(1, disk)
    cluster.run(20)
    strays = [name for name in node.disk.list(LOG_DIR) if name.endswith("-stray")]
    assert len(strays) == 1
    assert strays[0].startswith("t-0.")
    assert node.disk.exists(f"{LOG_DIR}/u-0")
    disk = cluster.kill(1)
    disk.remove_tree(f"{LOG_DIR}/{strays[0]}")
    cluster.start(1, disk)
    cluster.run(20)
    produced(cluster, kept, 3)


def test_directory_of_another_topic_of_the_same_name_is_set_aside(cluster: ReplicaCluster) -> None:
    old = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, old, 3)
    disk = cluster.kill(1)
    cluster.delete("t")
    cluster.create("x", [])
    new = cluster.create("t", [ALONE])
    assert new != old
    cluster.start(1, disk)
    cluster.run(20)
    assert cluster.offsets(new) == {1: (0, 0)}


@pytest.mark.parametrize("left", [b"", b"version: 0\ntopic_id: \xff"])
def test_directory_that_lost_its_topic_id_is_nobodys_where_others_have_all(
    make_cluster: MakeCluster, left: bytes
) -> None:
    """A power loss removed partition.metadata, and the topic was created again meanwhile. Records
    of the new topic would have been appended to those of the old one."""
    cluster = make_cluster(brokers=2)
    old = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    for _ in range(3):
        cluster.produce(1, old)
    cluster.run(50)
    assert cluster.offsets(old)[2][0] == 3
    disk = cluster.kill(2)
    file = disk.open(f"{LOG_DIR}/t-0/partition.metadata")
    file.truncate(0)
    file.pwrite(left, 0)
    cluster.delete("t")
    new = cluster.create("t", [led_by(1, 2, isr=(1,))])
    cluster.run(50)
    for _ in range(5):
        cluster.produce(1, new, b"new")
    cluster.start(2, disk)
    cluster.run(1000)
    assert cluster.offsets(new)[2][0] == 5
    assert cluster.content(2, new) == cluster.content(1, new)


def test_directory_that_lost_its_topic_id_is_kept_where_nobody_else_has_all(
    cluster: ReplicaCluster,
) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    disk = cluster.kill(1)
    disk.open(f"{LOG_DIR}/t-0/partition.metadata").truncate(0)
    cluster.start(1, disk)
    cluster.run(20)
    assert cluster.offsets(topic) == {1: (3, 3)}
    path = f"{LOG_DIR}/t-0"
    assert checkpoints.read_partition_metadata(cluster.nodes[1].disk, path) == topic


def test_directory_with_a_damaged_topic_id_is_not_guessed_at(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    disk = cluster.kill(1)
    disk.open(f"{LOG_DIR}/t-0/partition.metadata").pwrite(b"\xff", 12)
    cluster.start(1, disk)
    with pytest.raises(AssertionError, match=r"partition\.metadata:2: no valid topic id"):
        cluster.run(20)


@pytest.mark.parametrize("stop", ["kill", "shut_down"])
def test_directory_with_one_flipped_bit_in_its_topic_id_is_not_of_another_topic(
    cluster: ReplicaCluster, stop: str
) -> None:
    """The only replica set its records aside once, and led an empty partition."""
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    disk = getattr(cluster, stop)(1)
    path = f"{LOG_DIR}/t-0/partition.metadata"
    disk.flip(path, len(disk.content(path)) - 6, 0x02)
    damaged = checkpoints.read_partition_metadata(disk, f"{LOG_DIR}/t-0")
    assert damaged not in (topic, None)
    cluster.start(1, disk)
    with pytest.raises(AssertionError, match=r"partition\.metadata:2: .* in one character"):
        cluster.run(20)
    cluster.failures.clear()
    disk = cluster.kill(1)
    disk.open(path).truncate(0)
    cluster.start(1, disk)
    cluster.run(20)
    assert cluster.offsets(topic) == {1: (3, 3)}


def test_reassigned_away_and_back_starts_empty(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    cluster.change(topic, replicas=(9,), isr=(9,), leader=9)
    cluster.spread()
    cluster.change(topic, replicas=(1,), isr=(1,), leader=1)
    cluster.spread()
    cluster.run(20)
    assert cluster.offsets(topic) == {1: (0, 0)}


def test_older_offsets_are_not_written_over_newer_ones() -> None:
    """A truncation lowers the recovery point while an earlier checkpoint waits for the disk."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs(LOG_DIR)
    files = CheckpointFiles(disk, LOG_DIR)
    waiting = files.writing(checkpoints.RECOVERY_POINTS_NAME, {T0: 100})
    files.write(checkpoints.RECOVERY_POINTS_NAME, {T0: 7})
    waiting()
    assert checkpoints.read_offsets(disk, LOG_DIR, checkpoints.RECOVERY_POINTS_NAME) == {T0: 7}


def test_failed_sync_stops_the_node(cluster: ReplicaCluster) -> None:
    """A failed sync is never repeated (R45 in tests/scenarios)."""
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 1)

    def before(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(5, "Input/output error", path)

    cluster.nodes[1].disk.before = before
    cluster.loop.run_for(61)
    assert len(cluster.failures) == 1
    cluster.failures.clear()


@pytest.mark.parametrize(
    "name",
    [
        checkpoints.HIGH_WATERMARKS_NAME,
        checkpoints.RECOVERY_POINTS_NAME,
        checkpoints.START_OFFSETS_NAME,
    ],
)
def test_checkpoints_that_are_lost_are_only_lost_hints(cluster: ReplicaCluster, name: str) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    for stop in (cluster.shut_down, cluster.kill):
        disk = stop(1)
        if disk.exists(f"{LOG_DIR}/{name}"):
            disk.remove(f"{LOG_DIR}/{name}")
        cluster.start(1, disk)
        cluster.run(20)
        assert cluster.offsets(topic) == {1: (3, 3)}

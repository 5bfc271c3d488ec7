"""The log directory over restarts: clean stops, kills and power losses, deletions, strays and
checkpoints.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from quorate.broker.logs import producer_snapshots
from quorate.broker.logs.checkpoint_files import CheckpointFiles
from quorate.broker.partition.producer_state import ProducerStates
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.replication import replica_manager
from quorate.quorum.ids import Uuid
from quorate.quorum.log import checkpoints
from quorate.quorum.log.batch import read_header
from quorate.quorum.log.names import PartitionName
from quorate.quorum.log.settings import LogSettings
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.quorum.protocol.errors import ErrorCode
from tests.sim.disk import SimDisk
from tests.unit.partition.harness import batch
from tests.unit.replication.cluster import LOG_DIR, Cluster, led_by

MakeCluster = Callable[..., Cluster]

ALONE = led_by(1)
T0 = PartitionName("t", 0)


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> Cluster:
    return make_cluster(brokers=1)


def produced(cluster: Cluster, topic: Uuid, count: int) -> None:
    for index in range(count):
        assert cluster.produce(1, topic, b"v%d" % index)[0].error == 0


def test_clean_restart_trusts_the_log(cluster: Cluster) -> None:
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


def test_killed_broker_says_so(cluster: Cluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    node = cluster.start(1, cluster.kill(1))
    assert node.replicas.logs.previous_broker_epoch == -1
    cluster.run(20)
    assert cluster.offsets(topic)[1][0] == 3


def test_stopped_before_its_logs_were_recovered(cluster: Cluster) -> None:
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


def test_clean_shutdown_outlives_a_start_that_opened_nothing(cluster: Cluster) -> None:
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


def test_high_watermark_is_checkpointed_while_running(cluster: Cluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    cluster.run(5100)
    disk = cluster.nodes[1].disk
    assert checkpoints.read_offsets(disk, LOG_DIR, checkpoints.HIGH_WATERMARKS_NAME) == {T0: 3}


def test_damaged_checkpoint_is_only_a_lost_hint(cluster: Cluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    disk = cluster.shut_down(1)
    checkpoints.replace(disk, f"{LOG_DIR}/{checkpoints.HIGH_WATERMARKS_NAME}", b"0\n9\nrubbish")
    cluster.start(1, disk)
    cluster.run(20)
    assert cluster.offsets(topic) == {1: (3, 3)}, "alone in the ISR it commits anew"


def test_deleted_topic_frees_its_name_at_once(cluster: Cluster) -> None:
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


def test_deletion_that_a_crash_interrupted_is_finished_at_the_start(cluster: Cluster) -> None:
    cluster.create("t", [ALONE])
    cluster.run(20)
    cluster.delete("t")
    cluster.run(20)
    node = cluster.start(1, cluster.kill(1))
    cluster.run(20)
    assert not any(name.endswith("-delete") for name in node.disk.list(LOG_DIR))


def test_strays_are_set_aside_not_deleted(cluster: Cluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.create("u", [ALONE])
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


def test_directory_of_another_topic_of_the_same_name_is_set_aside(cluster: Cluster) -> None:
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
    cluster: Cluster,
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


def test_directory_with_a_damaged_topic_id_is_not_guessed_at(cluster: Cluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    disk = cluster.kill(1)
    disk.open(f"{LOG_DIR}/t-0/partition.metadata").pwrite(b"\xff", 12)
    cluster.start(1, disk)
    with pytest.raises(AssertionError, match=r"partition\.metadata:2: no topic id"):
        cluster.run(20)


def test_reassigned_away_and_back_starts_empty(cluster: Cluster) -> None:
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    produced(cluster, topic, 3)
    cluster.change(topic, replicas=(9,), isr=(9,), leader=9)
    cluster.spread()
    cluster.change(topic, replicas=(1,), isr=(1,), leader=1)
    cluster.spread()
    cluster.run(20)
    assert cluster.offsets(topic) == {1: (0, 0)}


def test_changed_configs_hold_at_once(cluster: Cluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, isr=(1,))])
    cluster.run(20)
    assert cluster.produce(1, topic)[0].error == 0
    cluster.partition_settings = PartitionSettings(min_insync_replicas=2)
    delta = ImageDelta(configs=((TOPIC_RESOURCE, "t"),))
    cluster.nodes[1].replicas.apply(cluster.image, delta)
    assert cluster.produce(1, topic)[0].error == ErrorCode.NOT_ENOUGH_REPLICAS
    cluster.partition_settings = PartitionSettings()
    cluster.nodes[1].replicas.apply(cluster.image, ImageDelta(configs=((BROKER_RESOURCE, ""),)))
    assert cluster.produce(1, topic)[0].error == 0


def test_retention_takes_old_segments_and_tells_followers(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=2, retention_check_interval_ms=1000)
    cluster.log_settings = LogSettings(segment_bytes=100, retention_bytes=250)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    for index in range(6):
        cluster.produce(1, topic, b"%040d" % index)
        cluster.run(20)
    cluster.run(1600)
    starts = [cluster.hosted(each, topic).log.start_offset for each in (1, 2)]
    assert starts[0] == starts[1] > 0
    assert cluster.fetch(1, topic, 0)[0].error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_retention_looks_at_a_few_logs_at_a_time_and_ends_with_the_node(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk's thread closes the logs of a node that stops, so retention must not use them."""
    monkeypatch.setattr(replica_manager, "RETAINED_PER_SLICE", 2)
    cluster = make_cluster(brokers=1)
    cluster.log_settings = LogSettings(segment_bytes=100, retention_bytes=250)
    topic = cluster.create("t", [led_by(1)] * 5)
    cluster.run(50)
    for partition_id in range(5):
        for index in range(6):
            cluster.produce(1, topic, b"%040d" % index, partition_id=partition_id)
    cluster.run(50)
    replicas = cluster.nodes[1].replicas

    def retained() -> list[bool]:
        return [cluster.hosted(1, topic, each).log.start_offset > 0 for each in range(5)]

    replicas._apply_retention()
    assert retained() == [True, True, False, False, False]
    cluster.run(50)
    assert retained() == [True] * 5
    for partition_id in range(5):
        cluster.produce(1, topic, bytes(400), partition_id=partition_id)
    starts = [cluster.hosted(1, topic, each).log.start_offset for each in range(5)]
    replicas._apply_retention()
    replicas.stop()
    cluster.run(50)
    moved = [cluster.hosted(1, topic, each).log.start_offset for each in range(5)]
    assert [now > then for now, then in zip(moved, starts, strict=True)] == [True, True] + [
        False
    ] * 3


def test_follower_behind_the_leaders_start_begins_there(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=2, retention_check_interval_ms=1000)
    cluster.log_settings = LogSettings(segment_bytes=100, retention_bytes=250)
    disk = cluster.kill(2)
    topic = cluster.create("t", [led_by(1, 2, isr=(1,))])
    cluster.run(20)
    for index in range(6):
        cluster.produce(1, topic, b"%040d" % index)
    cluster.run(1600)
    start = cluster.hosted(1, topic).log.start_offset
    assert start > 0
    cluster.start(2, disk)
    cluster.run(1600)
    assert cluster.hosted(2, topic).log.start_offset == start
    assert cluster.content(2, topic) == cluster.content(1, topic)


def test_older_offsets_are_not_written_over_newer_ones() -> None:
    """A truncation lowers the recovery point while an earlier checkpoint waits for the disk."""
    disk = SimDisk(random.Random(0))
    disk.make_dirs(LOG_DIR)
    files = CheckpointFiles(disk, LOG_DIR)
    waiting = files.writing(checkpoints.RECOVERY_POINTS_NAME, {T0: 100})
    files.write(checkpoints.RECOVERY_POINTS_NAME, {T0: 7})
    waiting()
    assert checkpoints.read_offsets(disk, LOG_DIR, checkpoints.RECOVERY_POINTS_NAME) == {T0: 7}


def test_failed_sync_stops_the_node(cluster: Cluster) -> None:
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


def test_r59_duplicates_are_recognised_after_restart_and_leader_change(
    make_cluster: MakeCluster,
) -> None:
    """Redpanda #3039, #3003: a retry became a duplicate after a change of leader."""
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)

    def producer(sequence: int) -> dict[str, Any]:
        return {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}

    for sequence in range(3):
        cluster.produce(1, topic, producer=producer(sequence))
    cluster.run(50)
    cluster.change(topic, leader=2)
    cluster.spread()
    cluster.run(50)
    (again,) = cluster.produce(2, topic, acks=1, producer=producer(2))
    assert (again.error, again.base_offset) == (0, 2)
    disk = cluster.shut_down(2)
    assert disk.exists(f"{LOG_DIR}/t-0/{3:020d}.snapshot")
    cluster.start(2, disk)
    cluster.run(50)
    (again,) = cluster.produce(2, topic, acks=1, producer=producer(2))
    assert (again.error, again.base_offset) == (0, 2)
    (gap,) = cluster.produce(2, topic, acks=1, producer=producer(5))
    assert gap.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    disk = cluster.kill(2)
    disk.remove(f"{LOG_DIR}/t-0/{3:020d}.snapshot")
    cluster.start(2, disk)
    cluster.run(50)
    answers = cluster.produce(2, topic, acks=1, producer=producer(0))
    cluster.run(50)
    (first,) = answers
    assert (first.error, first.base_offset) == (0, 0), "rebuilt from the log"


def test_producer_snapshot_keeps_every_batch_that_a_retry_may_repeat() -> None:
    """Found by simulation seed 141: after kill -9, the retry of a batch before the last one was
    answered OUT_OF_ORDER_SEQUENCE_NUMBER."""
    states = ProducerStates()
    for sequence in range(3):
        data = batch(1, producer_id=7, producer_epoch=0, base_sequence=sequence)
        states.append(read_header(data)._replace(base_offset=sequence))
    loaded = producer_snapshots.decode(producer_snapshots.encode(states))
    assert loaded is not None
    assert list(loaded.producers[7].batches) == list(states.producers[7].batches)


def test_producer_snapshot_round_trip_and_damage() -> None:
    states = ProducerStates()
    assert producer_snapshots.decode(producer_snapshots.encode(states)) is not None
    content = bytearray(producer_snapshots.encode(states))
    content[7] ^= 1
    assert producer_snapshots.decode(bytes(content)) is None
    assert producer_snapshots.decode(b"") is None


@pytest.mark.parametrize(
    "name",
    [
        checkpoints.HIGH_WATERMARKS_NAME,
        checkpoints.RECOVERY_POINTS_NAME,
        checkpoints.START_OFFSETS_NAME,
    ],
)
def test_checkpoints_that_are_lost_are_only_lost_hints(cluster: Cluster, name: str) -> None:
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

"""Logs with damage below their recovery point: repaired from the leader, or refused by the last ISR
member.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import PREFIX_BYTES, batches
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.files.settings import LogSettings
from tests.sim.world.disk import PowerCut, SimDisk
from tests.unit.log.batches import batch
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]
T0 = PartitionName("t", 0)
PATH = f"{LOG_DIR}/t-0"
SEGMENTS = LogSettings(segment_bytes=400, index_interval_bytes=100)


def written(make_cluster: MakeCluster, brokers: int = 3) -> tuple[ReplicaCluster, Uuid]:
    """Write 30 records to all replicas, in several synced segments."""
    cluster = make_cluster(
        brokers=brokers, flush_checkpoint_interval_ms=1000, start_offset_checkpoint_interval_ms=1000
    )
    cluster.log_settings = SEGMENTS
    topic = cluster.create("t", [led_by(*range(1, brokers + 1))])
    cluster.run(50)
    for index in range(30):
        cluster.produce(1, topic, b"v%d" % index)
    cluster.run(2500)
    for node in cluster.nodes.values():
        points = checkpoints.read_offsets(node.disk, LOG_DIR, checkpoints.RECOVERY_POINTS_NAME)
        assert points == {T0: 30}
    return cluster, topic


def logs(disk: SimDisk) -> list[str]:
    return [f"{PATH}/{name}" for name in disk.list(PATH) if name.endswith(".log")]


Damage = Callable[[SimDisk], None]
DAMAGES: dict[str, Damage] = {
    "flipped": lambda disk: disk.flip(logs(disk)[-1], 70),
    "header": lambda disk: disk.flip(logs(disk)[-1], 16),
    "epoch": lambda disk: disk.flip(logs(disk)[-1], 15),
    "missing": lambda disk: disk.remove(logs(disk)[-1]),
    "cut": lambda disk: disk.open(logs(disk)[-1]).truncate(30),
    "misdirected": lambda disk: disk.open(logs(disk)[-1]).pwrite(disk.content(logs(disk)[0]), 0),
    "lost": lambda disk: disk.open(logs(disk)[-1]).pwrite(bytes(120), 0),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_outside_of_the_isr_the_damaged_rest_is_set_aside_and_fetched_again(
    make_cluster: MakeCluster, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, topic = written(make_cluster)
    whole = cluster.content(1, topic)
    disk = cluster.kill(3)
    damage(disk)
    # What the controller does before it takes the new incarnation's registration.
    cluster.change(topic, isr=(1, 2))
    cluster.spread()
    cluster.start(3, disk)
    cluster.run(3000)
    assert cluster.content(3, topic) == whole
    partition = cluster.image.partition(topic, 0)
    assert partition is not None and partition.isr == (1, 2, 3), "it caught up"
    assert "sets the rest aside and fetches it from the leader" in caplog.text
    aside = any(name.endswith(".log.damaged") for name in disk.list(PATH))
    assert aside or "the log ends here" in caplog.text


def test_nothing_is_lost_when_the_others_die_after_it_caught_up(make_cluster: MakeCluster) -> None:
    cluster, topic = written(make_cluster)
    whole = cluster.content(1, topic)
    disk = cluster.kill(3)
    disk.flip(logs(disk)[0], 70)
    disk.flip(logs(disk)[-1], 70)
    cluster.change(topic, isr=(1, 2))
    cluster.spread()
    cluster.start(3, disk)
    cluster.run(3000)
    for other in (1, 2):
        cluster.kill(other)
    cluster.change(topic, isr=(3,), leader=3)
    cluster.spread()
    cluster.run(50)
    assert cluster.content(3, topic) == whole
    assert cluster.fetch(3, topic, 0)[0].high_watermark == 30


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_last_of_an_isr_refuses_and_touches_nothing(
    make_cluster: MakeCluster, damage: Damage
) -> None:
    """It has the only copy. The message names the damaged place and the way out."""
    cluster, _ = written(make_cluster, brokers=1)
    disk = cluster.kill(1)
    damage(disk)
    before = {name: disk.content(f"{PATH}/{name}") for name in disk.list(PATH)}
    cluster.start(1, disk)
    with pytest.raises(AssertionError, match="damaged at byte"):
        cluster.run(50)
    (error,) = cluster.failures
    assert isinstance(error, CorruptLog)
    assert error.path in logs(disk) or error.offset <= 30
    assert "quorate storage verify" in str(error)
    assert before == {name: disk.content(f"{PATH}/{name}") for name in disk.list(PATH)}
    cluster.failures.clear()


def test_a_clean_start_that_meets_damage_does_the_same(make_cluster: MakeCluster) -> None:
    cluster, topic = written(make_cluster)
    whole = cluster.content(1, topic)
    disk = cluster.shut_down(3)
    last = logs(disk)[-1]
    disk.open(last).truncate(len(disk.content(last)) - 5)
    cluster.change(topic, isr=(1, 2))
    cluster.spread()
    cluster.start(3, disk)
    cluster.run(3000)
    assert cluster.content(3, topic) == whole


def test_a_leader_epoch_that_flipped_where_it_was_not_synced_is_fetched_again(
    make_cluster: MakeCluster,
) -> None:
    """If the follower believed the flipped epoch, it could append none of its leader's next
    batches."""
    cluster, topic = written(make_cluster)
    cluster.produce(1, topic, b"not synced")
    cluster.run(50)
    disk = cluster.kill(3)
    *_, (position, header) = batches(disk.content(logs(disk)[-1]))
    assert (header.base_offset, header.leader_epoch) == (30, 0)
    disk.flip(logs(disk)[-1], position + PREFIX_BYTES + 3)
    cluster.produce(1, topic, b"of epoch 0, too")
    cluster.run(50)
    cluster.change(topic, isr=(1, 2), leader=2)
    cluster.spread()
    cluster.run(50)
    cluster.produce(2, topic, b"of epoch 1")
    cluster.start(3, disk)
    cluster.run(3000)
    assert cluster.offsets(topic)[3] == (33, 33)
    assert cluster.content(3, topic) == cluster.content(2, topic)
    partition = cluster.image.partition(topic, 0)
    assert partition is not None and partition.isr == (1, 2, 3), "it caught up"


def test_producers_of_what_was_set_aside_are_forgotten(make_cluster: MakeCluster) -> None:
    """Once, a batch that was set aside counted as a duplicate when its producer sent it again:
    acknowledged, but stored nowhere. The start was clean, with the newest snapshots."""
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(2, 1)])
    cluster.run(50)

    def send(broker_id: int, sequence: int, acks: int = 1) -> int:
        producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
        answers = cluster.produce(broker_id, topic, acks=acks, producer=producer)
        if not answers:  # the producer states are being loaded
            cluster.run(20)
        (answer,) = answers
        assert not answer.error
        return answer.base_offset

    assert [send(2, sequence) for sequence in range(3)] == [0, 1, 2]
    cluster.run(50)
    follower = cluster.kill(1)
    assert send(2, 3) == 3
    disk = cluster.shut_down(2)
    cluster.change(topic, isr=(1,), leader=1)
    cluster.start(1, follower)
    cluster.run(50)
    for _ in range(3):
        cluster.produce(1, topic)
    disk.open(logs(disk)[-1]).truncate(len(disk.content(logs(disk)[-1])) - 5)
    cluster.start(2, disk)
    cluster.run(3000)
    assert cluster.offsets(topic)[2] == (6, 6)
    cluster.change(topic, leader=2)
    cluster.spread()
    cluster.run(50)
    assert send(2, 3) == 6


def refused(cluster: ReplicaCluster) -> None:
    """Do what a node does after a failure."""
    (failure,) = cluster.failures
    cluster.failures.clear()
    cluster.nodes[1].replicas.node_failed(failure)


def test_a_missing_beginning_is_fetched_again(make_cluster: MakeCluster) -> None:
    cluster, topic = written(make_cluster)
    whole = cluster.content(1, topic)
    disk = cluster.shut_down(3)
    disk.remove(logs(disk)[0])
    cluster.change(topic, isr=(1, 2))
    cluster.spread()
    cluster.start(3, disk)
    cluster.run(3000)
    assert cluster.content(3, topic) == whole


def test_a_missing_beginning_that_nobody_else_has_is_refused(make_cluster: MakeCluster) -> None:
    cluster, _ = written(make_cluster, brokers=1)
    disk = cluster.shut_down(1)
    disk.remove(logs(disk)[0])
    before = disk.list(PATH)
    for _ in range(2):
        cluster.start(1, disk)
        with pytest.raises(AssertionError, match="the log began at offset 0"):
            cluster.run(100)
        refused(cluster)
        disk = cluster.kill(1)
        assert disk.list(PATH) == [name for name in before if not name.startswith(f"{0:020}")]


def test_a_missing_directory_is_fetched_again(make_cluster: MakeCluster) -> None:
    cluster, topic = written(make_cluster)
    whole = cluster.content(1, topic)
    disk = cluster.shut_down(3)
    disk.remove_tree(PATH)
    cluster.change(topic, isr=(1, 2))
    cluster.spread()
    cluster.start(3, disk)
    cluster.run(3000)
    assert cluster.content(3, topic) == whole


def test_a_missing_directory_that_nobody_else_has_is_no_empty_log(
    make_cluster: MakeCluster,
) -> None:
    cluster, _ = written(make_cluster, brokers=1)
    disk = cluster.shut_down(1)
    disk.remove_tree(PATH)
    for _ in range(2):  # a supervisor starts it again
        cluster.start(1, disk)
        with pytest.raises(
            AssertionError, match="the directory is gone, and was flushed up to offset 30"
        ):
            cluster.run(100)
        refused(cluster)
        disk = cluster.kill(1)
        assert not disk.exists(PATH)


def test_a_missing_directory_of_what_was_deleted_meanwhile_is_not_missed(
    make_cluster: MakeCluster,
) -> None:
    cluster, _ = written(make_cluster, brokers=1)
    disk = cluster.shut_down(1)
    disk.remove_tree(PATH)
    cluster.delete("t")
    cluster.start(1, disk)
    cluster.run(100)
    new = cluster.create("t", [led_by(1)])
    cluster.run(100)
    assert cluster.produce(1, new)[0].error == 0


def test_a_crash_while_it_is_set_aside_is_repeated(make_cluster: MakeCluster) -> None:
    """Crash at every disk call from the start to the first fetch."""
    for die_after in range(5, 80, 3):
        cluster, topic = written(make_cluster)
        whole = cluster.content(1, topic)
        disk = cluster.kill(3)
        disk.flip(logs(disk)[1], 70)
        disk.flip(logs(disk)[-1], 70)
        cluster.change(topic, isr=(1, 2))
        cluster.spread()
        disk.die_at = disk.calls + die_after
        try:
            cluster.start(3, disk)
            cluster.run(100)
        except BaseException as died:
            assert type(died).__name__ == "PowerCut"
        cluster.failures.clear()
        disk = cluster.cut_power(3)
        cluster.start(3, disk)
        cluster.run(3000)
        assert cluster.content(3, topic) == whole
        cluster.close()


def test_the_recovery_point_is_lowered_before_a_truncation(make_cluster: MakeCluster) -> None:
    """Crash at each disk call of a truncation. The next start must not find the log too short, nor
    trust the records appended after the truncation."""
    cluster, topic = written(make_cluster, brokers=1)
    node = cluster.nodes[1]
    hosted, calls = cluster.hosted(1, topic), node.disk.calls
    hosted.log.truncate_to(7)
    for die_after in range(1, node.disk.calls - calls + 2):
        cluster, topic = written(make_cluster, brokers=1)
        log, disk = cluster.hosted(1, topic).log, cluster.nodes[1].disk
        disk.die_at = disk.calls + die_after
        try:
            log.truncate_to(7)
            log.append(batch(7, 0, [b"other"]), wall_ms=0)
        except PowerCut:
            pass
        cluster.start(1, cluster.cut_power(1))
        cluster.run(50)
        points = checkpoints.read_offsets(
            cluster.nodes[1].disk, LOG_DIR, checkpoints.RECOVERY_POINTS_NAME
        )
        assert points[T0] in (7, 30)
        assert cluster.hosted(1, topic).log.end_offset >= points[T0]


def test_the_high_watermark_is_lowered_before_a_truncation(make_cluster: MakeCluster) -> None:
    """An unclean election removes committed records. After a crash, the follower's log may be as
    long as before, and would show consumers records that no other replica has."""
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    for _ in range(10):
        cluster.produce(1, topic)
    cluster.run(6000)
    follower = cluster.hosted(2, topic)
    assert follower.partition.high_watermark == 10
    disk = cluster.nodes[2].disk
    assert checkpoints.read_offsets(disk, LOG_DIR, checkpoints.HIGH_WATERMARKS_NAME) == {T0: 10}
    follower.partition.truncate_to(3)
    follower.log.append(batch(3, 0, [b"other"] * 7), wall_ms=0)
    assert follower.partition.high_watermark == 3
    cluster.change(topic, isr=(1,))
    cluster.start(2, cluster.kill(2))
    cluster.network.isolate("b2")
    cluster.run(100)
    assert cluster.offsets(topic)[2] == (10, 3)


def test_a_new_topic_is_not_judged_by_the_offsets_of_the_one_before(
    make_cluster: MakeCluster,
) -> None:
    """The old start offset would delete acknowledged records, and the old recovery point would let
    torn writes pass as synced."""
    cluster, topic = written(make_cluster, brokers=1)
    hosted = cluster.hosted(1, topic)
    hosted.log.advance_start(20)
    cluster.run(2500)
    disk = cluster.nodes[1].disk
    assert checkpoints.read_offsets(disk, LOG_DIR, checkpoints.START_OFFSETS_NAME) == {T0: 20}
    cluster.delete("t")
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    for index in range(5):
        cluster.produce(1, topic, b"w%d" % index)
    cluster.start(1, cluster.kill(1))
    cluster.run(50)
    assert cluster.offsets(topic) == {1: (5, 5)}
    assert cluster.hosted(1, topic).log.start_offset == 0

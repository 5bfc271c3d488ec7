"""Logs that start inside of a batch, or above the end of their leader's log."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from quorate.broker.replication.appends.delete_records import DeletionRequest, DeletionResult
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.checkpoints import START_OFFSETS_NAME
from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.protocol.hot.produce import ProducePartition, ProducePartitionResult
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]


def produce(cluster: ReplicaCluster, broker_id: int, topic: Uuid, count: int) -> None:
    """Append one batch of `count` records with acks=all."""
    records = [Record(index, 1_000, None, b"v") for index in range(count)]
    append = ProducePartition("", topic, 0, memoryview(build_batch(records, leader_epoch=0)))
    answers: list[ProducePartitionResult] = []
    cluster.nodes[broker_id].replicas.append([append], -1, 5000, answers.extend)
    cluster.run(50)
    assert [each.error for each in answers] == [0]


def delete(cluster: ReplicaCluster, broker_id: int, topic: str, offset: int) -> None:
    answers: list[DeletionResult] = []
    wanted = [DeletionRequest(topic, 0, offset)]
    cluster.nodes[broker_id].replicas.delete_records(wanted, 5000, answers.extend)
    cluster.run(100)
    assert answers == [DeletionResult(offset, 0)]


def test_new_replica_of_a_log_that_starts_in_the_midst_of_a_batch(
    make_cluster: MakeCluster,
) -> None:
    """The whole first batch is sent. It begins below the start of the empty log, as Kafka
    allows."""
    cluster = make_cluster(brokers=2)
    disk = cluster.kill(2)
    topic = cluster.create("t", [led_by(1, 2, isr=(1,))])
    cluster.run(20)
    produce(cluster, 1, topic, 10)
    produce(cluster, 1, topic, 2)
    delete(cluster, 1, "t", 4)
    cluster.start(2, disk)
    cluster.run(3000)
    assert cluster.offsets(topic) == {1: (12, 12), 2: (12, 12)}
    follower = cluster.hosted(2, topic)
    assert follower.log.start_offset == 4
    assert cluster.content(2, topic) == cluster.content(1, topic)
    partition = cluster.image.partition(topic, 0)
    assert partition is not None and partition.isr == (1, 2)


def test_such_a_replica_that_lacks_a_descriptor_begins_again(make_cluster: MakeCluster) -> None:
    """The log was already reset to the start of the batch when its file could not be opened. Its
    high watermark stayed above its end."""
    cluster = make_cluster(brokers=2)
    disk = cluster.kill(2)
    topic = cluster.create("t", [led_by(1, 2, isr=(1,))])
    cluster.run(20)
    produce(cluster, 1, topic, 10)
    delete(cluster, 1, "t", 4)
    cluster.start(2, disk)
    failed: list[str] = []

    def before(operation: str, path: str) -> None:
        if operation == "pwrite" and path.endswith(".log") and len(failed) < 3:
            failed.append(path)
            raise OutOfFiles(errno.EMFILE, "Too many open files", path)

    cluster.nodes[2].disk.before = before
    cluster.run(20)
    for _ in range(60):
        cluster.run(100)
        follower = cluster.hosted(2, topic)
        assert follower.partition.high_watermark <= follower.log.end_offset
    assert len(failed) == 3
    assert cluster.offsets(topic) == {1: (10, 10), 2: (10, 10)}


def test_follower_whose_log_starts_above_where_it_has_to_cut(make_cluster: MakeCluster) -> None:
    """An unclean election chose a leader whose log ends below the follower's start. The follower
    empties its log; once, an OffsetOutOfRange stopped the node at each start."""
    cluster = make_cluster(brokers=3, replica_lag_time_max_ms=1000)
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    produce(cluster, 1, topic, 1)
    disk = cluster.kill(3)
    cluster.produce(1, topic)
    cluster.run(2500)  # broker 3 leaves the ISR
    for _ in range(8):
        produce(cluster, 1, topic, 1)
    cluster.change(topic, leader=2)
    cluster.spread()
    cluster.run(50)
    produce(cluster, 2, topic, 1)
    delete(cluster, 2, "t", 8)
    cluster.kill(1)
    cluster.start(3, disk)
    cluster.change(topic, leader=3, isr=(3,))
    cluster.spread()
    cluster.run(3000)
    produce(cluster, 3, topic, 1)
    cluster.run(3000)
    assert cluster.offsets(topic) == {2: (2, 2), 3: (2, 2)}
    assert cluster.content(2, topic) == cluster.content(3, topic)[1:]


def test_uncommitted_record_below_the_leaders_log_start(make_cluster: MakeCluster) -> None:
    """A deposed leader's own record lies below the log start of the next leader, whose epochs begin
    there. After `kill -9` the deposed leader has its older log start again."""
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    produce(cluster, 1, topic, 1)
    cluster.run(50)
    disk = cluster.kill(2)
    cluster.produce(1, topic, b"of the deposed leader", acks=1)
    deposed = cluster.kill(1)
    cluster.start(2, disk)
    cluster.change(topic, leader=2, isr=(2,))
    cluster.spread()
    cluster.run(50)
    cluster.produce(2, topic, b"committed", acks=1)
    cluster.run(50)
    delete(cluster, 2, "t", 2)
    cluster.start(1, deposed)
    cluster.run(3000)
    partition = cluster.image.partition(topic, 0)
    assert partition is not None and partition.isr == (2, 1)
    deposed = cluster.kill(1)
    cluster.kill(2)
    cluster.start(1, deposed)
    cluster.change(topic, leader=1, isr=(1,))
    cluster.spread()
    cluster.run(50)
    assert b"of the deposed leader" not in b"".join(cluster.content(1, topic))
    assert cluster.hosted(1, topic).log.end_offset == 2


def test_a_follower_reports_a_log_start_that_its_own_retention_moved(
    make_cluster: MakeCluster,
) -> None:
    """The partition is idle, so nothing else makes the follower name it in a request. The leader
    would send consumers to the follower that read below this start (seed 2935)."""
    cluster = make_cluster(brokers=2)
    cluster.log_settings = LogSettings(segment_bytes=100, retention_bytes=250)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    for index in range(6):
        cluster.produce(1, topic, b"%040d" % index)
    cluster.run(2000)
    leadership = cluster.hosted(1, topic).partition.leadership
    assert leadership is not None and leadership.replicas[2].start_offset == 0
    cluster.nodes[2].replicas._apply_retention()
    start = cluster.hosted(2, topic).log.start_offset
    assert start > 0 == cluster.hosted(1, topic).log.start_offset
    cluster.run(1000)
    assert leadership.replicas[2].start_offset == start


def test_a_follower_that_reports_its_log_start_takes_the_answer_on_its_way(
    make_cluster: MakeCluster,
) -> None:
    """The answer holds the high watermark, and the leader sends that once. The follower ignored
    the answer, and its consumers waited for the last record (simulation, seed 36)."""
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    cluster.produce(1, topic, b"v", acks=1)
    cluster.run(50)
    follower = cluster.hosted(2, topic)
    assert (follower.log.end_offset, follower.partition.high_watermark) == (1, 0)
    cluster.nodes[2].replicas.fetchers.start_moved(follower)
    cluster.run(1200)
    assert follower.partition.high_watermark == 1


def test_a_flipped_bit_of_a_saved_log_start_deletes_nothing(make_cluster: MakeCluster) -> None:
    """1 becomes 5 after a clean stop. The records in between were acknowledged, and gone."""
    cluster = make_cluster(brokers=1)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    for _ in range(10):
        produce(cluster, 1, topic, 1)
    delete(cluster, 1, "t", 1)
    content = cluster.content(1, topic)
    disk = cluster.shut_down(1)
    path = f"{LOG_DIR}/{START_OFFSETS_NAME}"
    assert disk.content(path).endswith(b"t 0 1\n")
    disk.flip(path, len(disk.content(path)) - 2, 0x04)
    cluster.start(1, disk)
    cluster.run(100)
    assert cluster.hosted(1, topic).log.start_offset == 1
    assert cluster.content(1, topic) == content


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_log_that_begins_again_below_its_saved_start_survives_a_restart(
    make_cluster: MakeCluster, *, is_clean: bool
) -> None:
    """An unclean election chose an empty leader. The saved start of the follower stayed at 8:
    `kill -9` deleted the new records, and after a clean stop the broker refused to start."""
    cluster = make_cluster(brokers=2, start_offset_checkpoint_interval_ms=1000)
    empty = cluster.kill(1)
    topic = cluster.create("t", [led_by(2, 1, isr=(2,))])
    cluster.run(50)
    for _ in range(9):
        produce(cluster, 2, topic, 1)
    delete(cluster, 2, "t", 8)
    cluster.run(1500)
    disk = cluster.kill(2)
    assert disk.content(f"{LOG_DIR}/{START_OFFSETS_NAME}").endswith(b"t 0 8\n")
    cluster.start(1, empty)
    cluster.change(topic, leader=1, isr=(1,))
    cluster.spread()
    cluster.run(50)
    cluster.start(2, disk)
    cluster.run(500)
    for _ in range(3):
        produce(cluster, 1, topic, 1)
    cluster.run(1500)
    partition = cluster.image.partition(topic, 0)
    assert partition is not None and partition.isr == (1, 2)
    disk = cluster.shut_down(2) if is_clean else cluster.kill(2)
    cluster.kill(1)
    cluster.change(topic, leader=2, isr=(2,))
    cluster.start(2, disk)
    cluster.run(50)
    assert cluster.offsets(topic) == {2: (3, 3)}
    assert cluster.hosted(2, topic).log.start_offset == 0


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_log_that_restarts_knows_no_batch_that_it_has_lost(
    make_cluster: MakeCluster, *, is_clean: bool
) -> None:
    """A deposed leader's own batch lies below the log start of the next leader. The snapshot of the
    producers at that offset stayed, and after a restart a retry of the batch was acknowledged as a
    repetition, although no replica had it."""
    cluster = make_cluster(brokers=2, flush_checkpoint_interval_ms=100)
    sent = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    produce(cluster, 1, topic, 1)
    cluster.run(50)
    disk = cluster.kill(2)
    cluster.produce(1, topic, b"of the deposed leader", acks=1, producer=sent)
    cluster.run(500)
    deposed = cluster.kill(1)
    assert deposed.exists(f"{LOG_DIR}/t-0/{2:020}.snapshot")
    cluster.start(2, disk)
    cluster.change(topic, leader=2, isr=(2,))
    cluster.spread()
    cluster.run(50)
    cluster.produce(2, topic, b"committed", acks=1)
    cluster.run(50)
    delete(cluster, 2, "t", 2)
    cluster.start(1, deposed)
    cluster.run(3000)
    assert cluster.hosted(1, topic).log.start_offset == 2
    deposed = cluster.shut_down(1) if is_clean else cluster.kill(1)
    cluster.kill(2)
    cluster.start(1, deposed)
    cluster.change(topic, leader=1, isr=(1,))
    cluster.spread()
    cluster.run(50)
    answers = cluster.produce(1, topic, b"of the deposed leader", producer=sent)
    cluster.run(100)
    assert [(each.error, each.base_offset) for each in answers] == [(0, 2)]
    assert cluster.offsets(topic) == {1: (3, 3)}


def test_a_truncation_of_the_batch_that_holds_the_log_start(make_cluster: MakeCluster) -> None:
    """An unclean election chose a deposed leader, whose own records end above the log start of its
    successor. The successor truncates to its log start. That is within a batch, which is removed as
    a whole, so the log ended below its start. A run of retention stopped the broker then."""
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    produce(cluster, 1, topic, 3)
    disk = cluster.kill(2)
    for _ in range(3):
        cluster.produce(1, topic, acks=1)
    cluster.run(50)
    deposed = cluster.kill(1)
    cluster.start(2, disk)
    cluster.change(topic, leader=2, isr=(2,))
    cluster.spread()
    cluster.run(50)
    produce(cluster, 2, topic, 4)
    delete(cluster, 2, "t", 5)
    disk = cluster.shut_down(2)
    cluster.start(1, deposed)
    cluster.change(topic, leader=1, isr=(1,))
    cluster.spread()
    cluster.run(50)
    cluster.start(2, disk)
    while cluster.offsets(topic).get(2, (7, 7))[0] == 7:
        cluster.run(0.1)
    cluster.network.isolate("b1")
    cluster.nodes[2].replicas._apply_retention()
    log = cluster.hosted(2, topic).log
    assert log.start_offset <= cluster.hosted(2, topic).partition.high_watermark <= log.end_offset
    cluster.start(2, cluster.shut_down(2))
    cluster.run(50)
    assert cluster.hosted(2, topic).log.start_offset == 5
    cluster.network.heal()
    cluster.run(3000)
    assert cluster.offsets(topic) == {1: (6, 6), 2: (6, 6)}
    assert cluster.content(2, topic) == cluster.content(1, topic)[-1:]

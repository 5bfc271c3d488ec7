"""The keys that let a broker flush its logs: by records, by time, and with the checkpoints."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.broker.replication.appends import produce
from quorate.broker.replication.appends.delete_records import DeletionRequest, DeletionResult
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]
Callback = Callable[[], None]


def held(cluster: ReplicaCluster, broker_id: int) -> list[Callback]:
    """Let the disk's thread of a broker take as long as the test wants. Return its answers."""
    answers: list[Callback] = []
    cluster.nodes[broker_id].disk._later = answers.append
    return answers


def let_go(answers: list[Callback]) -> None:
    """Let the disk do all of its work."""
    while answers:
        answers.pop(0)()


def test_a_slow_flush_is_logged(
    make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = make_cluster(brokers=1)
    cluster.log_settings = LogSettings(flush_messages=1)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    answers = held(cluster, 1)
    cluster.produce(1, topic, acks=1)
    cluster.run(1200)
    let_go(answers)
    (line,) = [each for each in caplog.messages if each.startswith("the flush of ")]
    assert "/t-0 took 1200 ms: the disk is slow or busy" in line


@pytest.mark.parametrize("acks", [1, -1])
def test_an_append_is_acknowledged_when_it_is_flushed(make_cluster: MakeCluster, acks: int) -> None:
    cluster = make_cluster(brokers=1)
    cluster.log_settings = LogSettings(flush_messages=2)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    log = cluster.hosted(1, topic).log
    assert cluster.produce(1, topic, acks=acks)[0].error == 0, "one record may be unflushed"
    answers = held(cluster, 1)
    second = cluster.produce(1, topic, acks=acks)
    cluster.run(100)
    assert (second, log.flushed_offset) == ([], 0)
    let_go(answers)
    assert [each.error for each in second] == [0]
    assert log.flushed_offset == 2
    flusher = cluster.nodes[1].replicas.logs.directories[0].flusher
    assert (flusher.times.count, flusher.times.sum_us) == (1, 100_000)


def test_requests_share_a_flush(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1)
    cluster.log_settings = LogSettings(flush_messages=1)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    answers = held(cluster, 1)
    flusher = cluster.nodes[1].replicas.logs.directories[0].flusher
    sent = [cluster.produce(1, topic, acks=1) for _ in range(10)]
    cluster.run(10)
    assert sent == [[]] * 10
    let_go(answers)
    assert [each[0].error for each in sent] == [0] * 10
    assert flusher.times.count == 2, "the second one covers all that waited for the first"


def test_a_request_times_out_while_it_waits_for_the_disk(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1)
    cluster.log_settings = LogSettings(flush_messages=1)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    answers = held(cluster, 1)
    sent = cluster.produce(1, topic, acks=1, timeout_ms=200)
    cluster.run(400)
    assert [each.error for each in sent] == [ErrorCode.REQUEST_TIMED_OUT]
    let_go(answers)
    assert len(sent) == 1


def test_batches_that_wait_for_a_stalled_disk_are_bounded(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "MAX_FLUSH_WAITS", 3)
    cluster = make_cluster(brokers=1)
    cluster.log_settings = LogSettings(flush_messages=1)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    answers = held(cluster, 1)
    for _ in range(3):
        cluster.produce(1, topic, timeout_ms=100)
    cluster.run(500)
    sent = cluster.produce(1, topic)
    assert [each.error for each in sent] == [ErrorCode.REQUEST_TIMED_OUT]
    assert cluster.offsets(topic)[1][0] == 3
    let_go(answers)
    assert cluster.produce(1, topic) == []
    assert cluster.offsets(topic)[1][0] == 4


def test_a_leader_that_is_deposed_before_the_flush_does_not_acknowledge(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(brokers=2)
    cluster.log_settings = LogSettings(flush_messages=1)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(20)
    answers = held(cluster, 1)
    sent = cluster.produce(1, topic, acks=1)
    cluster.change(topic, leader=2)
    cluster.spread(1)
    cluster.run(1)
    let_go(answers)
    assert [each.error for each in sent] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_deleted_partition_answers_those_who_wait(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1)
    cluster.log_settings = LogSettings(flush_messages=1)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    answers = held(cluster, 1)
    sent = cluster.produce(1, topic, acks=1)
    cluster.delete("t")
    cluster.run(10)
    let_go(answers)
    assert [each.error for each in sent] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_acknowledged_after_a_flush_survives_power_cuts_everywhere(
    make_cluster: MakeCluster, seed: int
) -> None:
    cluster = make_cluster(brokers=2, seed=seed)
    cluster.log_settings = LogSettings(flush_messages=1)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    sent = [cluster.produce(1, topic, b"%d" % index) for index in range(5)]
    cluster.run(50)
    assert [each[0].error for each in sent] == [0] * 5
    expected = cluster.content(1, topic)
    disks = {each: cluster.cut_power(each) for each in (1, 2)}
    for broker_id, disk in disks.items():
        cluster.start(broker_id, disk)
    cluster.run(50)
    for broker_id in disks:
        found = cluster.content(broker_id, topic)
        assert found == expected, "acknowledged records are lost"


def test_a_follower_flushes_before_it_fetches(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=2)
    cluster.log_settings = LogSettings(flush_messages=1)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    answers = held(cluster, 2)
    sent = cluster.produce(1, topic)
    cluster.run(2000)
    assert cluster.offsets(topic) == {1: (1, 0), 2: (1, 0)}
    assert sent == [], "the fetch offset of the follower would acknowledge the record"
    cluster.change(topic, leader=1)  # a new epoch lets the follower begin anew
    cluster.spread()
    cluster.run(500)
    assert cluster.offsets(topic)[1] == (1, 0)
    let_go(answers)
    cluster.run(50)
    assert cluster.offsets(topic)[1] == (1, 1)


def test_logs_are_flushed_after_their_time(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1, flush_scheduler_interval_ms=100)
    cluster.log_settings = LogSettings(flush_ms=1000)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    log = cluster.hosted(1, topic).log
    cluster.produce(1, topic)
    cluster.run(900)
    assert log.flushed_offset == 0
    cluster.run(250)
    assert log.flushed_offset == 1
    cluster.produce(1, topic)
    cluster.run(700)
    assert log.flushed_offset == 1, "the time counts from the last flush"
    cluster.run(500)
    assert log.flushed_offset == 2


def test_without_a_scheduler_flush_ms_flushes_nothing(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1)
    cluster.log_settings = LogSettings(flush_ms=1000)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    cluster.produce(1, topic)
    cluster.run(30_000)
    assert cluster.hosted(1, topic).log.flushed_offset == 0


def test_log_starts_are_checkpointed_in_their_interval(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1, start_offset_checkpoint_interval_ms=1000)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    for _ in range(3):
        cluster.produce(1, topic)
    deleted: list[DeletionResult] = []
    replicas = cluster.nodes[1].replicas
    replicas.delete_records([DeletionRequest("t", 0, 2)], 1000, deleted.extend)
    cluster.run(500)
    disk = cluster.nodes[1].disk
    assert not disk.exists(f"{LOG_DIR}/{checkpoints.START_OFFSETS_NAME}")
    cluster.run(600)
    starts = checkpoints.read_offsets(disk, LOG_DIR, checkpoints.START_OFFSETS_NAME)
    assert starts == {PartitionName("t", 0): 2}
    assert not disk.exists(f"{LOG_DIR}/{checkpoints.RECOVERY_POINTS_NAME}")


def test_an_interval_of_0_runs_once(make_cluster: MakeCluster) -> None:
    """As in Kafka's scheduler. Otherwise the timer would never let the loop rest."""
    cluster = make_cluster(
        brokers=1, start_offset_checkpoint_interval_ms=0, flush_checkpoint_interval_ms=0
    )
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    cluster.produce(1, topic)
    cluster.run(1000)
    assert cluster.hosted(1, topic).log.flushed_offset == 0


def test_a_flush_by_records_leaves_the_producer_snapshot_to_the_checkpoint(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(brokers=1, flush_checkpoint_interval_ms=1000)
    cluster.log_settings = LogSettings(flush_messages=1)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    cluster.produce(1, topic)
    cluster.run(20)
    disk = cluster.nodes[1].disk
    assert not [name for name in disk.list(f"{LOG_DIR}/t-0") if name.endswith(".snapshot")]
    cluster.run(1500)
    assert [name for name in disk.list(f"{LOG_DIR}/t-0") if name.endswith(".snapshot")]

"""Producer states that must be rebuilt are read by the disk's thread, never by the event loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from quorate.broker.kafka.records import describe_producers
from quorate.broker.kafka.records.describe_producers import DescribeProducersHandler
from quorate.broker.logs import producer_loading
from quorate.broker.partition import partition_producers
from quorate.broker.partition.producer_state import ProducerStates
from quorate.broker.replication.appends import produce
from quorate.quorum.ids import Uuid
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.log import Log
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.produce import ProducePartition, ProducePartitionResult
from quorate.quorum.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from tests.unit.partition.harness import batch
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, led_by
from tests.unit.replication.test_logs import Asked
from tests.unit.replication.test_opening import Thread

MakeCluster = Callable[..., ReplicaCluster]
RECORDS = 30
SNAPSHOT = f"{LOG_DIR}/t-0/{RECORDS:020d}.snapshot"


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_loading, "SCAN_BYTES", 200)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets at which anything reads a log through `Log.read`, as the event loop would."""
    offsets: list[int] = []
    read = Log.read

    def reading(log: Log, offset: int, *arguments: Any, **options: Any) -> bytes:
        offsets.append(offset)
        return read(log, offset, *arguments, **options)

    monkeypatch.setattr(Log, "read", reading)
    return offsets


def loaded(cluster: ReplicaCluster, broker_id: int, topic: Uuid) -> ProducerStates | None:
    return cluster.hosted(broker_id, topic).partition.producers.loaded


def sent(sequence: int, producer_id: int = 7) -> dict[str, Any]:
    return {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}


def filled(cluster: ReplicaCluster) -> Uuid:
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    for sequence in range(RECORDS):
        assert cluster.produce(1, topic, b"v", producer=sent(sequence))[0].error == 0
    return topic


def without_states(cluster: ReplicaCluster) -> tuple[Uuid, Thread]:
    """Return a topic whose leader has restarted and does not know its producers, and the thread of
    its disk."""
    topic = filled(cluster)
    disk = cluster.shut_down(1)
    disk.remove(SNAPSHOT)
    cluster.start(1, disk)
    cluster.run(100)
    assert cluster.hosted(1, topic).partition.producers.loaded is None
    return topic, Thread(cluster, disk)


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    return make_cluster(brokers=1)


def test_an_idempotent_batch_waits_for_the_thread(
    cluster: ReplicaCluster, reads: list[int]
) -> None:
    topic, thread = without_states(cluster)
    reads.clear()
    repeated = cluster.produce(1, topic, b"v", producer=sent(RECORDS - 1))
    following = cluster.produce(1, topic, b"v", producer=sent(RECORDS))
    for _ in range(RECORDS // 2):
        assert not repeated and not following
        assert thread.turn(), "the thread reads the log in more than one step"
    thread.finish()
    assert [(each.error, each.base_offset) for each in (*repeated, *following)] == [
        (0, RECORDS - 1),
        (0, RECORDS),
    ]
    assert reads == [], "the event loop did not read the log"
    assert cluster.hosted(1, topic).log.end_offset == RECORDS + 1


def test_other_batches_do_not_wait(cluster: ReplicaCluster) -> None:
    topic, thread = without_states(cluster)
    waiting = cluster.produce(1, topic, producer=sent(RECORDS))
    assert cluster.produce(1, topic, b"plain")[0].base_offset == RECORDS
    assert not waiting
    thread.finish()
    assert (waiting[0].error, waiting[0].base_offset) == (0, RECORDS + 1)


def test_a_batch_that_waits_too_long_is_not_appended(cluster: ReplicaCluster) -> None:
    topic, thread = without_states(cluster)
    answers = cluster.produce(1, topic, producer=sent(RECORDS), timeout_ms=50)
    cluster.run(100)
    assert [each.error for each in answers] == [ErrorCode.REQUEST_TIMED_OUT]
    thread.finish()
    assert cluster.hosted(1, topic).log.end_offset == RECORDS
    assert cluster.produce(1, topic, producer=sent(RECORDS))[0].base_offset == RECORDS


def test_the_batches_that_wait_are_bounded_also_after_their_timeouts(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "MAX_WAITING_BYTES", 3000)
    topic, thread = without_states(cluster)
    answers = [
        cluster.produce(1, topic, producer=sent(RECORDS + each), timeout_ms=50) for each in range(4)
    ]
    assert [len(each) for each in answers] == [0, 0, 0, 1], "the fourth one is refused immediately"
    cluster.run(100)
    refused = cluster.produce(1, topic, producer=sent(RECORDS))
    answers.append(refused)
    assert {each.error for (each,) in answers} == {ErrorCode.REQUEST_TIMED_OUT}
    thread.finish()
    partition = cluster.hosted(1, topic).partition
    partition.producers.loaded = None
    again = [cluster.produce(1, topic, producer=sent(RECORDS + each)) for each in range(3)]
    thread.finish()
    assert [each.base_offset for (each,) in again] == list(range(RECORDS, RECORDS + 3))


def test_a_batch_that_waits_keeps_no_view_of_its_request(cluster: ReplicaCluster) -> None:
    topic, thread = without_states(cluster)
    records = batch(producer_id=7, producer_epoch=0, base_sequence=RECORDS)
    results: list[ProducePartitionResult] = []
    appends = [ProducePartition("t", topic, 0, memoryview(records))]
    cluster.nodes[1].replicas.append(appends, 1, 1000, results.extend)
    appends.clear()
    records.clear()  # raises BufferError while a view exists
    thread.finish()
    assert [(each.error, each.base_offset) for each in results] == [(0, RECORDS)]


def test_after_a_truncation_the_thread_reads_the_log(
    make_cluster: MakeCluster, reads: list[int]
) -> None:
    """Broker 1 loses all that producer 7 has sent, follows broker 2, and leads again."""
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    for producer_id in range(3):
        cluster.produce(1, topic, b"both", producer=sent(0, producer_id))
    cluster.run(50)
    cluster.change(topic, isr=(1,))
    cluster.spread(1)
    disk = cluster.kill(2)
    cluster.produce(1, topic, b"lost", producer=sent(0))
    cluster.start(2, disk)
    cluster.change(topic, leader=2, isr=(2,))
    cluster.spread()
    cluster.run(100)
    partition = cluster.hosted(1, topic).partition
    assert partition.log.end_offset == 3
    assert partition.producers.loaded is None
    cluster.change(topic, leader=1, isr=(1,))
    cluster.spread()
    cluster.run(50)
    thread = Thread(cluster, cluster.nodes[1].disk)
    reads.clear()
    answers = cluster.produce(1, topic, b"again", acks=1, producer=sent(0, 2))
    assert not answers
    assert not partition.log.read(3, 100) and reads == [3]
    thread.finish()
    assert [(each.error, each.base_offset) for each in answers] == [(0, 2)], "a repetition"
    assert reads == [3]


@pytest.mark.parametrize("noted", [partition_producers.MAX_NOTED, 1])
def test_a_follower_appends_while_its_states_are_loaded(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch, noted: int
) -> None:
    """If it appends more batches than it notes, the thread reads them in another round."""
    monkeypatch.setattr(partition_producers, "MAX_NOTED", noted)
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    for sequence in range(RECORDS):
        cluster.produce(1, topic, b"v", producer=sent(sequence))
    cluster.run(50)
    disk = cluster.shut_down(2)
    disk.remove(SNAPSHOT)
    cluster.start(2, disk)
    cluster.run(1500)
    thread = Thread(cluster, disk)
    for sequence in range(RECORDS, RECORDS + 3):
        cluster.produce(1, topic, b"v", acks=1, producer=sent(sequence))
        cluster.run(600)
    end_offset = cluster.hosted(2, topic).log.end_offset
    assert end_offset == RECORDS + 3, "replication does not wait for the states"
    assert loaded(cluster, 2, topic) is None
    thread.finish()
    states = loaded(cluster, 2, topic)
    assert states is not None
    assert [each.first_sequence for each in states.producers[7].batches] == list(
        range(RECORDS - 2, RECORDS + 3)
    )


def test_a_truncation_starts_the_load_again(cluster: ReplicaCluster) -> None:
    topic, thread = without_states(cluster)
    answers = cluster.produce(1, topic, producer=sent(RECORDS - 5))
    for _ in range(6):
        thread.turn()
    cluster.hosted(1, topic).partition.truncate_to(RECORDS - 5)
    thread.finish()
    assert [(each.error, each.base_offset) for each in answers] == [(0, RECORDS - 5)]


def test_a_load_goes_on_if_only_an_epoch_without_records_is_truncated(
    cluster: ReplicaCluster,
) -> None:
    """A former leader without records in its epoch gets a diverging epoch that ends at its log
    end. Its log keeps its generation, so the load must keep what it has noted."""
    topic, thread = without_states(cluster)
    hosted = cluster.hosted(1, topic)
    answers = cluster.produce(1, topic, producer=sent(RECORDS))
    for _ in range(6):
        thread.turn()
    generation = hosted.log.generation
    hosted.partition.truncate_to(hosted.log.end_offset)
    assert hosted.log.generation == generation
    thread.finish()
    assert [(each.error, each.base_offset) for each in answers] == [(0, RECORDS)]


def test_a_round_begins_at_the_log_start_if_that_has_passed_the_last_round(
    cluster: ReplicaCluster,
) -> None:
    """The segments below the log start are removed, so a round cannot read them."""
    topic, thread = without_states(cluster)
    hosted = cluster.hosted(1, topic)
    replicas = cluster.nodes[1].replicas
    replicas.load_producers(hosted)
    for _ in range(4):
        thread.turn()  # finds no snapshot, and begins the first round, which keeps its file open
    producers = hosted.partition.producers
    producers._overflowed = True
    end_offset = hosted.log.end_offset
    hosted.log.settings = replace(hosted.log.settings, segment_bytes=1)
    for value in (b"a", b"b"):
        cluster.produce(1, topic, value)
    hosted.log.advance_start(end_offset + 1)
    assert replicas.logs.apply_retention(hosted.log, hosted.partition.high_watermark)
    thread.finish()
    assert producers.loaded is not None


def test_one_partition_is_loaded_at_a_time(cluster: ReplicaCluster) -> None:
    """Other work of the disk waits for one step, however many partitions are loaded."""
    topic, thread = without_states(cluster)
    replicas = cluster.nodes[1].replicas
    hosted = cluster.hosted(1, topic)
    replicas.load_producers(hosted)
    other = cluster.create("u", [led_by(1)])
    cluster.run(20)
    second = cluster.hosted(1, other)
    second.partition.producers.loaded = None
    replicas.load_producers(second)
    assert len(replicas._producer_loader) == 2
    assert len(cluster.nodes[1].disk._jobs) == 1
    thread.finish()
    assert len(replicas._producer_loader) == 0
    assert hosted.partition.producers.loaded is not None
    assert second.partition.producers.loaded is not None


def test_a_role_change_answers_the_batches_that_wait(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    cluster.hosted(1, topic).partition.producers.loaded = None
    Thread(cluster, cluster.nodes[1].disk)
    answers = cluster.produce(1, topic, producer=sent(0))
    cluster.change(topic, leader=2)
    cluster.spread()
    cluster.run(1)
    assert [each.error for each in answers] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_damage_is_the_answer_of_the_only_replica(cluster: ReplicaCluster) -> None:
    topic, thread = without_states(cluster)
    disk = cluster.nodes[1].disk
    file = disk.open(f"{LOG_DIR}/t-0/{0:020d}.log")
    file.pwrite(b"\xff" * 8, 500)
    answers = cluster.produce(1, topic, producer=sent(RECORDS))
    thread.finish()
    assert [each.error for each in answers] == [ErrorCode.CORRUPT_MESSAGE]
    assert cluster.failures == []


def test_damage_stops_a_broker_whose_peers_have_the_records(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    for sequence in range(RECORDS):
        cluster.produce(1, topic, b"v", producer=sent(sequence))
    cluster.run(50)
    disk = cluster.nodes[1].disk
    cluster.hosted(1, topic).partition.producers.loaded = None
    disk.open(f"{LOG_DIR}/t-0/{0:020d}.log").pwrite(b"\xff" * 8, 500)
    answers = cluster.produce(1, topic, producer=sent(RECORDS))
    cluster.loop.run_for(0.1)
    (failure,) = cluster.failures
    assert isinstance(failure, CorruptLog)
    assert [each.error for each in answers] == [ErrorCode.KAFKA_STORAGE_ERROR]
    cluster.failures.clear()


def test_describe_producers_waits_for_the_states(cluster: ReplicaCluster) -> None:
    _, thread = without_states(cluster)
    asked = Asked()
    request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,)),))
    DescribeProducersHandler(cluster.nodes[1].replicas).handle(asked.context, request)
    before = asked.answer
    thread.finish()
    assert before is None
    (found,) = asked.answer.topics[0].partitions[0].active_producers
    assert (found.producer_id, found.last_sequence) == (7, RECORDS - 1)


def test_describe_producers_is_refused_if_too_many_requests_wait(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describe_producers, "MAX_WAITS", 2)
    _, thread = without_states(cluster)
    requests = [Asked() for _ in range(3)]
    request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,)),))
    for asked in requests:
        DescribeProducersHandler(cluster.nodes[1].replicas).handle(asked.context, request)
    last = requests[2].answer
    thread.finish()
    assert last.topics[0].partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert [each.answer.topics[0].partitions[0].error_code for each in requests[:2]] == [0, 0]


def test_a_batch_larger_than_a_step_is_read_whole(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    cluster.produce(1, topic, b"x" * 1000, producer=sent(0))
    cluster.produce(1, topic, b"y", producer=sent(1))
    hosted = cluster.hosted(1, topic)
    states = ProducerStates()
    parts = producer_loading.log_parts(hosted.log, 0)
    for _ in producer_loading.read_parts(cluster.nodes[1].disk, parts, states):
        pass
    assert [each.first_sequence for each in states.producers[7].batches] == [0, 1]

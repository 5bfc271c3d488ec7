"""The disk's thread opens the logs that a start found, in steps.

The event loop continues meanwhile, and each partition takes its role from the latest metadata.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorate.broker.controller.lifecycle import State
from quorate.broker.logs.producer_loading import log_parts, read_parts
from quorate.broker.partition.producer_state import ProducerStates
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.readiness import broker_reasons
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.incremental_work import finished
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.opening import recovery
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import TOPIC_RESOURCE, MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import batch
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, between, led_by

MakeCluster = Callable[..., ReplicaCluster]
ALONE = led_by(1)
RECORDS = 30


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "STEP_BYTES", 100)


class Thread:
    """The disk's thread. It works only when the test calls it, one piece at a time."""

    def __init__(self, cluster: ReplicaCluster, disk: SimDisk) -> None:
        self._cluster = cluster
        self._waiting: deque[Callable[[], None]] = deque()
        disk._later = self._waiting.append

    def turn(self) -> bool:
        """Do one piece of work, or give one answer. Return False if there was none."""
        if not self._waiting:
            return False
        self._cluster.loop.call_soon(self._waiting.popleft())
        self._cluster.run(1)
        return True

    def finish(self) -> int:
        """Do all work. Return the number of turns."""
        turns = 0
        while self.turn():
            turns += 1
        return turns


def written(
    cluster: ReplicaCluster, name: str = "t", producer: dict[str, Any] | None = None
) -> Uuid:
    topic = cluster.create(name, [ALONE])
    cluster.run(20)
    for index in range(RECORDS):
        sent = {**producer, "base_sequence": index} if producer else None
        assert cluster.produce(1, topic, b"v%d" % index, producer=sent)[0].error == 0
    return topic


def started(cluster: ReplicaCluster, disk: SimDisk) -> Thread:
    cluster.start(1, disk)
    thread = Thread(cluster, disk)
    cluster.run(100)
    return thread


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    return make_cluster(brokers=1)


def test_the_loop_goes_on_while_a_log_is_recovered(
    cluster: ReplicaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "quorate.broker.replication")
    topic = written(cluster)
    before = cluster.content(1, topic)
    thread = started(cluster, cluster.kill(1))
    replicas = cluster.nodes[1].replicas
    for _ in range(RECORDS):
        assert replicas.registry.get((topic, 0)) is None
        assert replicas.unopened == 1
        assert cluster.produce(1, topic)[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER
        cluster.run(1000)
        assert thread.turn()
    assert "the broker is opening its logs: 0 are open, 1 are left" in caplog.text
    thread.finish()
    assert replicas.unopened == 0
    assert cluster.content(1, topic) == before
    assert cluster.produce(1, topic)[0].error == 0


def test_other_work_of_the_disk_waits_for_one_step(cluster: ReplicaCluster) -> None:
    """The fsync of a voter in the same process is such work."""
    topic = written(cluster)
    thread = started(cluster, cluster.kill(1))
    synced: list[object] = []
    cluster.nodes[1].disk.submit(lambda: None, lambda _, error: synced.append(error))
    turns = 0
    while not synced:
        assert thread.turn()
        turns += 1
    assert turns <= 4
    assert cluster.nodes[1].replicas.registry.get((topic, 0)) is None, "it goes on after it"


def test_logs_that_were_closed_in_order_take_one_step(cluster: ReplicaCluster) -> None:
    topics = [written(cluster, name) for name in "tuv"]
    thread = started(cluster, cluster.shut_down(1))
    assert thread.finish() == 2, "the work, and its answer"
    assert all(len(cluster.content(1, topic)) == RECORDS for topic in topics)


def test_a_node_that_ends_in_the_midst_of_it_was_not_closed_in_order(
    cluster: ReplicaCluster,
) -> None:
    """The stop of the node does not wait for gigabytes to be read, either."""
    topic = written(cluster)
    before = cluster.content(1, topic)
    disk = cluster.kill(1)
    thread = started(cluster, disk)
    for _ in range(5):
        thread.turn()
    ended: list[BaseException | None] = []
    cluster.nodes[1].replicas.close(ended.append)
    assert thread.finish() <= 6, "the step that was under way, the other thread, and the end"
    assert ended == [None]
    assert not disk.exists(f"{LOG_DIR}/{checkpoints.CLEAN_SHUTDOWN_NAME}")
    cluster.start(1, cluster.kill(1))
    cluster.run(100)
    assert cluster.content(1, topic) == before


def test_a_topic_that_is_deleted_and_made_anew_meanwhile_starts_empty(
    cluster: ReplicaCluster,
) -> None:
    old = written(cluster)
    disk = cluster.kill(1)
    thread = started(cluster, disk)
    thread.turn()
    cluster.delete("t")
    new = cluster.create("t", [ALONE])
    cluster.run(10)
    thread.finish()
    replicas = cluster.nodes[1].replicas
    assert replicas.registry.get((old, 0)) is None
    assert cluster.offsets(new) == {1: (0, 0)}
    directories = [name for name in disk.list(LOG_DIR) if name.startswith("t-0")]
    assert "t-0" in directories
    (deleted,) = set(directories) - {"t-0"}
    assert deleted.endswith("-delete"), "it is the old one's, as a whole"
    assert disk.content(f"{LOG_DIR}/{deleted}/{0:020d}.log")


def test_a_partition_that_is_moved_away_and_back_meanwhile_is_opened_once(
    cluster: ReplicaCluster,
) -> None:
    topic = written(cluster)
    thread = started(cluster, cluster.kill(1))
    thread.turn()
    cluster.change(topic, replicas=(9,), isr=(9,), leader=9)
    cluster.spread()
    cluster.run(10)
    cluster.change(topic, replicas=(1,), isr=(1,), leader=1)
    cluster.spread()
    cluster.run(10)
    assert cluster.nodes[1].replicas.unopened == 1
    thread.finish()
    assert cluster.hosted(1, topic).partition.leader_epoch == 2
    assert cluster.offsets(topic) == {1: (RECORDS, RECORDS)}


def test_a_partition_that_is_moved_away_meanwhile_is_deleted(cluster: ReplicaCluster) -> None:
    topic = written(cluster)
    disk = cluster.kill(1)
    thread = started(cluster, disk)
    thread.turn()
    cluster.change(topic, replicas=(9,), isr=(9,), leader=9)
    cluster.spread()
    cluster.run(10)
    thread.finish()
    assert len(cluster.nodes[1].replicas.registry) == 0
    assert not disk.exists(f"{LOG_DIR}/t-0")


def test_configs_that_change_meanwhile_hold(cluster: ReplicaCluster) -> None:
    """KAFKA-8813."""
    topic = written(cluster)
    thread = started(cluster, cluster.kill(1))
    thread.turn()
    cluster.partition_settings = PartitionSettings(min_insync_replicas=2)
    delta = ImageDelta(configs=((TOPIC_RESOURCE, "t"),))
    cluster.nodes[1].replicas.apply(cluster.image, delta)
    thread.finish()
    assert cluster.hosted(1, topic).partition.settings.min_insync_replicas == 2


def test_damage_that_the_thread_finds_stops_the_node(cluster: ReplicaCluster) -> None:
    """The logs that were opened before the damage are closed cleanly, because nothing has changed
    in them."""
    topics = [written(cluster, name) for name in "tu"]
    epoch = cluster.nodes[1].epoch
    disk = cluster.shut_down(1)
    path = f"{LOG_DIR}/u-0/{0:020d}.log"
    disk.open(path).truncate(len(disk.content(path)) - 5)
    thread = started(cluster, disk)
    cluster.loop.call_soon(thread._waiting.popleft())
    cluster.loop.run_for(0.01)
    cluster.loop.call_soon(thread._waiting.popleft())
    cluster.loop.run_for(0.01)
    (failure,) = cluster.failures
    cluster.failures.clear()
    assert isinstance(failure, CorruptLog)
    registry = cluster.nodes[1].replicas.registry
    assert [registry.get((topic, 0)) is not None for topic in topics] == [True, False]
    cluster.nodes[1].replicas.node_failed(failure)
    assert checkpoints.take_clean_shutdown(disk, LOG_DIR) == epoch


def test_producers_are_known_when_the_log_is_open(cluster: ReplicaCluster) -> None:
    """Otherwise the first idempotent batch would wait while the log behind the snapshot is read."""
    producer = {"producer_id": 7, "producer_epoch": 0}
    topic = written(cluster, producer=producer)
    started(cluster, cluster.shut_down(1)).finish()
    states = cluster.hosted(1, topic).partition.producers.loaded
    assert states is not None
    assert states.producers[7].batches[-1].last_sequence == RECORDS - 1


def test_a_log_without_producers_is_not_read_for_them_again(cluster: ReplicaCluster) -> None:
    """Once, the first idempotent producer of an old, large log stopped the broker for seconds."""
    topic = written(cluster)
    disk = cluster.shut_down(1)
    assert disk.exists(f"{LOG_DIR}/t-0/{RECORDS:020d}.snapshot")
    cluster.start(1, disk)
    cluster.run(20)
    states = cluster.hosted(1, topic).partition.producers.loaded
    assert states is not None
    assert not states.producers
    inode = disk.inode(f"{LOG_DIR}/t-0/{RECORDS:020d}.snapshot")
    disk = cluster.shut_down(1)
    assert disk.inode(f"{LOG_DIR}/t-0/{RECORDS:020d}.snapshot") is inode, "it was not written again"


def test_a_reading_that_begins_inside_of_the_last_batch_ends(cluster: ReplicaCluster) -> None:
    """DeleteRecords had moved the log start into the only batch. Once, a load of producer states
    read this batch again and again."""
    topic = cluster.create("t", [ALONE])
    cluster.run(20)
    hosted = cluster.hosted(1, topic)
    hosted.log.append(batch(0, 0, [b"a", b"b"]), wall_ms=0)
    hosted.log.advance_start(1)
    states = ProducerStates()
    finished(read_parts(cluster.nodes[1].disk, log_parts(hosted.log, 1), states))
    assert not states.producers


def test_it_is_not_ready_and_says_why(cluster: ReplicaCluster) -> None:
    written(cluster)
    thread = started(cluster, cluster.kill(1))
    replicas = cluster.nodes[1].replicas
    lifecycle = SimpleNamespace(broker_epoch=5, state=State.RECOVERY, heard_ms=0)
    broker = SimpleNamespace(epoch=5, fenced=True)
    core = SimpleNamespace(
        image=SimpleNamespace(brokers={1: broker}),
        me=SimpleNamespace(id=1),
        seams=SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 0)),
        config={"broker.session.timeout.ms": 9000},
    )

    def reasons() -> list[str]:
        return list(broker_reasons(cast(Any, core), cast(Any, lifecycle), replicas.unopened))

    assert reasons()[0] == "the broker is recovering, logs left to open: 1"
    thread.finish()
    assert reasons()[0] == "the broker is recovering"


def test_a_partition_that_is_named_twice_counts_from_its_first_record(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits in the queue of followers, and then in that of leaders. Until it is open, this
    broker has not acted on the first record."""
    cluster = make_cluster(brokers=2)
    cluster.run(50)
    node, acted = cluster.nodes[1], list[int]()
    node.replicas.follow_acted(acted.append)
    with monkeypatch.context() as held:
        held.setattr(cluster, "spread", lambda: None)
        topic = cluster.create("t", [led_by(2, 1)])
    for offset in (10, 20):
        if offset == 20:
            cluster.change(topic, 0, leader=1)
        cluster.image = cluster.image._replace(last=EpochOffset(1, offset))
        delta = between(node.seen or MetadataImage(), cluster.image)
        node.seen = cluster.image
        node.replicas.apply(cluster.image, delta)
    assert acted and max(acted) <= 10
    cluster.run(50)
    assert acted[-1] == 21

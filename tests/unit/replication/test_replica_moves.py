"""Moves of replicas between the log directories of one broker (KIP-113, KIP-858): the rules of the
requests, the copy, and the swap."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.broker.kafka.admin.alter_replica_log_dirs import AlterReplicaLogDirsHandler
from quorate.broker.kafka.admin.describe_log_dirs import DescribeLogDirsHandler
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.replication.directories import move_copy, replica_move, replica_moves
from quorate.broker.replication.partitions.replication_throttle import UNLIMITED
from quorate.quorum.directory_ids import UNASSIGNED
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import finished
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName, future_partition_of
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
)
from tests.unit.replication.cluster import ReplicaCluster, led_by
from tests.unit.replication.moves import (
    A,
    B,
    C,
    alter,
    committed,
    contents,
    future_directories,
    future_log,
    moved,
    placed_in,
    produce,
)
from tests.unit.replication.test_log_directories import SMALL, broken, homes, send_keyed
from tests.unit.replication.test_logs import Asked

MakeCluster = Callable[..., ReplicaCluster]
NONE, STORAGE = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    made = make_cluster(brokers=1, log_dirs=(A, B, C), file_delete_delay_ms=100)
    made.log_settings = SMALL
    committed(made)
    return made


# --- requests


def test_the_errors_of_a_request(cluster: ReplicaCluster) -> None:
    cluster.create("t", [placed_in(cluster, A), led_by(2)])
    cluster.create("x" * 213, [placed_in(cluster, A)])
    cluster.run(50)
    assert alter(cluster, "t-0", "/nowhere") is ErrorCode.LOG_DIR_NOT_FOUND
    assert alter(cluster, "t-1", B) is ErrorCode.REPLICA_NOT_AVAILABLE
    assert alter(cluster, "t-2", B) is UNKNOWN
    assert alter(cluster, "absent-0", B) is UNKNOWN
    assert alter(cluster, "x" * 213 + "-0", B) is NONE
    assert alter(cluster, "x" * 214 + "-0", B) is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert alter(cluster, "t-0", A) is NONE
    cluster.run(50)
    assert not future_directories(cluster, B, "t-0"), "the log is there already"


def test_no_move_begins_while_a_directory_is_offline(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [placed_in(cluster, A), placed_in(cluster, C)])
    cluster.run(50)
    cluster.nodes[1].disk.before = broken(C)
    produce(cluster, topic, 1, partition_id=1)
    cluster.run(50)
    assert alter(cluster, "t-0", C) is STORAGE
    assert alter(cluster, "t-1", B) is STORAGE
    assert alter(cluster, "t-0", B) is STORAGE
    assert alter(cluster, "t-0", A) is NONE


def test_a_directory_is_remembered_for_a_replica_that_comes_later(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_moves, "MAX_PREFERRED", 2)
    for index in range(3):
        assert alter(cluster, f"t-{index}", C) is UNKNOWN
    cluster.create("t", [placed_in(cluster, UNASSIGNED)] * 3)
    cluster.run(50)
    assert homes(cluster, "t-0", "t-1", "t-2") == [A, C, C], "the oldest is removed for a third"
    assert not cluster.nodes[1].replicas.logs.preferred


# --- a move


def test_a_move_ends_in_the_target(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 12)
    before = contents(cluster, topic)
    assert alter(cluster, "t-0", B) is NONE
    assert alter(cluster, "t-0", B) is NONE, "the same move is in progress"
    moved(cluster, "t-0", B)
    assert contents(cluster, topic) == before
    produce(cluster, topic, 3)
    cluster.run(300)
    disk = cluster.nodes[1].disk
    assert [each for each in disk.list(A) if each.startswith("t-0")] == []
    assert [each for each in disk.list(B) if each.startswith("t-0")] == ["t-0"]
    after = contents(cluster, topic)
    assert len(after) == 15
    hosted = cluster.hosted(1, topic)
    hosted.log.check()
    assert hosted.log.epochs.entries and not hosted.moving and not hosted.promised
    disk = cluster.kill(1)
    cluster.start(1, disk)
    cluster.run(50)
    assert homes(cluster, "t-0") == [B]
    assert contents(cluster, topic) == after


def test_a_log_moves_away_and_back(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 5)
    for path in (B, A, C, A):
        assert alter(cluster, "t-0", path) is NONE
        moved(cluster, "t-0", path)
        produce(cluster, topic, 1)
    assert len(contents(cluster, topic)) == 9


def test_records_that_arrive_during_a_move_are_copied(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 40)
    assert alter(cluster, "t-0", B) is NONE
    for _ in range(60):
        produce(cluster, topic, 1)
        cluster.run(5)
    moved(cluster, "t-0", B)
    assert len(contents(cluster, topic)) == 100
    cluster.hosted(1, topic).log.check()


def test_the_target_is_reported_after_the_copy_and_before_the_swap(
    cluster: ReplicaCluster,
) -> None:
    """KIP-858: the controller has recorded the target before the log is there. Until then the
    current log stays, and the move copies on."""
    waiting: list[Callable[[], None]] = []
    cluster.on_assigned = lambda broker_id, key, directory, accepted: waiting.append(accepted)
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 5)
    alter(cluster, "t-0", B)
    assert not cluster.assigned
    cluster.run(1000)
    assert cluster.assigned[1, (topic, 0)] == cluster.directory_id(1, B)
    produce(cluster, topic, 5)
    cluster.run(1000)
    assert homes(cluster, "t-0") == [A], "nothing is accepted yet"
    assert future_log(cluster, topic).end_offset == 10
    waiting[-1]()
    cluster.run(1000)
    assert homes(cluster, "t-0") == [A], "the metadata does not name the target yet"
    cluster.change(topic, directories=(cluster.directory_id(1, B),))
    cluster.spread()
    moved(cluster, "t-0", B)
    assert len(waiting) == 1


def test_a_report_without_an_answer_is_repeated(cluster: ReplicaCluster) -> None:
    reports: list[Uuid] = []
    cluster.on_assigned = lambda broker_id, key, directory, accepted: reports.append(directory)
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    alter(cluster, "t-0", B)
    cluster.run(25_000)
    assert reports == [cluster.directory_id(1, B)] * 3
    cluster.change(topic, leader=1)
    cluster.spread()
    cluster.run(50)
    assert reports == [cluster.directory_id(1, B)] * 3, "not the directory of the current log"


@pytest.mark.parametrize("path", [A, C])
def test_a_move_is_cancelled_by_a_request_for_another_directory(
    cluster: ReplicaCluster, path: str
) -> None:
    """KAFKA-16297: the directory of the current log is reported again."""
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 5)
    alter(cluster, "t-0", B)
    cluster.run(500)
    assert cluster.assigned[1, (topic, 0)] == cluster.directory_id(1, B)
    committed(cluster)
    assert alter(cluster, "t-0", path) is NONE
    assert cluster.assigned[1, (topic, 0)] == cluster.directory_id(1, A)
    moved(cluster, "t-0", path)
    cluster.run(500)
    assert not future_directories(cluster, B, "t-0")
    assert len(contents(cluster, topic)) == 5
    assert not cluster.hosted(1, topic).moving


def test_a_move_is_described_in_both_directories(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DescribeLogDirs: the lag of the future log is that behind the current log's end."""
    monkeypatch.setattr(replica_moves, "MAX_ASSIGNING", 0)
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A)] * 2)
    cluster.run(50)
    for index in range(2):
        produce(cluster, topic, 7, partition_id=index)
        alter(cluster, f"t-{index}", B)
    cluster.run(500)
    size = cluster.hosted(1, topic).log.size_bytes
    found = described(cluster)
    assert found == {
        (A, "t", 0): (size, 0, False),
        (A, "t", 1): (size, 0, False),
        (B, "t", 0): (size, 0, True),
        (B, "t", 1): (0, 7, True),
    }


def described(cluster: ReplicaCluster) -> dict[tuple[str, str, int], tuple[int, int, bool]]:
    asked = Asked()
    handler = DescribeLogDirsHandler(cluster.nodes[1].replicas)
    handler.handle(asked.context, DescribeLogDirsRequest(topics=None))
    return {
        (each.log_dir, topic.name, partition.partition_index): (
            partition.partition_size,
            partition.offset_lag,
            partition.is_future_key,
        )
        for each in asked.answer.results
        for topic in each.topics
        for partition in topic.partitions
    }


def test_the_answer_has_each_partition_once(cluster: ReplicaCluster) -> None:
    """If a partition is named twice, the last directory counts."""
    topic = cluster.create("t", [placed_in(cluster, A)] * 2)
    cluster.run(50)
    asked = Asked()
    request = AlterReplicaLogDirsRequest(
        dirs=tuple(
            AlterReplicaLogDir(
                path=path,
                topics=(AlterReplicaLogDirTopic(name="t", partitions=partitions),),
            )
            for path, partitions in (("/nowhere", (0, 5)), (B, (1, 7)), (C, (1, 0)))
        )
    )
    steps = AlterReplicaLogDirsHandler(cluster.nodes[1].replicas).handle(asked.context, request)
    if steps is not None:
        finished(steps)
    (result,) = asked.answer.results
    assert [(each.partition_index, each.error_code) for each in result.partitions] == [
        (0, ErrorCode.NONE),
        (5, ErrorCode.LOG_DIR_NOT_FOUND),
        (1, ErrorCode.NONE),
        (7, UNKNOWN),
    ]
    cluster.run(100)
    assert not future_directories(cluster, B, "t-1")
    assert cluster.nodes[1].replicas.moves.future_log((topic, 1)) is not None


def test_a_future_log_of_a_restart_is_continued(cluster: ReplicaCluster) -> None:
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A)] * 2)
    cluster.run(50)
    for index in range(2):
        produce(cluster, topic, 8, partition_id=index)
        alter(cluster, f"t-{index}", B)
    cluster.run(1000)
    before = contents(cluster, topic)
    copied = future_directories(cluster, B, "t-0") + future_directories(cluster, B, "t-1")
    assert len(copied) == 2
    disk = cluster.shut_down(1)
    committed(cluster)
    cluster.start(1, disk)
    cluster.run(10)
    assert cluster.hosted(1, topic).moving
    for index in range(2):
        moved(cluster, f"t-{index}", B)
    assert contents(cluster, topic) == before
    assert not disk.list(A) or all(future_partition_of(each) is None for each in disk.list(A))


@pytest.mark.parametrize("removed", [False, True])
def test_a_broker_with_a_future_log_alone_knows_no_clean_shutdown(
    cluster: ReplicaCluster, removed: bool
) -> None:
    """The future log may lack acknowledged records, so that the broker must not stay in an ELR."""
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 8)
    alter(cluster, "t-0", B)
    cluster.run(1000)
    epoch = cluster.nodes[1].epoch
    disk = cluster.shut_down(1)
    if removed:
        disk.rename(f"{A}/t-0", "/elsewhere")
    node = cluster.start(1, disk)
    assert node.replicas.logs.previous_broker_epoch == (-1 if removed else epoch)


@pytest.mark.parametrize("path", [C, A])
def test_a_future_log_that_is_being_opened_is_not_opened_again(
    cluster: ReplicaCluster, path: str
) -> None:
    """The second move to the directory begins when the log that the first one opened is gone."""
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 8)
    alter(cluster, "t-0", B)
    cluster.run(1000)
    before = contents(cluster, topic)
    disk = cluster.kill(1)
    committed(cluster)
    cluster.start(1, disk)
    replicas = cluster.nodes[1].replicas
    while not len(replicas.moves):
        cluster.run(1)
    assert replicas.moves.future_log((topic, 0)) is None, "it is being opened"
    for _ in range(3):
        assert alter(cluster, "t-0", path) is NONE
        assert alter(cluster, "t-0", B) is NONE
    waits = replicas.logs.futures._waits[PartitionName("t", 0)]
    assert len(waits) == 1, "the moves that were cancelled wait no more"
    moved(cluster, "t-0", B)
    cluster.run(500)
    assert not cluster.offline_dirs
    assert contents(cluster, topic) == before
    assert [each for each in disk.list(B) if each.startswith("t-0")] == ["t-0"]


def test_future_directories_of_no_move_are_set_aside(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [placed_in(cluster, A)])
    gone = cluster.create("gone", [placed_in(cluster, A)])
    cluster.run(50)
    disk = cluster.shut_down(1)
    cluster.delete("gone")
    for path, name, topic_id in (
        (A, "t-0", topic),  # the directory of the current log
        (B, "gone-0", gone),
        (B, "t-0", Uuid(b"an earlier topic")),
    ):
        directory = f"{path}/{name}.{'0' * 32}-future"
        disk.make_dir(directory)
        checkpoints.write_partition_metadata(disk, directory, topic_id)
    cluster.start(1, disk)
    cluster.run(200)
    assert not any("-future" in each for path in (A, B) for each in disk.list(path))
    assert len([each for each in disk.list(B) if each.endswith("-stray")]) == 2
    assert homes(cluster, "t-0") == [A]


@pytest.mark.parametrize("earlier_topic", [True, False])
def test_the_offsets_of_a_future_log_go_with_it(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch, earlier_topic: bool
) -> None:
    """A later log of the same name does not begin where the future log of an earlier topic did,
    whether that log was set aside or deleted while it was opened."""
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 8)
    before = contents(cluster, topic)
    disk = cluster.shut_down(1)
    directory = f"{B}/t-0.{'0' * 32}-future"
    disk.make_dir(directory)
    topic_id = Uuid(b"an earlier topic") if earlier_topic else topic
    checkpoints.write_partition_metadata(disk, directory, topic_id)
    starts = {PartitionName("t", 0): 5}
    checkpoints.write_offsets(disk, B, checkpoints.START_OFFSETS_NAME, starts)
    begin = replica_move.ReplicaMove.begin

    def cancelled(move: replica_move.ReplicaMove) -> None:
        begin(move)
        alter(cluster, "t-0", A)

    with monkeypatch.context() as first:
        first.setattr(replica_move.ReplicaMove, "begin", cancelled)
        cluster.start(1, disk)
        cluster.run(200)
    assert not future_directories(cluster, B, "t-0")
    alter(cluster, "t-0", B)
    moved(cluster, "t-0", B)
    cluster.run(500)
    cluster.start(1, cluster.kill(1))
    cluster.run(50)
    assert homes(cluster, "t-0") == [B]
    assert cluster.hosted(1, topic).log.start_offset == 0
    assert contents(cluster, topic) == before


def test_a_new_log_does_not_begin_at_the_start_of_one_that_is_gone(
    cluster: ReplicaCluster,
) -> None:
    """The broker has died after the deletion of a topic, before it wrote its checkpoints again."""
    disk = cluster.shut_down(1)
    starts = {PartitionName("t", 0): 5}
    checkpoints.write_offsets(disk, A, checkpoints.START_OFFSETS_NAME, starts)
    cluster.start(1, disk)
    cluster.run(200)
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 8)
    cluster.start(1, cluster.kill(1))
    cluster.run(50)
    assert cluster.hosted(1, topic).log.start_offset == 0


# --- truncations, deletions and settings during a move


def test_a_truncation_of_the_current_log_truncates_the_future_one(
    make_cluster: MakeCluster,
) -> None:
    """KAFKA-9087, KAFKA-9654, KAFKA-6949: the leader epoch and the log change."""
    cluster = make_cluster(brokers=2, log_dirs=(A, B))
    cluster.log_settings = SMALL
    topic = cluster.create("t", [replace(led_by(1, 2), isr=(1,))])
    cluster.run(50)
    produce(cluster, topic, 6)
    cluster.run(600)
    home = homes(cluster, "t-0")[0]
    target = B if home == A else A
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    assert alter(cluster, "t-0", target) is NONE
    cluster.run(500)
    assert future_log(cluster, topic).end_offset == 6
    cluster.network.partition({"b1"}, {"b2"})
    produce(cluster, topic, 4)
    cluster.run(500)
    assert future_log(cluster, topic).end_offset == 10
    cluster.change(topic, leader=2, isr=(2,))
    cluster.spread(2)
    cluster.run(50)
    produce(cluster, topic, 3, broker_id=2)
    cluster.network.heal()
    cluster.spread()
    cluster.run(3000)
    assert cluster.hosted(1, topic).log.end_offset == 9
    future, current = future_log(cluster, topic), cluster.hosted(1, topic).log
    assert (future.end_offset, future.epochs.entries) == (9, current.epochs.entries)
    assert future.read(0, 1 << 20) == current.read(0, 1 << 20)


def test_the_log_start_of_the_future_log_follows(cluster: ReplicaCluster) -> None:
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 12)
    hosted = cluster.hosted(1, topic)
    hosted.partition.delete_records(2)
    alter(cluster, "t-0", B)
    cluster.run(500)
    assert future_log(cluster, topic).start_offset == 2
    hosted.partition.delete_records(7)
    cluster.run(500)
    assert future_log(cluster, topic).start_offset == 7
    hosted.partition.delete_records(12)
    cluster.run(500)
    assert future_log(cluster, topic).start_offset == 12
    committed(cluster)
    cluster.run(11_000)
    assert homes(cluster, "t-0") == [B]
    assert cluster.hosted(1, topic).log.start_offset == 12


def test_deleted_records_stay_deleted_if_the_broker_dies_after_the_swap(
    cluster: ReplicaCluster,
) -> None:
    """The log start is durable in the target before the swap, as it was in the source."""
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 12)
    alter(cluster, "t-0", B)
    cluster.run(5)
    cluster.hosted(1, topic).partition.delete_records(7)
    cluster.nodes[1].replicas.logs.checkpoint_starts()
    moved(cluster, "t-0", B)
    cluster.start(1, cluster.kill(1))
    cluster.run(50)
    assert homes(cluster, "t-0") == [B]
    assert cluster.hosted(1, topic).log.start_offset == 7


def test_segments_that_wait_for_their_removal_are_gone_after_a_move(
    cluster: ReplicaCluster,
) -> None:
    """KAFKA-16424: the swap changed the paths of renamed files, and the files stayed."""
    cluster.log_settings = replace(SMALL, retention_bytes=300, file_delete_delay_ms=3_000)
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)

    def waiting() -> list[str]:
        disk = cluster.nodes[1].disk
        names = [(path, each) for path in (A, B) for each in disk.list(path) if each[:2] == "t-"]
        files = [
            f"{path}/{each}/{file}" for path, each in names for file in disk.list(f"{path}/{each}")
        ]
        return [each for each in files if each.endswith(".deleted")]

    for target in (B, A):
        produce(cluster, topic, 20)
        cluster.nodes[1].replicas._apply_retention()
        assert waiting()
        alter(cluster, "t-0", target)
        moved(cluster, "t-0", target)
    cluster.run(4_000)
    assert not waiting()
    assert [each for each in cluster.nodes[1].disk.list(B) if each[:2] == "t-"] == []


def test_a_topic_that_is_deleted_during_a_move_leaves_nothing(cluster: ReplicaCluster) -> None:
    for wait_ms in (0, 1, 5, 50, 150, 300):
        topic = cluster.create("t", [placed_in(cluster, A)])
        cluster.run(50)
        produce(cluster, topic, 20)
        alter(cluster, "t-0", B)
        cluster.run(wait_ms)
        cluster.delete("t")
        again = cluster.create("t", [placed_in(cluster, B)])
        cluster.run(100)
        assert homes(cluster, "t-0") == [B]
        assert contents(cluster, again) == []
        cluster.delete("t")
        cluster.run(500)
        for path in (A, B):
            assert not [each for each in cluster.nodes[1].disk.list(path) if each[:2] == "t-"]


def test_a_new_topic_waits_until_the_earlier_log_of_a_move_is_renamed(
    cluster: ReplicaCluster,
) -> None:
    """The swap leaves a directory of the partition's name in the source for a moment."""
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 3)
    alter(cluster, "t-0", B)
    for _ in range(3000):
        if homes(cluster, "t-0") == [B]:
            break
        cluster.run(0.1)
    assert "t-0" in cluster.nodes[1].disk.list(A), "the moment after the swap"
    cluster.delete("t")
    again = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(100)
    assert homes(cluster, "t-0") == [A]
    assert contents(cluster, again) == []


def test_the_cleaner_and_retention_leave_a_moving_replica_alone(
    make_cluster: MakeCluster,
) -> None:
    """KAFKA-16709: both go on after the move."""
    cluster = make_cluster(
        brokers=1,
        log_dirs=(A, B),
        cleaner=CleanerSettings(backoff_ms=100),
        retention_check_interval_ms=100,
        flush_checkpoint_interval_ms=100,
    )
    cluster.partition_settings = PartitionSettings(compacted=True, deletes=True)
    cluster.log_settings = replace(SMALL, retention_bytes=1)
    topic = cluster.create("t", [placed_in(cluster, A), placed_in(cluster, A)])
    cluster.run(50)
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    for index in range(2):
        alter(cluster, f"t-{index}", B)
    for index in range(2):
        send_keyed(cluster, topic, index)
    cluster.run(2000)
    assert cluster.nodes[1].replicas.cleaner.figures.cleanings == 0
    assert [cluster.hosted(1, topic, index).log.start_offset for index in range(2)] == [0, 0]
    committed(cluster)
    cluster.run(25_000)
    assert homes(cluster, "t-0", "t-1") == [B, B]
    assert cluster.hosted(1, topic).log.start_offset > 0


def test_a_compacted_log_is_copied_with_its_gaps_and_its_cleaner_offset(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(
        brokers=1,
        log_dirs=(A, B),
        cleaner=CleanerSettings(backoff_ms=100),
        flush_checkpoint_interval_ms=100,
    )
    cluster.partition_settings = PartitionSettings(compacted=True, deletes=False)
    cluster.log_settings = SMALL
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    send_keyed(cluster, topic, 0)
    cluster.run(3000)
    logs, name = cluster.nodes[1].replicas.logs, PartitionName("t", 0)
    cleaned = logs.cleaner_offset(name)
    before = contents(cluster, topic)
    assert cleaned and len(before) < 60
    committed(cluster)
    alter(cluster, "t-0", B)
    moved(cluster, "t-0", B)
    assert contents(cluster, topic) == before
    assert logs.cleaner_offset(name) == cleaned
    disk = cluster.kill(1)
    cluster.start(1, disk)
    cluster.run(50)
    assert contents(cluster, topic) == before


def test_a_flush_that_an_append_waits_for_is_that_of_the_new_log(
    make_cluster: MakeCluster,
) -> None:
    """flush.messages=1: what is acknowledged is on the disk, also around the swap."""
    cluster = make_cluster(brokers=1, log_dirs=(A, B), file_delete_delay_ms=100)
    cluster.log_settings = LogSettings(flush_messages=1)
    committed(cluster)
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    answers = []
    for step in range(1000):
        answers.append(cluster.produce(1, topic))
        if step == 20:
            alter(cluster, "t-0", B)
        cluster.run(0.3)
    acknowledged = sum(bool(each and each[0].error == 0) for each in answers)
    assert homes(cluster, "t-0") == [B]
    assert all(answers[:950]), "an append waits for the flush of the earlier log"
    disk = cluster.cut_power(1)
    cluster.start(1, disk)
    cluster.run(100)
    assert cluster.hosted(1, topic).log.end_offset >= acknowledged > 300


# --- the throttle


@pytest.mark.parametrize(("rate", "least_ms"), [(UNLIMITED, 0), (10_000, 5_000)])
def test_the_throttle_delays_the_copy(
    make_cluster: MakeCluster, rate: int, least_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`replica.alter.log.dirs.io.max.bytes.per.second`: the copy stops while the rate of the last
    windows is above it."""
    monkeypatch.setattr(move_copy, "COPIED_BYTES", 4096)
    monkeypatch.setattr(replica_move, "TAIL_BYTES", 1024)
    cluster = make_cluster(brokers=1, log_dirs=(A, B), replica_fetch_backoff_ms=100)
    committed(cluster)
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 60, b"v" * 1000)
    cluster.nodes[1].replicas.limit_replication(UNLIMITED, UNLIMITED, rate)
    alter(cluster, "t-0", B)
    cluster.run(max(least_ms - 1000, 0))
    if least_ms:
        assert homes(cluster, "t-0") == [A]
        assert 0 < future_log(cluster, topic).end_offset < 60
    moved(cluster, "t-0", B, 30_000)


@pytest.mark.parametrize(("windows", "seconds"), [(3, 1), (2, 4)])
def test_the_windows_of_the_throttle_are_those_of_the_keys(
    make_cluster: MakeCluster, windows: int, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the rate 0, one piece passes in each period of all windows."""
    monkeypatch.setattr(move_copy, "COPIED_BYTES", 4096)
    monkeypatch.setattr(replica_move, "TAIL_BYTES", 1024)
    cluster = make_cluster(
        brokers=1,
        log_dirs=(A, B),
        replica_fetch_backoff_ms=100,
        move_quota_windows=windows,
        move_quota_window_seconds=seconds,
    )
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 60, b"v" * 1000)
    cluster.nodes[1].replicas.limit_replication(UNLIMITED, UNLIMITED, 0)
    alter(cluster, "t-0", B)
    cluster.run(200)
    first = future_log(cluster, topic).end_offset
    assert 0 < first <= 4
    cluster.run(windows * seconds * 1000 - 400)
    assert future_log(cluster, topic).end_offset == first
    cluster.run(900)
    assert future_log(cluster, topic).end_offset > first


# --- failures of directories


@pytest.mark.parametrize("wait_ms", [0, 2, 20, 400])
def test_the_target_of_a_move_fails(cluster: ReplicaCluster, wait_ms: int) -> None:
    """The replica is served from the source, and the controller learns that it is there."""
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A), placed_in(cluster, B)])
    cluster.run(50)
    produce(cluster, topic, 30)
    alter(cluster, "t-0", B)
    cluster.run(wait_ms)
    promised = cluster.hosted(1, topic).promised
    assert promised == (wait_ms >= 20)
    cluster.nodes[1].disk.before = broken(B)
    produce(cluster, topic, 1, partition_id=1)
    cluster.run(500)
    assert cluster.offline_dirs == [(1, B)]
    assert homes(cluster, "t-0", "t-1") == [A, None]
    hosted = cluster.hosted(1, topic)
    assert not hosted.moving and not hosted.promised
    assert produce(cluster, topic, 2) == 2
    if promised:
        assert cluster.assigned[1, (topic, 0)] == cluster.directory_id(1, A)
    moves = cluster.nodes[1].replicas.moves
    assert (len(moves), moves.moved, moves.failed) == (0, 0, 1)


def test_the_target_of_a_move_fails_during_its_last_flush(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log does not move to a directory that has failed and is about to be taken offline."""
    flushed = replica_move.ReplicaMove._flushed

    def failing(move: replica_move.ReplicaMove) -> None:
        cluster.nodes[1].replicas.survives(OSError(errno.EIO, "it failed", f"{B}/other-0/file"))
        flushed(move)

    monkeypatch.setattr(replica_move.ReplicaMove, "_flushed", failing)
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 30)
    alter(cluster, "t-0", B)
    cluster.run(2000)
    assert cluster.offline_dirs == [(1, B)]
    assert homes(cluster, "t-0") == [A]
    assert produce(cluster, topic, 2) == 2


def test_the_source_of_a_move_fails(cluster: ReplicaCluster) -> None:
    """The replica is offline with its current log. The future log is left to the next start."""
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 30)
    alter(cluster, "t-0", B)
    cluster.run(400)
    cluster.nodes[1].disk.before = broken(A)
    assert cluster.produce(1, topic)[0].error == STORAGE
    cluster.run(500)
    assert cluster.assigned[1, (topic, 0)] == cluster.directory_id(1, A), "not the target"
    assert cluster.nodes[1].replicas.registry.get((topic, 0)) is None
    assert future_directories(cluster, B, "t-0")
    disk = cluster.kill(1)
    disk.before = lambda operation, path: None
    committed(cluster)
    cluster.start(1, disk)
    moved(cluster, "t-0", B)
    assert len(contents(cluster, topic)) == 30


@pytest.mark.parametrize("value", [b"v", b"v" * replica_move.TAIL_BYTES], ids=["tail", "piece"])
def test_a_move_that_cannot_read_the_source_leaves_its_copy(
    cluster: ReplicaCluster, value: bytes
) -> None:
    """The directory of the current log fails, so the copy may be the only log that is left."""
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 30)
    alter(cluster, "t-0", B)
    cluster.run(400)
    disk = cluster.nodes[1].disk

    def unreadable(operation: str, path: str) -> None:
        if operation == "pread":
            broken(A)(operation, path)

    disk.before = unreadable
    assert produce(cluster, topic, 2, value) == 2
    cluster.run(1000)
    assert cluster.offline_dirs == [(1, A)]
    assert cluster.nodes[1].replicas.moves.failed == 1
    assert future_directories(cluster, B, "t-0")
    disk = cluster.kill(1)
    disk.before = lambda operation, path: None
    committed(cluster)
    cluster.start(1, disk)
    moved(cluster, "t-0", B)
    assert len(contents(cluster, topic)) == 32


def test_a_move_whose_error_stops_the_node_leaves_its_copy(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory of the current log is that of the metadata, as it is by default. The node stops
    because of the error, and a new disk in its place leaves only the copy."""
    directories = ReplicaCluster.directories
    monkeypatch.setattr(
        ReplicaCluster,
        "directories",
        lambda self, broker_id: replace(directories(self, broker_id), metadata_dir=A),
    )
    cluster = make_cluster(brokers=1, log_dirs=(A, B))
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 30)
    alter(cluster, "t-0", B)
    cluster.run(400)

    def unreadable(operation: str, path: str) -> None:
        if operation == "pread":
            broken(A)(operation, path)

    cluster.nodes[1].disk.before = unreadable
    assert produce(cluster, topic, 1) == 1
    cluster.loop.run_for(1)
    (error,) = cluster.failures
    assert isinstance(error, OSError) and cluster.nodes[1].replicas.moves.failed == 1
    assert future_directories(cluster, B, "t-0")


def test_the_source_of_many_waiting_moves_fails(cluster: ReplicaCluster) -> None:
    """One failed move begins the next one without a deeper call, so that the node goes on."""
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    many = 300
    topic = cluster.create("t", [placed_in(cluster, A)] * many)
    cluster.run(500)
    for index in range(many):
        produce(cluster, topic, 1, partition_id=index)
        alter(cluster, f"t-{index}", B)
    cluster.run(1000)
    cluster.nodes[1].disk.before = broken(A)
    alter(cluster, "t-0", A)
    cluster.run(2000)
    assert cluster.offline_dirs == [(1, A)]
    assert not len(cluster.nodes[1].replicas.moves)


def test_a_damaged_current_log_ends_the_move(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 4)
    segment = cluster.hosted(1, topic).log.segment_of(0)
    cluster.nodes[1].disk.flip(segment.path, 70)
    alter(cluster, "t-0", B)
    cluster.run(500)
    assert homes(cluster, "t-0") == [A]
    assert not future_directories(cluster, B, "t-0")
    assert not cluster.hosted(1, topic).moving


# --- which log counts at a start


def test_a_start_takes_the_one_of_two_logs_that_the_metadata_names(
    cluster: ReplicaCluster,
) -> None:
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 3)
    disk = cluster.shut_down(1)
    disk.make_dir(f"{B}/t-0")
    checkpoints.write_partition_metadata(disk, f"{B}/t-0", topic)
    cluster.start(1, disk)
    cluster.run(50)
    assert homes(cluster, "t-0") == [A]
    assert len(contents(cluster, topic)) == 3
    assert [each for each in disk.list(B) if each.startswith("t-0") and each.endswith("-stray")]


def test_a_log_may_be_outdated_while_the_directory_that_the_metadata_names_is_offline(
    cluster: ReplicaCluster,
) -> None:
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 3)
    disk = cluster.kill(1)
    cluster.change(topic, directories=(cluster.directory_id(1, B),))
    disk.before = broken(B)
    cluster.start(1, disk)
    cluster.run(50)
    assert homes(cluster, "t-0") == [None]
    disk = cluster.kill(1)
    disk.before = lambda operation, path: None
    cluster.start(1, disk)
    cluster.run(50)
    assert homes(cluster, "t-0") == [A]
    assert cluster.assigned[1, (topic, 0)] == cluster.directory_id(1, A)


def test_a_move_that_lost_its_future_log_is_forgotten(cluster: ReplicaCluster) -> None:
    """The future directory is the only memory of a move. The replica stays where it is."""
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 6)
    alter(cluster, "t-0", B)
    cluster.run(500)
    before = contents(cluster, topic)
    (future,) = future_directories(cluster, B, "t-0")
    disk = cluster.shut_down(1)
    disk.remove_tree(f"{B}/{future}")
    committed(cluster)
    cluster.start(1, disk)
    cluster.run(1000)
    assert not cluster.hosted(1, topic).moving
    assert homes(cluster, "t-0") == [A] and contents(cluster, topic) == before
    alter(cluster, "t-0", B)
    moved(cluster, "t-0", B)


@pytest.mark.parametrize("is_offline", [False, True])
def test_a_future_log_takes_the_place_of_a_log_that_is_gone(
    cluster: ReplicaCluster, is_offline: bool
) -> None:
    """KAFKA-16082: the disk of the current log was replaced, and the metadata names the target.
    While the other disk is only offline, it may have the log."""
    cluster.on_assigned = lambda broker_id, key, directory, accepted: None
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 6)
    alter(cluster, "t-0", B)
    cluster.run(500)
    assert future_log(cluster, topic).end_offset == 6
    cluster.change(topic, directories=(cluster.directory_id(1, B),))
    disk = cluster.kill(1)
    if is_offline:
        disk.before = broken(A)
    else:
        disk.remove_tree(f"{A}/t-0")
    cluster.start(1, disk)
    cluster.run(50)
    assert homes(cluster, "t-0") == [None if is_offline else B]
    if is_offline:
        assert cluster.assigned[1, (topic, 0)] == Uuid((2).to_bytes(16, "big")), "LOST"
    else:
        assert len(contents(cluster, topic)) == 6

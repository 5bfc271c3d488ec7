"""Several log directories on one broker (JBOD): placement, restarts, and the failure of one."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.logs.found_logs import DuplicateLog
from quorate.broker.logs.offset_checkpoints import OffsetCheckpoints
from quorate.broker.partition.settings import PartitionSettings
from quorate.quorum.directory_ids import LOST, MIGRATING, UNASSIGNED
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.produce import ProducePartition
from tests.sim.world.disk import SimDisk
from tests.thirds import THIRDS
from tests.unit.replication.cluster import ReplicaCluster, between, led_by

MakeCluster = Callable[..., ReplicaCluster]
A, B, C = DIRECTORIES = ("/a", "/b", "/c")
SMALL = LogSettings(segment_bytes=300, index_interval_bytes=100)


def homes(cluster: ReplicaCluster, *names: str, broker_id: int = 1) -> list[str | None]:
    logs = cluster.nodes[broker_id].replicas.logs
    found = {}
    for hosted in cluster.nodes[broker_id].replicas.registry:
        found[repr(hosted)] = hosted.log.directory.removesuffix(f"/{hosted!r}")
        assert found[repr(hosted)] in logs.log_dirs
    return [found.get(name) for name in names]


def placed(directory: Uuid, leader: int = 1, *others: int) -> Partition:
    """Return a partition whose first replica the metadata places in `directory`."""
    return replace(led_by(leader, *others), directories=(directory, *(MIGRATING for _ in others)))


def broken(path: str) -> Callable[[str, str], None]:
    """Return a hook with which every disk call below `path` fails."""

    def before(operation: str, file: str) -> None:
        if file == path or file.startswith(f"{path}/"):
            raise OSError(errno.EIO, "EIO", file)

    return before


def test_new_logs_go_to_the_directory_with_the_fewest(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1, log_dirs=DIRECTORIES)
    topic = cluster.create("t", [led_by(1) for _ in range(5)])
    cluster.run(50)
    assert homes(cluster, *(f"t-{i}" for i in range(5))) == [A, B, C, A, B]
    cluster.delete("t")
    cluster.run(50)
    cluster.create("u", [placed(cluster.directory_id(1, C))] * 2)
    cluster.create("v", [led_by(1)])
    cluster.run(50)
    assert homes(cluster, "u-0", "u-1", "v-0") == [C, C, A], "metadata names a directory"
    assert cluster.assigned[1, (topic, 1)] == cluster.directory_id(1, B)


def test_only_directories_that_metadata_does_not_name_are_reported(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(brokers=1, log_dirs=DIRECTORIES)
    b = cluster.directory_id(1, B)
    topic = cluster.create(
        "t", [placed(b), placed(UNASSIGNED), placed(Uuid(b"an unknown disk.")), led_by(1)]
    )
    cluster.run(50)
    assert homes(cluster, *(f"t-{i}" for i in range(4))) == [B, A, C, A]
    reported = {index: directory for (_, (_, index)), directory in cluster.assigned.items()}
    assert reported == {
        1: cluster.directory_id(1, A),
        2: cluster.directory_id(1, C),
        3: cluster.directory_id(1, A),
    }
    cluster.assigned.clear()
    cluster.change(topic, 1, directories=(cluster.directory_id(1, A),))
    cluster.spread()
    cluster.run(50)
    assert not cluster.assigned


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_finds_all_directories(make_cluster: MakeCluster, clean: bool) -> None:
    cluster = make_cluster(brokers=1, log_dirs=DIRECTORIES, flush_checkpoint_interval_ms=500)
    topic = cluster.create("t", [led_by(1) for _ in range(4)])
    cluster.run(50)
    for index in range(4):
        for _ in range(index + 1):
            assert cluster.produce(1, topic, partition_id=index)[0].error == 0
    cluster.run(600)
    before = homes(cluster, *(f"t-{i}" for i in range(4)))
    epoch = cluster.nodes[1].epoch
    for path in DIRECTORIES:
        points = checkpoints.read_offsets(
            cluster.nodes[1].disk, path, checkpoints.RECOVERY_POINTS_NAME
        )
        assert {str(name) for name in points} == {
            f"t-{i}" for i, home in enumerate(before) if home == path
        }
    disk = cluster.shut_down(1) if clean else cluster.kill(1)
    node = cluster.start(1, disk)
    cluster.run(50)
    assert node.replicas.logs.previous_broker_epoch == (epoch if clean else -1)
    assert homes(cluster, *(f"t-{i}" for i in range(4))) == before
    assert [cluster.hosted(1, topic, i).log.end_offset for i in range(4)] == [1, 2, 3, 4]


def test_a_shutdown_is_clean_only_if_all_directories_say_the_same(
    make_cluster: MakeCluster,
) -> None:
    """A new disk in place of an old one has no clean shutdown file. Its broker must not stay in an
    ELR."""
    cluster = make_cluster(brokers=1, log_dirs=DIRECTORIES)
    disk = cluster.shut_down(1)
    checkpoints.take_clean_shutdown(disk, B)
    node = cluster.start(1, disk)
    assert node.replicas.logs.previous_broker_epoch == -1


def test_a_partition_in_two_directories_is_refused(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1, log_dirs=DIRECTORIES)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    disk = cluster.shut_down(1)
    disk.make_dir(f"{C}/t-0")
    checkpoints.write_partition_metadata(disk, f"{C}/t-0", topic)
    cluster.start(1, disk)
    with pytest.raises(AssertionError, match="t-0 is in both /a and /c"):
        cluster.run(50)
    assert isinstance(cluster.failures[0], DuplicateLog)


def test_a_directory_of_an_earlier_topic_is_set_aside(make_cluster: MakeCluster) -> None:
    """KAFKA-16157: a topic was deleted and created again while its directory was offline."""
    cluster = make_cluster(brokers=1, log_dirs=DIRECTORIES)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    assert cluster.produce(1, topic)[0].error == 0
    disk = cluster.shut_down(1)
    disk.make_dir(f"{C}/t-0")
    checkpoints.write_partition_metadata(disk, f"{C}/t-0", Uuid(b"an earlier topic"))
    cluster.start(1, disk)
    cluster.run(50)
    assert cluster.hosted(1, topic).log.end_offset == 1
    assert [each for each in disk.list(C) if each.endswith("-stray")]
    assert "t-0" not in disk.list(C)


# --- failures


def served(cluster: ReplicaCluster, topic: Uuid, partition_id: int) -> ErrorCode:
    answers = cluster.produce(1, topic, partition_id=partition_id)
    return ErrorCode.of(answers[0].error)


def send_keyed(cluster: ReplicaCluster, topic: Uuid, partition_id: int) -> None:
    """Append 60 records with the same key, enough for several segments of SMALL."""
    for number in range(60):
        record = Record(0, 1_700_000_000_000, b"key", b"%d" % number * 5)
        data = memoryview(build_batch([record], leader_epoch=0))
        append = ProducePartition("", topic, partition_id, data)
        cluster.nodes[1].replicas.append([append], -1, 30_000, lambda results: None)
        cluster.run(5)


def test_r62_a_failed_directory_costs_only_its_own_partitions(make_cluster: MakeCluster) -> None:
    """KIP-112: the broker answers for the lost partitions, and serves the others."""
    cluster = make_cluster(brokers=1, log_dirs=DIRECTORIES)
    topic = cluster.create("t", [led_by(1) for _ in range(6)])
    cluster.run(50)
    assert homes(cluster, "t-1", "t-4") == [B, B]
    cluster.nodes[1].disk.before = broken(B)
    assert served(cluster, topic, 1) is ErrorCode.KAFKA_STORAGE_ERROR
    cluster.run(50)
    assert cluster.offline_dirs == [(1, B)]
    errors = [served(cluster, topic, index) for index in range(6)]
    gone, fine = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE
    assert errors == [fine, gone, fine, fine, gone, fine]
    fetched = cluster.fetch(1, topic, partition_id=4)[0]
    assert fetched.error == gone
    created = cluster.create("u", [placed(UNASSIGNED)] * 3)
    cluster.run(2000)
    assert set(homes(cluster, "u-0", "u-1", "u-2")) == {A, C}
    assert served(cluster, created, 0) is fine


def test_an_append_without_a_descriptor_fails_alone(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1, log_dirs=(A,))
    cluster.log_settings = SMALL
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    end_offset = cluster.hosted(1, topic).log.end_offset

    def before(operation: str, path: str) -> None:
        if operation == "pwrite" and path.endswith(".log"):
            raise OutOfFiles(errno.EMFILE, "Too many open files", path)

    cluster.nodes[1].disk.before = before
    assert served(cluster, topic, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.hosted(1, topic).log.end_offset == end_offset
    cluster.nodes[1].disk.before = lambda operation, path: None
    assert served(cluster, topic, 0) is ErrorCode.NONE
    assert not cluster.failures and not cluster.offline_dirs


def test_a_follower_without_a_descriptor_fetches_again(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=2, log_dirs=(A,))
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    refused: list[str] = []

    def before(operation: str, path: str) -> None:
        if operation == "pwrite" and path.endswith(".log"):
            refused.append(path)
            raise OutOfFiles(errno.EMFILE, "Too many open files", path)

    cluster.nodes[2].disk.before = before
    cluster.produce(1, topic)
    cluster.run(50)
    assert refused and cluster.hosted(2, topic).log.end_offset == 0
    cluster.nodes[2].disk.before = lambda operation, path: None
    cluster.run(3000)
    assert cluster.hosted(2, topic).log.end_offset == 1
    assert not cluster.failures and not cluster.offline_dirs


def test_requests_that_wait_end_when_the_directory_fails(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1, log_dirs=(A, B))
    topic = cluster.create("t", [led_by(1, 2), led_by(1, 2)])
    cluster.run(50)
    waiting = cluster.produce(1, topic, partition_id=1)
    parked = cluster.fetch(1, topic, 0, partition_id=1, max_wait_ms=60_000)
    assert (waiting, parked) == ([], [])
    cluster.nodes[1].disk.before = broken(B)
    cluster.produce(1, topic, partition_id=1)
    cluster.run(50)
    assert waiting[0].error == parked[0].error == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_read_that_fails_takes_the_directory_offline(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1, log_dirs=(A, B))
    cluster.log_settings = SMALL
    topic = cluster.create("t", [led_by(1), led_by(1)])
    cluster.run(50)
    for _ in range(20):
        assert served(cluster, topic, 1) is ErrorCode.NONE
    cluster.nodes[1].disk.before = broken(B)
    assert cluster.fetch(1, topic, 0, partition_id=1)[0].error == ErrorCode.KAFKA_STORAGE_ERROR
    cluster.run(50)
    assert cluster.offline_dirs == [(1, B)]


def test_a_log_that_was_half_truncated_does_not_lead_before_its_removal(
    make_cluster: MakeCluster,
) -> None:
    """The offsets of such a log contradict its segments, so an append would stop the node."""
    cluster = make_cluster(brokers=2, log_dirs=(A, B))
    cluster.log_settings = SMALL
    topic = cluster.create("t", [led_by(2, 1)])
    cluster.run(50)
    for _ in range(20):
        cluster.produce(2, topic)
        cluster.run(20)
    node, hosted = cluster.nodes[1], cluster.hosted(1, topic)
    end_offset = hosted.log.end_offset
    assert end_offset == 20
    directory = hosted.log.directory.removesuffix(f"/{hosted!r}")

    def before(operation: str, path: str) -> None:
        if operation == "truncate" and path.startswith(directory):
            raise OSError(errno.EIO, "EIO", path)

    node.disk.before = before
    with pytest.raises(OSError) as failed:
        hosted.partition.truncate_to(3)
    assert hosted.log.end_offset == end_offset, "the truncation is half done"
    assert node.replicas.survives(failed.value)
    cluster.change(topic, 0, leader=1, isr=(1,))
    delta = between(node.seen or MetadataImage(), cluster.image)
    node.seen = cluster.image
    node.replicas.apply(cluster.image, delta)
    assert served(cluster, topic, 0) is not ErrorCode.NONE
    cluster.run(50)
    assert served(cluster, topic, 0) is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_last_directory_and_errors_of_no_directory_stop_the_node(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(brokers=1, log_dirs=(A, B))
    replicas = cluster.nodes[1].replicas
    assert not replicas.survives(OSError(errno.EIO, "EIO"))
    assert not replicas.survives(OSError(errno.EIO, "EIO", "/elsewhere/file"))
    assert not replicas.survives(OSError(errno.EIO, "EIO", "/metadata/__cluster_metadata-0/0.log"))
    assert not replicas.survives(OSError(errno.EMFILE, "EMFILE", "/a/t-0/0.log"))
    assert not replicas.survives(ValueError("/a/t-0"))
    assert replicas.survives(OSError(errno.EIO, "EIO", "/a/t-0/0.log"))
    assert replicas.survives(OSError(errno.EIO, "EIO", "/a/t-0/1.log")), "it is offline already"
    assert not replicas.survives(OSError(errno.EIO, "EIO", "/b/t-0/0.log"))
    cluster.run(10)
    assert replicas.survives(OSError(errno.EIO, "EIO", "/a/t-0/0.log"))
    assert not replicas.survives(OSError(errno.EIO, "EIO", "/b/t-0/0.log"))


def test_a_directory_that_cannot_be_read_at_the_start_hides_its_partitions(
    make_cluster: MakeCluster,
) -> None:
    """KAFKA-16234: no second log is made while the first one may be in the offline directory."""
    cluster = make_cluster(brokers=1, log_dirs=DIRECTORIES)
    b = cluster.directory_id(1, B)
    topic = cluster.create("t", [placed(b), placed(cluster.directory_id(1, C)), placed(MIGRATING)])
    cluster.run(50)
    for index in range(3):
        assert served(cluster, topic, index) is ErrorCode.NONE
    assert homes(cluster, "t-0", "t-1", "t-2") == [B, C, A]
    disk = cluster.shut_down(1)
    healthy, disk.before = disk.before, broken(B)
    node = cluster.start(1, disk)
    cluster.create("u", [placed(UNASSIGNED)])
    cluster.run(50)
    assert node.replicas.logs.offline == (B,)
    assert homes(cluster, "t-0", "t-1", "t-2", "u-0") == [None, C, A, A]
    assert served(cluster, topic, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    disk = cluster.kill(1)
    disk.before = healthy
    cluster.start(1, disk)
    cluster.run(50)
    assert homes(cluster, "t-0", "t-1", "t-2", "u-0") == [B, C, A, A]
    assert [cluster.hosted(1, topic, i).log.end_offset for i in range(3)] == [1, 1, 1]


def test_the_only_copy_in_an_unreadable_directory_gets_no_second_log(
    make_cluster: MakeCluster,
) -> None:
    """The broker stopped before it reported the directory, so that the metadata names none."""
    cluster = make_cluster(brokers=2, log_dirs=(A, B))
    topic = cluster.create("t", [placed(UNASSIGNED), placed(UNASSIGNED), placed(UNASSIGNED, 2)])
    cluster.change(topic, 2, replicas=(1, 2), leader=2, directories=(UNASSIGNED, MIGRATING))
    cluster.spread()
    cluster.run(50)
    assert homes(cluster, "t-0", "t-1") == [A, B]
    assert served(cluster, topic, 1) is ErrorCode.NONE
    disk = cluster.kill(1)
    disk.before = broken(B)
    cluster.assigned.clear()
    node = cluster.start(1, disk)
    cluster.create("u", [placed(UNASSIGNED)])
    cluster.run(50)
    assert node.replicas.logs.offline == (B,)
    assert homes(cluster, "t-0", "t-1", "t-2", "u-0") == [A, None, A, A]
    assert served(cluster, topic, 1) is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.assigned[1, (topic, 1)] == LOST


def test_a_second_log_is_made_only_when_the_metadata_names_its_directory(
    make_cluster: MakeCluster,
) -> None:
    """The broker stopped before it reported the directory, and other brokers have all records. The
    next start, which finds both logs, knows by the name which one counts."""
    cluster = make_cluster(brokers=2, log_dirs=(A, B))
    topic = cluster.create("t", [placed(UNASSIGNED), placed(UNASSIGNED, 2)])
    cluster.change(topic, 1, replicas=(1, 2), directories=(UNASSIGNED, MIGRATING))
    cluster.spread()
    cluster.run(50)
    assert homes(cluster, "t-0", "t-1") == [A, B]
    cluster.change(topic, 1, leader=2, isr=(2,))
    disk = cluster.kill(1)
    healthy, disk.before = disk.before, broken(B)
    cluster.assigned.clear()
    cluster.start(1, disk)
    cluster.run(50)
    assert homes(cluster, "t-0", "t-1") == [A, None]
    assert "t-1" not in disk.list(A)
    second = cluster.directory_id(1, A)
    assert cluster.assigned[1, (topic, 1)] == second
    cluster.change(topic, 1, leader_epoch=9)
    cluster.spread()
    cluster.run(50)
    assert homes(cluster, "t-1") == [None]
    cluster.change(topic, 1, directories=(second, MIGRATING))
    cluster.spread()
    cluster.produce(2, topic, partition_id=1)
    cluster.run(1000)
    assert homes(cluster, "t-1") == [A]
    assert cluster.hosted(1, topic, 1).log.end_offset == 1
    disk = cluster.kill(1)
    disk.before = healthy
    cluster.start(1, disk)
    cluster.run(50)
    assert homes(cluster, "t-1") == [A]
    assert [each for each in disk.list(B) if each.startswith("t-1.") and each.endswith("-stray")]


def test_a_topic_that_is_deleted_while_offline_may_be_created_again(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(brokers=1, log_dirs=(A, B))
    cluster.create("t", [led_by(1), led_by(1)])
    cluster.run(50)
    cluster.nodes[1].disk.before = broken(B)
    cluster.nodes[1].replicas.logs.checkpoint_starts()
    cluster.produce(1, cluster.image.topic_ids["t"], partition_id=1)
    cluster.run(50)
    cluster.delete("t")
    topic = cluster.create("t", [placed(UNASSIGNED), placed(UNASSIGNED)])
    cluster.run(50)
    assert homes(cluster, "t-0", "t-1") == [A, A]
    assert served(cluster, topic, 1) is ErrorCode.NONE


def test_a_directory_that_fails_during_the_stop_does_not_spoil_the_others(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(brokers=1, log_dirs=(A, B))
    topic = cluster.create("t", [led_by(1), led_by(1)])
    cluster.run(50)
    for index in range(2):
        assert served(cluster, topic, index) is ErrorCode.NONE
    node = cluster.nodes[1]
    node.disk.before = broken(B)
    ended: list[BaseException | None] = []
    node.replicas.close(ended.append)
    cluster.run(100)
    assert ended == [None]
    assert checkpoints.take_clean_shutdown(node.disk, A) == node.epoch
    node.disk.before = lambda operation, path: None
    assert checkpoints.take_clean_shutdown(node.disk, B) is None


def test_a_directory_that_fails_while_logs_are_opened_hides_only_its_partitions(
    make_cluster: MakeCluster,
) -> None:
    """The broker looks for no log there again. Otherwise it would never be unfenced. It reports the
    logs as lost, because the controller takes a replica without a directory for online."""
    cluster = make_cluster(brokers=1, log_dirs=(A, B))
    topic = cluster.create("t", [placed(UNASSIGNED)] * 6)
    cluster.run(50)
    for index in range(6):
        assert served(cluster, topic, index) is ErrorCode.NONE
    disk = cluster.shut_down(1)
    cluster.assigned.clear()
    calls = 0

    def before(operation: str, file: str) -> None:
        nonlocal calls
        if file.startswith(f"{B}/t-"):
            calls += 1
            assert calls < 100, "the broker opens the same log without end"
            raise OSError(errno.EIO, "EIO", file)

    disk.before = before
    cluster.start(1, disk)
    cluster.run(100)
    assert cluster.nodes[1].replicas.unopened == 0
    assert cluster.offline_dirs == [(1, B)]
    gone, fine = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE
    assert [served(cluster, topic, index) for index in range(6)] == [fine, gone] * 3
    assert [cluster.assigned[1, (topic, index)] for index in (1, 3, 5)] == [LOST] * 3


def test_a_log_that_is_not_taken_over_costs_no_log_in_another_directory(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica of the same batch must not be opened again: it would get a second, empty log."""
    cluster = make_cluster(brokers=1, log_dirs=DIRECTORIES)
    topic = cluster.create("t", [placed(UNASSIGNED)] * 6)
    cluster.run(50)
    for index in range(6):
        assert served(cluster, topic, index) is ErrorCode.NONE
    before = homes(cluster, *(f"t-{i}" for i in range(6)))
    assert before == [A, B, C] * 2
    disk = cluster.shut_down(1)
    lower = OffsetCheckpoints.lower_recovery_point

    def lower_recovery_point(self: OffsetCheckpoints, name: PartitionName, offset: int) -> None:
        if name == PartitionName("t", 4):
            raise OSError(errno.EIO, "EIO", f"{B}/{checkpoints.RECOVERY_POINTS_NAME}")
        lower(self, name, offset)

    monkeypatch.setattr(OffsetCheckpoints, "lower_recovery_point", lower_recovery_point)
    cluster.start(1, disk)
    cluster.run(100)
    assert homes(cluster, *(f"t-{i}" for i in range(6))) == [A, None, C] * 2
    assert [cluster.hosted(1, topic, i).log.end_offset for i in (0, 2, 3, 5)] == [1] * 4


def test_the_cleaner_goes_on_in_the_other_directories(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(
        brokers=1,
        log_dirs=(A, B),
        cleaner=CleanerSettings(backoff_ms=200),
        flush_checkpoint_interval_ms=100,
    )
    cluster.partition_settings = PartitionSettings(compacted=True, deletes=False)
    cluster.log_settings = SMALL
    topic = cluster.create("t", [led_by(1), led_by(1)])
    cluster.run(50)

    def before(operation: str, file: str) -> None:
        if file.startswith(f"{B}/") and file.endswith(".cleaned"):
            raise OSError(errno.EIO, "EIO", file)

    cluster.nodes[1].disk.before = before
    send_keyed(cluster, topic, 1)
    cluster.run(3000)
    assert cluster.offline_dirs == [(1, B)], "the cleaner has met the failure"
    send_keyed(cluster, topic, 0)
    cluster.run(3000)
    assert cluster.nodes[1].replicas.cleaner.figures.cleanings


class Life:
    """One broker with two directories. The calls below the second one begin to fail at a number."""

    def __init__(self, make_cluster: MakeCluster, fail_at: int) -> None:
        self.cluster = make_cluster(
            brokers=1,
            log_dirs=(A, B),
            flush_checkpoint_interval_ms=500,
            retention_check_interval_ms=700,
        )
        self.cluster.log_settings = SMALL
        self.calls = 0
        self.fail_at = fail_at
        self.acknowledged: dict[tuple[Uuid, int], int] = {}
        self.disk.before = self.before
        self.deleted: list[Uuid] = []

    @property
    def disk(self) -> SimDisk:
        return self.cluster.nodes[1].disk

    def before(self, operation: str, file: str) -> None:
        if file == B or file.startswith(f"{B}/"):
            self.calls += 1
            if self.calls >= self.fail_at:
                raise OSError(errno.EIO, "EIO", file)

    def run(self, ms: float) -> None:
        self.cluster.loop.run_for(ms / 1000)
        try:
            self.cluster.loop.raise_failure()
        except OSError as error:  # `on_unhandled` gives it to `NodeCore.fail`
            assert self.cluster.nodes[1].replicas.survives(error), repr(error)
        assert not self.cluster.failures, self.cluster.failures

    def create(self, name: str) -> Uuid:
        topic = self.cluster.create(name, [placed(UNASSIGNED)] * 2)
        self.run(50)
        return topic

    def produce(self, topic: Uuid, count: int) -> None:
        for index in range(2):
            for _ in range(count):
                answers = self.cluster.produce(1, topic, partition_id=index)
                if not answers:
                    self.run(20)
                error = answers[0].error
                assert error in (0, ErrorCode.KAFKA_STORAGE_ERROR), error
                if not error:
                    key = (topic, index)
                    self.acknowledged[key] = self.acknowledged.get(key, 0) + 1

    def script(self) -> None:
        first = self.create("t")
        self.produce(first, 6)
        self.run(1100)
        second = self.create("u")
        self.produce(second, 3)
        self.run(1500)
        self.cluster.delete("u")
        for index in range(2):
            self.acknowledged.pop((second, index), None)
        self.run(100)
        third = self.create("u")
        self.produce(third, 2)
        self.run(6000)
        self.produce(first, 2)

    def again(self) -> None:
        disk = self.cluster.kill(1)
        disk.before = lambda operation, path: None
        self.cluster.start(1, disk)
        self.run(100)
        for (topic, index), count in self.acknowledged.items():
            log = self.cluster.hosted(1, topic, index).log
            assert log.end_offset >= count
            log.check()


@pytest.mark.parametrize("first", THIRDS)
def test_a_directory_fails_at_every_disk_call(make_cluster: MakeCluster, first: int) -> None:
    """The broker continues in the other directory, and a restart finds all acknowledged records."""
    whole = Life(make_cluster, 1 << 30)
    whole.script()
    failed = 0
    for fail_at in range(first, whole.calls, 3):
        life = Life(make_cluster, fail_at)
        life.script()
        logs = life.cluster.nodes[1].replicas.logs
        if life.calls >= fail_at:
            failed += logs.offline == (B,)
            assert logs.offline == (B,), fail_at
        life.again()
    assert failed > 20


@pytest.mark.parametrize("first", THIRDS)
@pytest.mark.parametrize("clean", [True, False])
def test_a_directory_fails_at_every_disk_call_of_a_start(
    make_cluster: MakeCluster, clean: bool, first: int
) -> None:
    """The broker serves the other directory, and a later start finds all acknowledged records. The
    broker had not reported its directories yet."""
    fail_at, calls = 0, 1
    while fail_at < calls:
        life = Life(make_cluster, 1 << 30)
        cluster = life.cluster
        topics = [life.create("t"), life.create("u")]
        for topic in topics:
            life.produce(topic, 6)
        life.run(1200)
        disk = cluster.shut_down(1) if clean else cluster.kill(1)
        life.calls, life.fail_at = 0, fail_at or 1 << 30
        disk.before = life.before
        cluster.start(1, disk)
        for _ in range(10):
            try:
                life.run(150)
            except OSError as error:  # of the retention, as in `Life.run`
                assert cluster.nodes[1].replicas.survives(error), repr(error)
        assert cluster.nodes[1].replicas.unopened == 0
        if fail_at:
            assert cluster.nodes[1].replicas.logs.offline == (B,), fail_at
            assert life.calls < fail_at + 50, "the broker reads the failed directory without end"
        else:
            calls = life.calls
        life.produce(topics[0], 2)
        life.again()
        fail_at += 3 if fail_at else first

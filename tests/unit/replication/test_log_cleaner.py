"""The log cleaner of a broker: it compacts the open logs in the disk's thread, beside requests,
truncations, leader changes, deletions and restarts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from quorate.broker.compaction import cleaning as cleaning_module
from quorate.broker.compaction.cleanable import CompactionSettings
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.logs.log_cleaner import LogCleaner
from quorate.broker.metrics.cleaner import of_cleaner
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.replication.partitions.settings import ReplicationSettings, TopicSettings
from quorate.config.topic_keys import effective_topic_configs, topic_defaults
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import batches, build_batch, records_of
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.produce import ProducePartition
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]
T0 = PartitionName("t", 0)
KEYS = 5
COMPACT = PartitionSettings(compacted=True, deletes=False)


def compacted(make_cluster: MakeCluster, brokers: int = 1, **settings: Any) -> ReplicaCluster:
    cleaner = CleanerSettings(backoff_ms=200, **settings)
    cluster = make_cluster(brokers=brokers, cleaner=cleaner, flush_checkpoint_interval_ms=100)
    cluster.partition_settings = COMPACT
    cluster.log_settings = LogSettings(
        segment_bytes=1000, index_interval_bytes=100, file_delete_delay_ms=100
    )
    return cluster


def send(
    cluster: ReplicaCluster,
    topic: Uuid,
    count: int,
    *,
    leader: int = 1,
    value: bytes | None = None,
    producer: Callable[[int], dict[str, Any]] = lambda number: {},
) -> dict[bytes, bytes | None]:
    """Send records with KEYS different keys, one in each batch. Return the latest values."""
    latest: dict[bytes, bytes | None] = {}
    for number in range(count):
        key, content = b"k%d" % (number % KEYS), value or b"%d" % number * 5
        record = Record(0, 1_700_000_000_000, key, content)
        data = build_batch([record], leader_epoch=0, **producer(number))
        answers: list[Any] = []
        append = ProducePartition("", topic, 0, memoryview(data))
        cluster.nodes[leader].replicas.append([append], -1, 30_000, answers.extend)
        if number % 20 == 0:
            cluster.run(10)
        latest[key] = content
    cluster.run(20)
    return latest


def begin(cluster: ReplicaCluster, **settings: Any) -> LogCleaner:
    """Flush everything, and let the cleaner of a cluster with `threads=0` begin."""
    cluster.run(300)
    cleaner = cluster.nodes[1].replicas.cleaner
    cleaner.configure(replace(cleaner.settings, threads=1, **settings))
    return cleaner


def values(cluster: ReplicaCluster, topic: Uuid, broker: int = 1) -> dict[bytes, bytes | None]:
    found: dict[bytes, bytes | None] = {}
    for batch in cluster.content(broker, topic):
        for position, header in batches(batch):
            for record in records_of(batch, position, header):
                assert record.key is not None
                found[bytes(record.key)] = None if record.value is None else bytes(record.value)
    return found


def count_of(cluster: ReplicaCluster, topic: Uuid, broker: int = 1) -> int:
    return sum(
        header.record_count
        for batch in cluster.content(broker, topic)
        for _, header in batches(batch)
    )


def test_a_compacted_log_stays_bounded_and_keeps_the_latest_values(
    make_cluster: MakeCluster,
) -> None:
    cluster = compacted(make_cluster)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    sizes = []
    for _ in range(6):
        latest = send(cluster, topic, 200)
        cluster.run(3000)
        sizes.append(cluster.hosted(1, topic).log.size_bytes)
        assert values(cluster, topic) == latest
    assert cluster.hosted(1, topic).log.end_offset == 1200
    assert sizes[-1] < 3 * 1000  # the cleaned segment, a dirty one, and the active one
    names = cluster.nodes[1].disk.list(f"{LOG_DIR}/t-0")
    assert not [each for each in names if each.endswith((".deleted", ".swap", ".cleaned"))]
    figures = cluster.nodes[1].replicas.cleaner.figures
    assert figures.cleanings >= 6
    assert figures.recopy_percent < 50


def test_no_flush_waits_for_the_cleaner(make_cluster: MakeCluster) -> None:
    cluster = compacted(make_cluster, threads=0)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 200)
    held: list[Callable[[], None]] = []
    cluster.nodes[1].disk._long_later = held.append
    cleaner = begin(cluster)
    cluster.run(1000)
    assert cleaner.in_progress and held, "a step of the cleaner takes a long time"
    latest = send(cluster, topic, 100)
    cluster.run(1000)
    log = cluster.hosted(1, topic).log
    assert log.flushed_offset == log.end_offset == 300
    while held:
        held.pop(0)()
        cluster.run(10)
    assert cleaner.figures.cleanings > 0
    assert values(cluster, topic) == latest


def test_a_log_without_compact_keeps_everything(make_cluster: MakeCluster) -> None:
    cluster = compacted(make_cluster)
    cluster.partition_settings = PartitionSettings()
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 200)
    cluster.run(3000)
    assert count_of(cluster, topic) == 200


def test_log_cleaner_enable_false_keeps_everything(make_cluster: MakeCluster) -> None:
    cluster = compacted(make_cluster, enabled=False)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 200)
    cluster.run(3000)
    assert count_of(cluster, topic) == 200


def test_the_checkpoint_is_written_and_survives_a_restart(make_cluster: MakeCluster) -> None:
    cluster = compacted(make_cluster)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    latest = send(cluster, topic, 200)
    cluster.run(3000)
    cleaned = cluster.nodes[1].replicas.logs.cleaner_offset(T0)
    assert cleaned is not None
    assert cleaned > 100
    for stop in (cluster.shut_down, cluster.kill):
        cluster.start(1, stop(1))
        cluster.run(50)
        offsets = checkpoints.read_offsets(
            cluster.nodes[1].disk, LOG_DIR, checkpoints.CLEANER_OFFSETS_NAME
        )
        assert offsets == {T0: cleaned}
        assert cluster.nodes[1].replicas.logs.cleaner_offset(T0) == cleaned
        assert values(cluster, topic) == latest


def test_without_its_checkpoint_the_cleaner_begins_at_the_log_start(
    make_cluster: MakeCluster,
) -> None:
    """It cleans the whole log again, and writes the checkpoint again."""
    cluster = compacted(make_cluster)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 200)
    cluster.run(3000)
    cleaned = cluster.nodes[1].replicas.logs.cleaner_offset(T0)
    assert cleaned is not None
    for stop in (cluster.shut_down, cluster.kill):
        disk = stop(1)
        disk.remove(f"{LOG_DIR}/{checkpoints.CLEANER_OFFSETS_NAME}")
        cluster.start(1, disk)
        cluster.run(50)
        assert cluster.nodes[1].replicas.logs.cleaner_offset(T0) is None
        latest = send(cluster, topic, 200)
        cluster.run(3000)
        again = cluster.nodes[1].replicas.logs.cleaner_offset(T0)
        assert again is not None and again > cleaned
        assert values(cluster, topic) == latest


def test_the_checkpoint_is_raised_behind_the_last_replacement(make_cluster: MakeCluster) -> None:
    """Below the checkpoint each key has one record. A tombstone there may be removed, and must have
    no earlier record of its key."""
    checkpoints_seen = 0
    for wait_ms in range(0, 4_000, 130):
        cluster = compacted(make_cluster, threads=0)
        topic = cluster.create("t", [led_by(1)])
        cluster.run(50)
        send(cluster, topic, 200)
        begin(cluster, io_max_bytes_per_second=20_000.0)
        cluster.run(wait_ms)
        disk = cluster.kill(1)
        offsets = checkpoints.read_offsets(disk, LOG_DIR, checkpoints.CLEANER_OFFSETS_NAME)
        cluster.start(1, disk)
        cluster.run(5)
        checkpoints_seen += T0 in offsets
        keys = [key for offset, key in keys_of(cluster, topic) if offset < offsets.get(T0, 0)]
        assert len(keys) == len(set(keys))
    assert checkpoints_seen > 3


def keys_of(cluster: ReplicaCluster, topic: Uuid) -> list[tuple[int, bytes]]:
    return [
        (record.offset, bytes(record.key or b""))
        for batch in cluster.content(1, topic)
        for position, header in batches(batch)
        for record in records_of(batch, position, header)
    ]


def test_a_checkpoint_outside_of_the_log_begins_again(
    make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = compacted(make_cluster)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    latest = send(cluster, topic, 200)
    cluster.nodes[1].replicas.logs.directories[0].offsets.cleaner_offsets[T0] = 5000
    with caplog.at_level(logging.WARNING, "quorate.broker.cleaner"):
        cluster.run(3000)
    assert "its checkpoint 5000 lies outside of the log" in caplog.text
    assert values(cluster, topic) == latest
    assert count_of(cluster, topic) < 100


def test_a_power_cut_at_any_time_loses_nothing_that_was_flushed(make_cluster: MakeCluster) -> None:
    for wait_ms in range(0, 600, 37):
        cluster = compacted(make_cluster)
        topic = cluster.create("t", [led_by(1)])
        cluster.run(50)
        latest = send(cluster, topic, 100)
        cluster.run(150)  # everything is flushed
        cluster.run(wait_ms)
        cluster.start(1, cluster.cut_power(1))
        cluster.run(50)
        assert values(cluster, topic) == latest
        assert cluster.hosted(1, topic).log.end_offset == 100


def test_a_follower_replicates_a_compacted_log_and_leads_it(make_cluster: MakeCluster) -> None:
    cluster = compacted(make_cluster, brokers=2)
    topic = cluster.create("t", [led_by(1, isr=(1,))])
    cluster.run(50)
    send(cluster, topic, 200)
    cluster.run(3000)
    cluster.change(topic, replicas=(1, 2))
    cluster.spread()
    cluster.run(2000)
    assert cluster.image.topics[topic].partitions[0].isr == (1, 2)
    assert cluster.offsets(topic)[2] == (200, 200)
    assert cluster.hosted(2, topic).log.gaps
    cluster.change(topic, leader=2)
    cluster.spread()
    latest = send(cluster, topic, 100, leader=2)
    cluster.run(3000)
    assert values(cluster, topic, 1) == values(cluster, topic, 2) == latest
    disk = cluster.cut_power(2)
    cluster.start(2, disk)
    cluster.run(2000)
    assert values(cluster, topic, 2) == latest


def test_a_policy_without_compact_ends_the_cleaning(make_cluster: MakeCluster) -> None:
    cluster = compacted(make_cluster, threads=0)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 300)
    cleaner = begin(cluster, io_max_bytes_per_second=3_000.0)
    cluster.run(1000)
    assert cleaner.in_progress
    cluster.hosted(1, topic).partition.configure(PartitionSettings(), 0)
    cluster.run(5000)
    assert not cleaner.in_progress
    assert cleaner.figures.cleanings == 0


def test_a_truncation_during_a_cleaning_voids_it(make_cluster: MakeCluster) -> None:
    cluster = compacted(make_cluster, threads=0)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 300)
    begin(cluster, io_max_bytes_per_second=3_000.0)
    cluster.run(1000)
    replicas = cluster.nodes[1].replicas
    assert replicas.cleaner.in_progress
    cluster.hosted(1, topic).log.truncate_to(290)
    replicas.cleaner.configure(replace(replicas.cleaner.settings, io_max_bytes_per_second=1e9))
    replicas.cleaner.configure(replace(replicas.cleaner.settings, threads=0))
    cluster.run(10_000)
    assert not replicas.cleaner.in_progress
    assert (replicas.cleaner.figures.cleanings, replicas.logs.cleaner_offset(T0)) == (0, None)
    names = cluster.nodes[1].disk.list(f"{LOG_DIR}/t-0")
    assert not [each for each in names if each.endswith((".cleaned", ".swap"))]


def test_a_truncation_lowers_the_checkpoint_before_it_removes_records(
    make_cluster: MakeCluster,
) -> None:
    """KAFKA-3330. Above the log end, the checkpoint would call the records clean that are appended
    later."""
    cluster = compacted(make_cluster)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 200)
    cluster.run(3000)
    log, disk = cluster.hosted(1, topic).log, cluster.nodes[1].disk
    removed: list[dict[PartitionName, int]] = []

    def before(operation: str, path: str) -> None:
        if operation in ("truncate", "remove") and path.endswith(".log"):
            removed.append(
                checkpoints.read_offsets(disk, LOG_DIR, checkpoints.CLEANER_OFFSETS_NAME)
            )

    disk.before = before
    log.truncate_to(50)
    assert removed
    assert all(each[T0] == log.end_offset <= 50 for each in removed)


def test_a_deletion_during_a_cleaning_ends_it_and_frees_the_name(
    make_cluster: MakeCluster,
) -> None:
    for wait_ms in range(0, 300, 29):
        cluster = compacted(make_cluster)
        topic = cluster.create("t", [led_by(1)])
        cluster.run(50)
        send(cluster, topic, 200)
        cluster.run(120 + wait_ms)
        cluster.delete("t")
        topic = cluster.create("t", [led_by(1)])
        cluster.run(500)
        assert not cluster.nodes[1].replicas.cleaner.in_progress
        latest = send(cluster, topic, 20)
        assert values(cluster, topic) == latest
        assert (cluster.nodes[1].replicas.logs.cleaner_offset(T0) or 0) <= 20


def test_the_last_batch_of_an_idempotent_producer_stays(make_cluster: MakeCluster) -> None:
    """KAFKA-5490 and KAFKA-8335: without it, a retry after a restart would be appended twice."""
    cluster = compacted(make_cluster)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(
        cluster,
        topic,
        5,
        producer=lambda number: {
            "producer_id": 7,
            "producer_epoch": 0,
            "base_sequence": number,
        },
    )
    send(cluster, topic, 300)
    cluster.run(3000)
    assert count_of(cluster, topic) < 100
    for stop in (cluster.kill, cluster.shut_down):
        disk = stop(1)
        for name in disk.list(f"{LOG_DIR}/t-0"):
            if name.endswith(".snapshot"):
                disk.remove(f"{LOG_DIR}/t-0/{name}")
        cluster.start(1, disk)
        cluster.run(50)
        end_offset = cluster.hosted(1, topic).log.end_offset
        record = Record(0, 1_700_000_000_000, b"k4", b"44444")
        repeated = build_batch(
            [record], leader_epoch=0, producer_id=7, producer_epoch=0, base_sequence=4
        )
        answers: list[Any] = []
        append = ProducePartition("", topic, 0, memoryview(repeated))
        cluster.nodes[1].replicas.append([append], -1, 30_000, answers.extend)
        cluster.run(500)
        assert [(each.error, each.base_offset) for each in answers] == [(0, 4)]
        assert cluster.hosted(1, topic).log.end_offset == end_offset


def test_records_that_no_check_foresees_do_not_stop_the_node(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Kafka, any failure of a pass makes the log uncleanable."""

    def failing(*_: object, **__: object) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(cleaning_module, "filtered", failing)
    cluster = compacted(make_cluster)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    latest = send(cluster, topic, 200)
    cluster.run(3000)
    cleaner = cluster.nodes[1].replicas.cleaner
    assert list(cleaner.uncleanable) == [T0] and not cleaner.in_progress
    assert values(cluster, topic) == latest


def test_a_damaged_log_is_uncleanable_and_others_go_on(
    make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = compacted(make_cluster, threads=0)
    topics = [cluster.create(name, [led_by(1)]) for name in ("t", "u")]
    cluster.run(50)
    path = f"{LOG_DIR}/t-0/{0:020}.log"
    for topic in topics:
        send(cluster, topic, 100)
    cluster.nodes[1].disk.flip(path, 90)
    cleaner = begin(cluster)
    cluster.run(3000)
    assert list(cleaner.uncleanable) == [T0]
    assert cleaner.uncleanable_bytes == cluster.hosted(1, topics[0]).log.size_bytes
    samples = {
        sample.name: sample.value for family in of_cleaner(cleaner) for sample in family.samples
    }
    manager = "kafka_log_logcleanermanager_uncleanable_partitions"
    assert samples[manager] == 1
    assert samples[manager + "_bytes"] == cleaner.uncleanable_bytes
    assert samples["quorate_log_cleaner_cleanings_total"] == cleaner.figures.cleanings > 0
    assert "the log cleaner cannot compact t-0" in caplog.text
    assert count_of(cluster, topics[1]) < 60
    cluster.delete("t")
    cluster.run(1000)
    assert not cleaner.uncleanable


def test_a_full_disk_ends_the_cleaning_and_the_next_one_succeeds(
    make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = compacted(make_cluster, threads=0)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    latest = send(cluster, topic, 200)
    cluster.run(300)
    disk = cluster.nodes[1].disk
    disk.capacity_bytes = disk.used_bytes() + 100
    cleaner = begin(cluster)
    cluster.run(2000)
    assert "was aborted: [Errno 28] No space left on device" in caplog.text
    assert values(cluster, topic) == latest
    disk.capacity_bytes = None
    cluster.run(2000)
    assert cleaner.figures.cleanings > 0
    assert values(cluster, topic) == latest


def test_the_throttle_bounds_the_rate(make_cluster: MakeCluster) -> None:
    """KAFKA-13996: the rate is changed while the cleaner runs."""
    times = {}
    for rate in (1e9, 3_000.0):
        cluster = compacted(make_cluster, threads=0)
        topic = cluster.create("t", [led_by(1)])
        cluster.run(50)
        send(cluster, topic, 300)
        cleaner = begin(cluster, io_max_bytes_per_second=rate)
        waited = 0
        while not cleaner.figures.cleanings:
            cluster.run(50)
            waited += 50
            assert waited < 60_000
        times[rate] = waited
    assert times[3_000.0] > 3 * times[1e9] > 0


def test_a_small_dedupe_buffer_takes_several_rounds(make_cluster: MakeCluster) -> None:
    cluster = compacted(make_cluster, dedupe_buffer_bytes=200 * 3, load_factor=1.0)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    latest = send(cluster, topic, 100)
    cluster.run(10_000)
    assert values(cluster, topic) == latest
    figures = cluster.nodes[1].replicas.cleaner.figures
    assert figures.cleanings > 2
    assert figures.buffer_utilization_percent <= 100


def test_log_cleaner_threads_cleans_several_logs_at_the_same_time(
    make_cluster: MakeCluster,
) -> None:
    for threads in (0, 1, 2):
        cluster = compacted(make_cluster, threads=threads, io_max_bytes_per_second=3_000.0)
        topics = [cluster.create(name, [led_by(1)]) for name in ("t", "u")]
        cluster.run(50)
        for topic in topics:
            send(cluster, topic, 300)
        most = 0
        for _ in range(40):
            cluster.run(50)
            most = max(most, len(cluster.nodes[1].replicas.cleaner.in_progress))
        assert most == threads


def test_changed_settings_apply_to_a_running_cleaner(make_cluster: MakeCluster) -> None:
    """KAFKA-16574: the metrics outlive a change of the settings."""
    cluster = compacted(make_cluster, threads=0)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 200)
    cluster.run(2000)
    cleaner = cluster.nodes[1].replicas.cleaner
    assert cleaner.figures.cleanings == 0
    cleaner.configure(replace(cleaner.settings, threads=1))
    cluster.run(2000)
    cleanings = cleaner.figures.cleanings
    assert cleanings > 0
    cleaner.configure(replace(cleaner.settings, threads=2, load_factor=0.5))
    samples = {
        sample.name: sample.value for family in of_cleaner(cleaner) for sample in family.samples
    }
    assert samples["quorate_log_cleaner_cleanings_total"] == cleanings


def test_records_wait_for_the_min_lag_and_the_max_lag_takes_a_clean_log(
    make_cluster: MakeCluster,
) -> None:
    cluster = compacted(make_cluster)
    cluster.partition_settings = replace(COMPACT, compaction=CompactionSettings(min_lag_ms=10**15))
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 200)
    cluster.run(3000)
    assert count_of(cluster, topic) == 200
    lazy = CompactionSettings(min_dirty_ratio=1.0)
    cluster.hosted(1, topic).partition.configure(replace(COMPACT, compaction=lazy), 0)
    cluster.run(3000)
    assert count_of(cluster, topic) == 200
    overdue = CompactionSettings(min_dirty_ratio=1.0, max_lag_ms=1)
    cluster.hosted(1, topic).partition.configure(replace(COMPACT, compaction=overdue), 0)
    cluster.run(3000)
    assert count_of(cluster, topic) < 100


def test_a_stop_during_a_cleaning_leaves_a_whole_log(make_cluster: MakeCluster) -> None:
    for wait_ms in range(0, 300, 23):
        cluster = compacted(make_cluster)
        topic = cluster.create("t", [led_by(1)])
        cluster.run(50)
        latest = send(cluster, topic, 200)
        cluster.run(110 + wait_ms)
        cluster.start(1, cluster.shut_down(1))
        cluster.run(50)
        assert values(cluster, topic) == latest
        assert cluster.hosted(1, topic).log.recovery.scanned_bytes == 0
        names = cluster.nodes[1].disk.list(f"{LOG_DIR}/t-0")
        assert not [each for each in names if each.endswith((".swap", ".cleaned"))]


def test_a_record_without_a_key_is_refused_with_its_index(make_cluster: MakeCluster) -> None:
    cluster = compacted(make_cluster)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    keys = [b"a", None, b"b", None]
    batch = build_batch(
        [Record(number, 1_700_000_000_000, key, b"v") for number, key in enumerate(keys)],
        leader_epoch=0,
    )
    answers: list[Any] = []
    append = ProducePartition("", topic, 0, memoryview(batch))
    cluster.nodes[1].replicas.append([append], -1, 30_000, answers.extend)
    cluster.run(50)
    (answer,) = answers
    assert answer.error == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert answer.record_errors[0].message == (
        "Compacted topic cannot accept message without key in topic partition t-0"
    )
    hosted = cluster.hosted(1, topic)
    assert (hosted.log.end_offset, hosted.traffic.keyless_records) == (0, 2)


def test_a_segment_of_a_compacted_topic_is_no_older_than_the_max_lag() -> None:
    """KIP-354: a record in the active segment is not cleaned, whatever its age is."""
    replication = ReplicationSettings(log_dirs=(LOG_DIR,))

    def segment_ms(**overrides: str) -> int:
        texts = {name.replace("_", "."): text for name, text in overrides.items()}
        configs = effective_topic_configs(texts, topic_defaults({}))
        return TopicSettings.of(configs, replication, 1).log.segment_ms

    week_ms = 604_800_000
    lag = {"max_compaction_lag_ms": "1000"}
    assert segment_ms() == segment_ms(cleanup_policy="compact") == segment_ms(**lag) == week_ms
    assert segment_ms(cleanup_policy="compact", **lag) == 1000

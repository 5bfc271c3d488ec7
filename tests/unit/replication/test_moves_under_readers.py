"""The swap at the end of a move, while other work of the broker uses the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.broker.kafka.records import list_offsets
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.partition.partition_producers import ProducersNotLoaded
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.replication.partitions.compacted_partition import CompactedPartition
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.segments.segment import HEADERS_PER_STEP
from quorate.quorum.log.segments.timestamp_lookup import run_lookup
from tests.unit.replication.cluster import ReplicaCluster
from tests.unit.replication.moves import A, B, alter, committed, contents, moved, placed_in, produce
from tests.unit.replication.test_log_directories import SMALL

MakeCluster = Callable[..., ReplicaCluster]
T0 = PartitionName("t", 0)


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    made = make_cluster(brokers=1, log_dirs=(A, B), file_delete_delay_ms=1)
    made.log_settings = SMALL
    committed(made)
    return made


def test_a_lookup_goes_on_in_the_new_log(cluster: ReplicaCluster) -> None:
    cluster.log_settings = replace(SMALL, segment_bytes=1 << 20, index_interval_bytes=1 << 20)
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 2 * HEADERS_PER_STEP)
    cluster.produce(1, topic, timestamp_ms=1_700_000_000_001)
    hosted = cluster.hosted(1, topic)
    steps = list_offsets.at_time(hosted, 1_700_000_000_001)
    next(steps)
    alter(cluster, "t-0", B)
    moved(cluster, "t-0", B)
    cluster.run(100)
    found = run_lookup(steps)
    assert found is not None
    assert found[:2] == (1_700_000_000_001, 2 * HEADERS_PER_STEP)


def test_a_load_of_producer_states_begins_again(cluster: ReplicaCluster) -> None:
    """A step that meets the files of the earlier log, which are renamed, takes no directory
    offline."""
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    for sequence in range(80):
        producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
        cluster.produce(1, topic, producer=producer)
    hosted, replicas = cluster.hosted(1, topic), cluster.nodes[1].replicas
    alter(cluster, "t-0", B)
    for _ in range(3000):
        if replicas.logs.home_of(T0) == B:
            break
        if hosted.partition.producers.loaded is not None:
            hosted.partition.producers.loaded = None
            replicas.load_producers(hosted)
        cluster.run(0.1)
    assert replicas.logs.home_of(T0) == B
    with pytest.raises(ProducersNotLoaded):  # a load is in progress
        hosted.partition.producers.required()
    cluster.run(500)
    assert not cluster.offline_dirs
    assert 7 in hosted.partition.producers.required().producers


def test_an_uncleanable_log_stays_uncleanable(make_cluster: MakeCluster) -> None:
    """KAFKA-8362"""
    cluster = make_cluster(brokers=1, log_dirs=(A, B), cleaner=CleanerSettings(backoff_ms=100))
    cluster.partition_settings = PartitionSettings(compacted=True, deletes=False)
    committed(cluster)
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    replicas, hosted = cluster.nodes[1].replicas, cluster.hosted(1, topic)
    cleaner = replicas.cleaner
    partition = CompactedPartition(hosted, replicas.load_producers)
    cleaner.mark_uncleanable(partition, CorruptLog("/a/t-0", 0, 0, "a test"))
    alter(cluster, "t-0", B)
    moved(cluster, "t-0", B)
    cluster.run(300)
    assert cleaner.uncleanable == {T0: hosted.log}


def test_preallocated_bytes_are_cut_off_after_a_move(cluster: ReplicaCluster) -> None:
    cluster.log_settings = replace(SMALL, segment_bytes=5000, preallocate=True)
    topic = cluster.create("t", [placed_in(cluster, A)])
    cluster.run(50)
    produce(cluster, topic, 5)
    before = contents(cluster, topic)
    alter(cluster, "t-0", B)
    moved(cluster, "t-0", B)
    (name,) = [each for each in cluster.nodes[1].disk.list(f"{B}/t-0") if each.endswith(".log")]
    assert len(cluster.nodes[1].disk.content(f"{B}/t-0/{name}")) == 5000
    disk = cluster.shut_down(1)
    assert len(disk.content(f"{B}/t-0/{name}")) == sum(map(len, before))

"""The keys of the log cleaner that bound its pauses and its memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.broker.compaction.offset_map import OffsetMap
from quorate.broker.compaction.segment_source import SourceSegment, read_batches
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.quorum.log.files.settings import LogSettings
from tests.sim.world.disk import SimDisk
from tests.unit.log.batches import batch
from tests.unit.replication.cluster import ReplicaCluster, led_by
from tests.unit.replication.test_log_cleaner import COMPACT, compacted, count_of, send

MakeCluster = Callable[..., ReplicaCluster]


@pytest.mark.parametrize(("backoff_ms", "cleaned"), [(200, True), (60_000, False)])
def test_a_cleaner_that_found_nothing_looks_again_after_its_backoff(
    make_cluster: MakeCluster, backoff_ms: int, cleaned: bool
) -> None:
    cluster = make_cluster(
        brokers=1,
        cleaner=CleanerSettings(backoff_ms=backoff_ms),
        flush_checkpoint_interval_ms=100,
    )
    cluster.partition_settings = COMPACT
    cluster.log_settings = LogSettings(segment_bytes=1000, index_interval_bytes=100)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(1000)  # the first search finds nothing
    send(cluster, topic, 60)
    cluster.run(5000)
    assert (count_of(cluster, topic) < 60) == cleaned


def test_a_shorter_backoff_takes_effect_in_the_present_one(make_cluster: MakeCluster) -> None:
    """The worker waited for the backoff that it had begun, for hours if that was set by mistake."""
    cluster = compacted(make_cluster)
    cleaner = cluster.nodes[1].replicas.cleaner
    cleaner.configure(replace(cleaner.settings, backoff_ms=2**63 - 1))
    topic = cluster.create("t", [led_by(1)])
    cluster.run(1000)
    send(cluster, topic, 60)
    cluster.run(5000)
    assert count_of(cluster, topic) == 60
    cleaner.configure(replace(cleaner.settings, backoff_ms=200))
    cluster.run(1000)
    assert count_of(cluster, topic) < 60


@pytest.mark.parametrize("is_retired", [False, True])
def test_a_higher_rate_takes_effect_in_the_present_pause(
    make_cluster: MakeCluster, *, is_retired: bool
) -> None:
    """Each piece of work is followed by the pause that the rate at that time demands. Here that is
    an hour. A worker that log.cleaner.threads removes finishes its cleaning, too."""
    cluster = compacted(make_cluster, threads=2)
    cleaner = cluster.nodes[1].replicas.cleaner
    cleaner.configure(replace(cleaner.settings, io_max_bytes_per_second=1))
    topic = cluster.create("t", [led_by(1)])
    send(cluster, topic, 60)
    cluster.run(5000)
    assert cleaner.in_progress
    if is_retired:
        cleaner.configure(replace(cleaner.settings, threads=1))
        cluster.run(1000)
    cleaner.configure(replace(cleaner.settings, io_max_bytes_per_second=1e9))
    cluster.run(1000)
    assert not cleaner.in_progress
    assert count_of(cluster, topic) < 60


def test_the_load_factor_is_the_used_share_of_the_map() -> None:
    whole, half = OffsetMap(20_000, 1.0), OffsetMap(20_000, 0.5)
    for number in range(200):
        whole.put(b"%d" % number, number)
        half.put(b"%d" % number, number)
    whole.commit(199)
    half.commit(199)
    assert len(whole) == 2 * len(half) > 0


def test_the_buffer_is_the_size_of_a_read() -> None:
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    data = b"".join(batch(offset, 0, [b"x" * 40]) for offset in range(50))
    path = f"/data/{0:020}.log"
    disk.open(path, create=True).pwrite(data, 0)
    source = SourceSegment(path, 0, 50, len(data))
    reads = []
    for io_buffer_bytes in (1_000, 1_000_000):
        settings = CleanerSettings(io_buffer_bytes=io_buffer_bytes)
        before = disk.calls
        found = list(read_batches(disk, source, settings.buffer_bytes, lambda _: 0))
        assert len(found) == 50
        reads.append(disk.calls - before)
    assert reads[0] >= len(data) // 500 > reads[1]

"""A partition of __consumer_offsets stays bounded, and loads in time proportional to its live
keys."""

from __future__ import annotations

from typing import Any, cast

from quorate.broker.groups.loading import Loading
from quorate.broker.groups.records import GroupRecord, OffsetKey, OffsetValue, encode_record
from quorate.broker.groups.shard import Shard
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.partition.settings import PartitionSettings
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.metadata.internal_topics import OFFSETS_TOPIC
from quorate.quorum.protocol.hot.produce import ProducePartition
from tests.sim.world.clock import SimClock
from tests.unit.replication.cluster import ReplicaCluster, led_by

GROUPS = 10


class Loaded:
    """The records that a loading replays, in the place of a shard."""

    def __init__(self) -> None:
        self.replayed = 0
        self.offsets: dict[OffsetKey, int] = {}

    def replay(self, record: GroupRecord) -> None:
        self.replayed += 1
        assert isinstance(record.key, OffsetKey)
        if isinstance(record.value, OffsetValue):
            self.offsets[record.key] = record.value.offset
        else:
            self.offsets.pop(record.key, None)


def commit(cluster: ReplicaCluster, topic: Uuid, offset: int | None) -> None:
    """Commit an offset of each group, or remove it for None."""
    records = []
    for number in range(GROUPS):
        key = OffsetKey(group=f"group-{number}", topic="orders", partition=0)
        value = OffsetValue(offset=offset or 0, metadata="", commit_timestamp=1_000)
        encoded = encode_record(GroupRecord(key, None if offset is None else value))
        records.append(Record(number, 1_700_000_000_000, *encoded))
    data = build_batch(records, leader_epoch=0)
    answers: list[Any] = []
    append = ProducePartition("", topic, 0, memoryview(data))
    replicas = cluster.nodes[1].replicas
    replicas.append([append], -1, 30_000, answers.extend, internal=True)
    cluster.run(5)
    assert [each.error for each in answers] == [0]


def load(cluster: ReplicaCluster, topic: Uuid) -> Loaded:
    loaded, errors = Loaded(), list[Exception | None]()
    clock = SimClock(cluster.nodes[1].host)
    Loading(
        clock, cluster.hosted(1, topic), cast(Shard, loaded), errors.append, lambda error: False
    ).start()
    cluster.run(100)
    assert errors == [None]
    return loaded


def test_the_offsets_topic_stays_bounded_and_loads_its_live_keys() -> None:
    cluster = ReplicaCluster(
        brokers=1, cleaner=CleanerSettings(backoff_ms=100), flush_checkpoint_interval_ms=50
    )
    cluster.partition_settings = PartitionSettings(compacted=True, deletes=False)
    cluster.log_settings = LogSettings(segment_bytes=4_000, file_delete_delay_ms=10)
    topic = cluster.create(OFFSETS_TOPIC, [led_by(1)])
    cluster.run(50)
    sizes, replayed = [], []
    for round_number in range(1, 5):
        for number in range(100):
            commit(cluster, topic, 1_000 * round_number + number)
        cluster.run(1_000)
        loaded = load(cluster, topic)
        assert set(loaded.offsets.values()) == {1_000 * round_number + 99}
        assert len(loaded.offsets) == GROUPS
        sizes.append(cluster.hosted(1, topic).log.size_bytes)
        replayed.append(loaded.replayed)
    assert cluster.hosted(1, topic).log.end_offset == 4 * 100 * GROUPS
    assert max(replayed) <= 12 * GROUPS, "the live keys, and those of the active segment"
    assert max(sizes) < 12_000
    assert max(sizes) <= 2 * sizes[0]
    commit(cluster, topic, None)
    assert load(cluster, topic).offsets == {}
    cluster.close()

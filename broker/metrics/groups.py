"""The metrics of the groups that a broker coordinates.

The lag of a group is known here only for partitions with a replica on this broker. For all others,
Prometheus can subtract the committed offset from the high watermark of the partition's leader.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from prometheus_client.metrics_core import Metric

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.shard import Shard
from quorate.broker.metrics import service_table
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.ids import ZERO_UUID

Place = tuple[str, str, int]
"""Group, topic and partition."""


def of_groups(
    coordinator: GroupCoordinator, registry: PartitionRegistry, bound: int
) -> Iterator[Metric]:
    """Yield the state of the groups, and at most `bound` of their committed offsets and lags."""
    shards = list(coordinator.loaded_shards())
    count = sum(shard.offsets.count for shard in shards)
    offsets = list(islice(committed(shards), bound))
    yield service_table.FAILED_SHARDS.of(coordinator.failed_shards)
    yield service_table.REBUILT_SHARDS.of(coordinator.rebuilt_shards)
    yield service_table.GROUPS.of(sum(len(shard.groups) for shard in shards))
    yield service_table.GROUPS_BYTES.of(coordinator.memory.used_bytes)
    yield service_table.GROUPS_MAX_BYTES.of(coordinator.memory.limit_bytes)
    yield service_table.GROUPS_EVICTED.of(coordinator.memory.evicted)
    yield service_table.GROUP_OFFSETS_LEFT_OUT.of(count - len(offsets))
    yield service_table.COMMITTED_OFFSET.each(
        ((group, topic, str(at)), offset) for (group, topic, at), offset in offsets
    )
    lags = []
    for (group, topic, at), offset in offsets:
        hosted = registry.find(topic, ZERO_UUID, at)
        if hosted is not None:
            lag = max(0, hosted.partition.high_watermark - offset)
            lags.append(((group, topic, str(at)), lag))
    yield service_table.GROUP_LAG.each(lags)


def committed(shards: list[Shard]) -> Iterator[tuple[Place, int]]:
    """Yield (group, topic, partition) and the committed offset, in a stable order."""
    for shard in shards:
        for group in shard.groups:
            for (topic, partition), value in shard.offsets.of(group).items():
                yield (group, topic, partition), value.offset

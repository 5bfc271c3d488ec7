"""The metrics of the replicas and partitions that a broker hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric

from quorate.broker.controller.alter_partition_sender import AlterPartitionSender
from quorate.broker.metrics import replica_table
from quorate.broker.replication.directories.replica_moves import ReplicaMoves
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.quorum.metadata.image import Partition
from quorate.quorum.watch.declaration import Gauge


@dataclass(frozen=True, slots=True)
class Replica:
    """One hosted partition in the metrics. The numbers that only its leader knows are 0 on a
    follower: `replicas`, without those that a reassignment adds, `in_sync`, the size of the
    committed ISR, and `min_isr`, which is at most the number of all replicas."""

    hosted: HostedPartition
    leads: bool
    replicas: int
    in_sync: int
    min_isr: int
    reassigning: bool

    @classmethod
    def of(cls, hosted: HostedPartition, value: Partition | None) -> Replica:
        """Return the metrics of a hosted partition. `value` is its state in the image, or None."""
        leadership = hosted.partition.leadership
        reassigning = value is not None and value.reassigning
        if leadership is None:
            return cls(hosted, False, 0, 0, 0, reassigning)
        adding = 0 if value is None else len(value.adding)
        count, in_sync = len(leadership.replicas) + 1, len(leadership.isr.committed)
        return cls(hosted, True, count - adding, in_sync, leadership.effective_min_isr, reassigning)

    @property
    def labels(self) -> tuple[str, str]:
        """Return the topic and the partition number."""
        return self.hosted.topic, str(self.hosted.key[1])

    @property
    def under_replicated(self) -> bool:
        """Return True if this broker leads the partition and the ISR has fewer members than
        `replicas`."""
        return self.leads and self.in_sync < self.replicas

    @property
    def under_min_isr(self) -> bool:
        """Return True if this broker leads the partition and the ISR has fewer members than
        `min_isr`."""
        return self.leads and self.in_sync < self.min_isr

    @property
    def at_min_isr(self) -> bool:
        """Return True if this broker leads the partition and the ISR has exactly `min_isr`
        members."""
        return self.leads and self.in_sync == self.min_isr


def of_replicas(replicas: list[Replica], unopened: int) -> Iterator[Metric]:
    """Yield the counts of replicas. `unopened` counts those that belong here and are not open."""
    yield replica_table.PARTITION_COUNT.of(len(replicas))
    yield replica_table.LEADER_COUNT.of(sum(each.leads for each in replicas))
    yield replica_table.UNDER_REPLICATED.of(sum(each.under_replicated for each in replicas))
    yield replica_table.UNDER_MIN_ISR.of(sum(each.under_min_isr for each in replicas))
    yield replica_table.AT_MIN_ISR.of(sum(each.at_min_isr for each in replicas))
    yield replica_table.OFFLINE_REPLICAS.of(unopened)
    producers = (each.hosted.partition.producers.loaded for each in replicas)
    yield replica_table.PRODUCER_IDS.of(sum(len(each) for each in producers if each is not None))
    yield replica_table.REASSIGNING.of(sum(each.leads and each.reassigning for each in replicas))


def of_isr_changes(sender: AlterPartitionSender) -> Iterator[Metric]:
    """Yield the ISR changes that this broker has proposed."""
    yield replica_table.ISR_SHRINKS.of(sender.shrinks)
    yield replica_table.ISR_EXPANDS.of(sender.expands)
    yield replica_table.FAILED_ISR_UPDATES.of(sender.failures)
    yield replica_table.ISR_PROPOSALS_WAITING.of(sender.pending)
    yield replica_table.ISR_PROPOSALS_IN_FLIGHT.of(sender.in_flight)
    yield replica_table.ISR_PROPOSALS_OLDEST.of(sender.oldest_ms / 1000)
    yield replica_table.ISR_ROUND_TRIP.of(sender.round_trips)
    yield replica_table.ISR_REQUESTS_REPEATED.of(sender.repeated)


def of_moves(moves: ReplicaMoves) -> Iterator[Metric]:
    """Yield the moves of replicas between log directories."""
    stages = moves.stages()
    yield replica_table.MOVES.each(((stage,), count) for stage, count in stages.items())
    yield replica_table.MOVES_LAG.of(moves.max_lag)
    ended = {"moved": moves.moved, "failed": moves.failed}
    yield replica_table.MOVES_ENDED.each(((result,), count) for result, count in ended.items())
    yield replica_table.MOVES_COPIED.of(moves.copied_bytes)


OF_PARTITION: tuple[tuple[Gauge, Callable[[Replica], float]], ...] = (
    (replica_table.REPLICAS, lambda each: each.replicas),
    (replica_table.IN_SYNC_REPLICAS, lambda each: each.in_sync),
    (replica_table.IS_UNDER_REPLICATED, lambda each: each.under_replicated),
    (replica_table.IS_UNDER_MIN_ISR, lambda each: each.under_min_isr),
    (replica_table.IS_AT_MIN_ISR, lambda each: each.at_min_isr),
    (replica_table.LOG_SIZE, lambda each: each.hosted.log.size_bytes),
    (replica_table.LOG_SEGMENTS, lambda each: len(each.hosted.log.sealed_segments) + 1),
    (replica_table.LOG_END_OFFSET, lambda each: each.hosted.log.end_offset),
    (replica_table.HIGH_WATERMARK, lambda each: each.hosted.partition.high_watermark),
    (replica_table.LOG_START_OFFSET, lambda each: each.hosted.log.start_offset),
)


def of_partitions(replicas: list[Replica], left_out: int) -> Iterator[Metric]:
    """Yield the metrics of each of these partitions. `left_out` counts the other hosted ones."""
    for gauge, value in OF_PARTITION:
        yield gauge.each((each.labels, value(each)) for each in replicas)
    yield replica_table.PARTITIONS_LEFT_OUT.of(left_out)

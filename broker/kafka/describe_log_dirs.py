"""Handles DescribeLogDirs (API key 35): the size of each replica, and of the volume (KIP-827)."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass

from quorate.broker.kafka.replicas import PartitionRegistry, Replicas
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.pace import STEP_ENTRIES, Pace, in_order
from quorate.quorum.protocol.schemas.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from quorate.quorum.rpc.kafka.server import RequestContext

ENTRIES = 5
"""The weight of a described partition, in entries of a step (`Pace`)."""


@dataclass(frozen=True, slots=True)
class DescribeLogDirsHandler:
    """Handles DescribeLogDirs on one broker, on the broker's event loop.

    A broker has one log directory. Replicas are never moved between directories, so no result is a
    future replica and every offset lag is 0."""

    replicas: Replicas
    log_dir: str

    def handle(
        self, context: RequestContext, request: DescribeLogDirsRequest
    ) -> IncrementalWork[None] | None:
        """Respond with the sizes of the named partitions, or of all if `topics` is None.

        Partitions that have no open replica on this broker are omitted. Return the steps that are
        left, or None.
        """
        return begun(self._describe_log_dirs(context, request))

    def _describe_log_dirs(
        self, context: RequestContext, request: DescribeLogDirsRequest
    ) -> IncrementalWork[None]:
        registry, pace = self.replicas.registry, Pace()
        if request.topics is None:
            places = {(hosted.topic, hosted.key[1]) for hosted in registry}
        else:
            places = yield from hosted_places(registry, request.topics)
        topics: dict[str, list[DescribeLogDirsPartition]] = {}
        for name, partition_id in (yield from in_order(places)):
            if pace.is_time(ENTRIES):
                context.count_elements(STEP_ENTRIES // ENTRIES)
                yield
            hosted = registry.find(name, ZERO_UUID, partition_id)
            if hosted is None:
                continue
            topics.setdefault(hosted.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=hosted.key[1],
                    partition_size=hosted.log.size_bytes,
                    offset_lag=0,
                    is_future_key=False,
                )
            )
        total_bytes, usable_bytes = volume_bytes(self.log_dir)
        directory = DescribeLogDirsResult(
            log_dir=self.log_dir,
            total_bytes=total_bytes,
            usable_bytes=usable_bytes,
            topics=tuple(
                DescribeLogDirsTopic(name=name, partitions=tuple(partitions))
                for name, partitions in topics.items()
            ),
        )
        yield from context.respond_steps(DescribeLogDirsResponse(results=(directory,)))


def hosted_places(
    registry: PartitionRegistry, topics: Iterable[DescribableLogDirTopic]
) -> IncrementalWork[set[tuple[str, int]]]:
    """Return the named partitions that have an open replica on this broker, in steps."""
    places: set[tuple[str, int]] = set()
    pace = Pace()
    for topic in topics:
        if pace.is_time():
            yield
        for each in topic.partitions:
            if registry.find(topic.topic, ZERO_UUID, each) is not None:
                places.add((topic.topic, each))
            if pace.is_time():
                yield
    return places


def volume_bytes(log_dir: str) -> tuple[int, int]:
    """Return the total and the usable bytes of the volume, or -1 and -1 if the OS cannot say."""
    try:
        usage = shutil.disk_usage(log_dir)
    except OSError:
        return -1, -1
    return usage.total, usage.free

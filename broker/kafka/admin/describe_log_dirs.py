"""Handles DescribeLogDirs (API key 35): the size of each replica, and of the volume (KIP-827)."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quorate.broker.kafka.shared.replicas import PartitionRegistry, Replicas
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.metadata.pace import STEP_ENTRIES, Pace, in_order
from quorate.quorum.protocol.errors import ErrorCode
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

    Each log directory has a result. One that is offline has the error KAFKA_STORAGE_ERROR, and its
    replicas are not known. A replica that is being moved is in two directories. In the target it is
    marked as future, and its lag is that behind the current log."""

    replicas: Replicas

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
        registry, logs, pace = self.replicas.registry, self.replicas.logs, Pace()
        if request.topics is None:
            places = {(hosted.topic, hosted.key[1]) for hosted in registry}
        else:
            places = yield from hosted_places(registry, request.topics)
        found: dict[str, dict[str, list[DescribeLogDirsPartition]]] = {
            path: {} for path in logs.log_dirs
        }
        for name, partition_id in (yield from in_order(places)):
            if pace.is_time(ENTRIES):
                context.count_elements(STEP_ENTRIES // ENTRIES)
                yield
            hosted = registry.find(name, ZERO_UUID, partition_id)
            home = logs.home_of(PartitionName(name, partition_id))
            if hosted is None or home is None:
                continue
            found[home].setdefault(hosted.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=hosted.key[1],
                    partition_size=hosted.log.size_bytes,
                    offset_lag=max(0, hosted.partition.high_watermark - hosted.log.end_offset),
                    is_future_key=False,
                )
            )
            future = self.replicas.moves.future_log(hosted.key)
            if future is not None:
                target, log = future
                found[target].setdefault(hosted.topic, []).append(
                    DescribeLogDirsPartition(
                        partition_index=hosted.key[1],
                        partition_size=log.size_bytes,
                        offset_lag=max(0, hosted.log.end_offset - log.end_offset),
                        is_future_key=True,
                    )
                )
        online = logs.online
        results = tuple(
            described(path, topics) if path in online else offline(path)
            for path, topics in found.items()
        )
        yield from context.respond_steps(DescribeLogDirsResponse(results=results))


def described(
    path: str, topics: Mapping[str, list[DescribeLogDirsPartition]]
) -> DescribeLogDirsResult:
    """Return the result of a log directory that is online."""
    total_bytes, usable_bytes = volume_bytes(path)
    return DescribeLogDirsResult(
        log_dir=path,
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        topics=tuple(
            DescribeLogDirsTopic(name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        ),
    )


def offline(path: str) -> DescribeLogDirsResult:
    """Return the result of a log directory that is offline."""
    return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path, topics=())


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

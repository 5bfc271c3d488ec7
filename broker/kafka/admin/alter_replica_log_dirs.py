"""Handles AlterReplicaLogDirs (API key 34): moves replicas between the log directories of this
broker (KIP-113).
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.broker.kafka.shared.replicas import Replicas
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from quorate.quorum.rpc.kafka.server import RequestContext

ENTRIES = 5
"""The weight of a refused partition, in entries of a step (`Pace`)."""


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirsHandler:
    """Handles AlterReplicaLogDirs on one broker, on the broker's event loop."""

    replicas: Replicas

    def handle(
        self, context: RequestContext, request: AlterReplicaLogDirsRequest
    ) -> IncrementalWork[None] | None:
        """Begin the moves, and respond with the error of each partition (`replica_moves.py`). The
        moves go on after the response. Return the steps that are left, or None.

        If a partition is named several times, the last directory counts, as in Kafka."""
        return begun(self._alter(context, request))

    def _alter(
        self, context: RequestContext, request: AlterReplicaLogDirsRequest
    ) -> IncrementalWork[None]:
        targets: dict[PartitionName, str] = {}
        pace = Pace()
        for directory in request.dirs:
            for topic in directory.topics:
                for partition in topic.partitions:
                    targets[PartitionName(topic.name, partition)] = directory.path
                    if pace.is_time():
                        yield
        results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
        for name, path in targets.items():
            error = self.replicas.moves.alter(name, path)
            results.setdefault(name.topic, []).append(
                AlterReplicaLogDirPartitionResult(partition_index=name.partition, error_code=error)
            )
            if error == ErrorCode.NONE or pace.is_time(ENTRIES):
                yield
        topics: list[AlterReplicaLogDirTopicResult] = []
        for topic_name, partitions in results.items():
            topics.append(
                AlterReplicaLogDirTopicResult(topic_name=topic_name, partitions=tuple(partitions))
            )
            if pace.is_time():
                yield
        response = AlterReplicaLogDirsResponse(results=tuple(topics))
        yield from context.respond_steps(response)

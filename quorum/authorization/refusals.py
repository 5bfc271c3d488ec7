"""The answers of refused requests about log directories, which have an error for each partition."""

from __future__ import annotations

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeLogDirsResponse,
)


def no_log_dirs(_: object, error: ErrorCode) -> DescribeLogDirsResponse:
    """Return the answer to a refused DescribeLogDirs. Before version 3 it is only empty."""
    return DescribeLogDirsResponse(error_code=error, results=())


def no_moves(request: AlterReplicaLogDirsRequest, error: ErrorCode) -> AlterReplicaLogDirsResponse:
    """Return the answer to a refused AlterReplicaLogDirs: the error for each named partition."""
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(partition_index=each, error_code=error)
                    for each in topic.partitions
                ),
            )
            for directory in request.dirs
            for topic in directory.topics
        )
    )

"""The answers of Kafka to refused requests that are more than one error."""

from __future__ import annotations

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.client_quotas import DescribeClientQuotasResponse
from quorate.quorum.protocol.schemas.init_producer_id import InitProducerIdResponse
from quorate.quorum.protocol.schemas.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeLogDirsResponse,
)
from quorate.quorum.protocol.schemas.user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

NO_EPOCH = -1


def no_producer_id(error: ErrorCode) -> InitProducerIdResponse:
    """Return the answer to a refused InitProducerId."""
    return InitProducerIdResponse(error_code=error, producer_epoch=NO_EPOCH)


def no_quotas(_: object, error: ErrorCode) -> DescribeClientQuotasResponse:
    """Return the answer to a refused DescribeClientQuotas, without a list of entries."""
    return DescribeClientQuotasResponse(error_code=error, error_message=error.message, entries=None)


def no_credentials(
    request: DescribeUserScramCredentialsRequest, error: ErrorCode
) -> DescribeUserScramCredentialsResponse:
    """Return the answer to a refused DescribeUserScramCredentials: the error for each named user,
    without the name."""
    result = DescribeUserScramCredentialsResult(
        user="", error_code=error, error_message=error.message
    )
    return DescribeUserScramCredentialsResponse(
        error_code=error,
        error_message=error.message,
        results=(result,) * len(request.users or ()),
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

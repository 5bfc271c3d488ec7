"""OffsetFetch (9) before version 8, where a request names one group: both forms of its data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quorate.quorum.metadata.steps import Pace
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import group_offsets as schemas
from quorate.quorum.steps import Steps

TOP_LEVEL_ERROR_SINCE = 2


def as_group(request: schemas.OffsetFetchRequest) -> Steps[schemas.OffsetFetchRequestGroup]:
    """Return the one group of a request before version 8, in steps."""
    if request.topics is None:
        return schemas.OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    topics, pace = [], Pace()
    for each in request.topics:
        topics.append(
            schemas.OffsetFetchRequestTopics(
                name=each.name, partition_indexes=each.partition_indexes
            )
        )
        if pace.is_time():
            yield
    return schemas.OffsetFetchRequestGroup(group_id=request.group_id, topics=tuple(topics))


def of_one_group(
    group: schemas.OffsetFetchResponseGroup,
    wanted: schemas.OffsetFetchRequestGroup,
    version: int,
) -> Steps[schemas.OffsetFetchResponse]:
    """Return the form of versions before 8, in steps.

    Before version 2, every partition has the error of the whole."""
    refused = group.error_code and version < TOP_LEVEL_ERROR_SINCE
    error = ErrorCode.of(group.error_code)
    topics, pace = [], Pace()
    for topic in (wanted.topics or ()) if refused else group.topics:
        partitions = []
        elements: Iterable[Any] = (
            topic.partition_indexes
            if isinstance(topic, schemas.OffsetFetchRequestTopics)
            else topic.partitions
        )
        for each in elements:
            partitions.append(refused_partition(each, error) if refused else of_version_7(each))
            if pace.is_time():
                yield
        topics.append(
            schemas.OffsetFetchResponseTopic(name=topic.name, partitions=tuple(partitions))
        )
        if pace.is_time():
            yield
    return schemas.OffsetFetchResponse(error_code=group.error_code, topics=tuple(topics))


def of_version_7(
    each: schemas.OffsetFetchResponsePartitions,
) -> schemas.OffsetFetchResponsePartition:
    return schemas.OffsetFetchResponsePartition(
        partition_index=each.partition_index,
        committed_offset=each.committed_offset,
        committed_leader_epoch=each.committed_leader_epoch,
        metadata=each.metadata,
        error_code=each.error_code,
    )


def refused_partition(
    partition_index: int, error: ErrorCode
) -> schemas.OffsetFetchResponsePartition:
    return schemas.OffsetFetchResponsePartition(
        partition_index=partition_index, committed_offset=-1, metadata="", error_code=error
    )


def not_fetched(
    topic: schemas.OffsetFetchRequestTopics, error: ErrorCode
) -> schemas.OffsetFetchResponseTopics:
    return schemas.OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            schemas.OffsetFetchResponsePartitions(
                partition_index=each, committed_offset=-1, metadata="", error_code=error
            )
            for each in topic.partition_indexes
        ),
    )

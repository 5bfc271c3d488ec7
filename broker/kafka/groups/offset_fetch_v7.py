"""Converts OffsetFetch requests and responses before version 8, which name one group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import group_offsets as schemas

TOP_LEVEL_ERROR_SINCE = 2
"""The first version whose response has an error of the whole request."""


def as_group(
    request: schemas.OffsetFetchRequest,
) -> IncrementalWork[schemas.OffsetFetchRequestGroup]:
    """Return the group of a request before version 8, in steps."""
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
) -> IncrementalWork[schemas.OffsetFetchResponse]:
    """Return the response for a version before 8, in steps.

    `wanted` is the requested group. Before version 2, an error of the whole request is given for
    every requested partition."""
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
    """Return the result of one partition in the form of versions before 8."""
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
    """Return the error of one partition in the form of versions before 8."""
    return schemas.OffsetFetchResponsePartition(
        partition_index=partition_index, committed_offset=-1, metadata="", error_code=error
    )


def not_fetched(
    topic: schemas.OffsetFetchRequestTopics, error: ErrorCode
) -> schemas.OffsetFetchResponseTopics:
    """Return the result of a topic whose partitions all have this error."""
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

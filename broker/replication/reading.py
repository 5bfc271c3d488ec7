"""The one read path of fetches: of consumers, of verification tools and of followers.

Consumers see what is below the high watermark; followers and verification tools (replica id -2)
read to the log end. Errors are answered per partition, never raised.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.broker.replication.hosted import Hosted, Key
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.errors import OffsetOutOfRange
from quorate.quorum.rpc.kafka.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Buffer

CONSUMER = -1
DEBUGGING_CONSUMER = -2
UNKNOWN_OFFSET = -1


class FetchPartition(NamedTuple):
    """One partition of a Fetch request."""

    key: Key
    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    start_offset: int = -1


class FetchedPartition(NamedTuple):
    """One partition of a Fetch response. `records` is empty, never None."""

    key: Key
    error: int = ErrorCode.NONE
    high_watermark: int = UNKNOWN_OFFSET
    start_offset: int = UNKNOWN_OFFSET
    records: Buffer = b""
    diverging: EpochOffset | None = None
    leader_id: int = -1  # set with errors that a newer leader would explain
    leader_epoch: int = -1


_EXPLAINED_BY_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def failed(key: Key, error: ErrorCode, hosted: Hosted | None = None) -> FetchedPartition:
    if hosted is not None and error in _EXPLAINED_BY_LEADER:
        partition = hosted.partition
        return FetchedPartition(
            key, error, leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
        )
    return FetchedPartition(key, error)


def header(hosted: Hosted) -> FetchedPartition:
    """What there is to say without records."""
    return FetchedPartition(
        hosted.key,
        ErrorCode.NONE,
        hosted.partition.high_watermark,
        hosted.log.start_offset,
    )


def read(
    hosted: Hosted | None, wanted: FetchPartition, max_bytes: int, *, to_log_end: bool
) -> FetchedPartition:
    """At least one batch when `max_bytes` is positive and there is one; none at all otherwise."""
    if hosted is None:
        return failed(wanted.key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition, log = hosted.partition, hosted.log
    error = partition.leader_error(wanted.leader_epoch)
    if error:
        return failed(wanted.key, error, hosted)
    try:
        diverging = partition.diverging(wanted.offset, wanted.last_fetched_epoch)
        if diverging is not None:
            return header(hosted)._replace(diverging=diverging)
        end = log.end_offset if to_log_end else partition.high_watermark
        if wanted.offset >= end or max_bytes <= 0:
            return header(hosted)
        records = log.read(wanted.offset, max_bytes, end=end)
    except KafkaError as refused:
        return failed(wanted.key, refused.code)._replace(
            high_watermark=partition.high_watermark, start_offset=log.start_offset
        )
    except OffsetOutOfRange:
        return failed(wanted.key, ErrorCode.OFFSET_OUT_OF_RANGE)
    return FetchedPartition(
        wanted.key, ErrorCode.NONE, partition.high_watermark, log.start_offset, records
    )

"""Reads of one partition for a Fetch of a consumer or a verification tool.

A consumer reads below the replica's high watermark, at the leader, and since version 11 of Fetch at
any follower, too (KIP-392). A verification tool (replica id -2) reads to the log end, on any
replica. Errors are part of the result. Only damage that must stop the node is raised, as
CorruptLog (`damage.py`), and an OSError of a disk that the node cannot do without.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.broker.replication.partitions.damage import unreadable
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.files.errors import CorruptLog, OffsetOutOfRange
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.hot.fetch_request import FetchPartition
from quorate.quorum.protocol.hot.fetch_response import FetchPartitionResult
from quorate.quorum.seams import Buffer

DEBUGGING_CONSUMER = -2
"""The replica id of a verification tool, in Kafka's protocol."""

_EXPLAINED_BY_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def failed(
    wanted: FetchPartition, error: ErrorCode, hosted: HostedPartition | None = None
) -> FetchPartitionResult:
    """Return the result for an error. If `hosted` is given and the error says that this replica
    does not lead or leads in a newer epoch, it names the leader that this broker knows
    (KIP-951)."""
    leader = None
    if hosted is not None and error in _EXPLAINED_BY_LEADER:
        leader = (hosted.partition.leader_id, hosted.partition.leader_epoch)
    return FetchPartitionResult(
        wanted.topic, wanted.topic_id, wanted.partition, error, leader=leader
    )


def fetched(
    wanted: FetchPartition,
    hosted: HostedPartition,
    records: Buffer = b"",
    diverging: EpochOffset | None = None,
) -> FetchPartitionResult:
    """Return the result with `records`, and the present high watermark and log start."""
    high_watermark = hosted.partition.high_watermark
    return FetchPartitionResult(
        wanted.topic,
        wanted.topic_id,
        wanted.partition,
        0,
        high_watermark,
        high_watermark,  # the last stable offset: there are no transactions
        hosted.log.start_offset,
        records,
        diverging,
    )


def count_failed(registry: PartitionRegistry, results: Iterable[FetchPartitionResult]) -> None:
    """Count the errors among the results of a follower's fetch. A divergence is no error."""
    for result in results:
        if result.error:
            hosted = registry.get((result.topic_id, result.partition))
            traffic = registry.traffic.elsewhere if hosted is None else hosted.traffic
            traffic.fetch_requests += 1
            traffic.failed_fetch_requests += 1


def has_more(
    registry: PartitionRegistry, wanted: FetchPartition, result: FetchPartitionResult
) -> bool:
    """Return True if records below the high watermark follow those of `result`, which was read just
    now. They did not fit into a limit, or are in the next segment. A wait adds nothing to such a
    result."""
    hosted = registry.find(wanted.topic, wanted.topic_id, wanted.partition)
    if hosted is None or not len(result.records):
        return False
    try:
        end = hosted.log.bytes_below(result.high_watermark)
        return end - hosted.log.bytes_below(wanted.fetch_offset) > len(result.records)
    except (CorruptLog, OSError):  # the next read reports it
        return True


def is_refused(error: ErrorCode, *, from_follower: bool) -> bool:
    """Return True if an error of `Partition.leader_error` refuses a read.

    With `from_follower`, a follower is read as the leader is, in the same leader epoch and up to
    its own high watermark (KIP-392)."""
    return not (from_follower and error is ErrorCode.NOT_LEADER_OR_FOLLOWER)


def read(
    registry: PartitionRegistry,
    wanted: FetchPartition,
    max_bytes: int,
    from_follower: bool,
    *,
    to_log_end: bool,
) -> FetchPartitionResult:
    """Return the result of reading one partition.

    `from_follower` is True if a follower may serve the request. `to_log_end` is True for a
    verification tool. The result has at least one batch if `max_bytes`
    is positive and there is a batch, even a larger one. It has no records if `max_bytes` is not
    positive, or if there is a diverging epoch or an error."""
    hosted = registry.find(wanted.topic, wanted.topic_id, wanted.partition)
    if hosted is None:
        return failed(wanted, registry.why_missing(wanted.topic, wanted.topic_id, wanted.partition))
    partition, log = hosted.partition, hosted.log
    error = partition.leader_error(wanted.current_leader_epoch)
    if error and is_refused(error, from_follower=from_follower):
        return failed(wanted, error, hosted)
    offset = wanted.fetch_offset
    try:
        diverging = partition.diverging(offset, wanted.last_fetched_epoch)
        if diverging is not None:
            return fetched(wanted, hosted, diverging=diverging)
        end = log.end_offset if to_log_end else partition.high_watermark
        if offset >= end or max_bytes <= 0:
            return fetched(wanted, hosted)
        return fetched(wanted, hosted, log.read(offset, max_bytes, end=end))
    except KafkaError as refused:
        return failed(wanted, refused.code)
    except OffsetOutOfRange:
        return failed(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
    except CorruptLog as damage:
        return failed(wanted, unreadable(hosted, damage))
    except OSError as error:
        if not registry.survives(error):
            raise
        return failed(wanted, ErrorCode.KAFKA_STORAGE_ERROR)

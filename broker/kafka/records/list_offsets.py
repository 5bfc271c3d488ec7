"""Handles ListOffsets (API key 2) and OffsetForLeaderEpoch (23) on the leader of a partition.

A tool that compares replicas asks followers, too (ListOffsets with replica id -2).

ListOffsets returns the start, the end, or the offset of a timestamp of a log. OffsetForLeaderEpoch
returns the end offset of a leader epoch (KIP-101, KIP-320).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.broker.kafka.records.log_lookups import LogLookups
from quorate.broker.kafka.shared.replicas import Replicas
from quorate.broker.kafka.shared.request_parts import emptied
from quorate.broker.replication.fetches.reading import DEBUGGING_CONSUMER, is_refused
from quorate.broker.replication.partitions.damage import undecodable, unreadable
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.log.files.errors import CorruptBatch, CorruptLog
from quorate.quorum.log.segments.timestamp_lookup import Lookup, look_up_timestamp
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from quorate.quorum.protocol.schemas.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from quorate.quorum.rpc.kafka.server import RequestContext

CONSUMER = -1
"""The replica id of consumers."""
ENTRIES, SEARCH_ENTRIES = 4, 200
"""Weights of a partition, and of a partition whose log is searched by timestamp, in entries of a
step (`Pace`)."""
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
"""The special timestamps of ListOffsets. A value from 0 on is a timestamp in ms."""
NO_TIMESTAMP = -1
SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
"""The first ListOffsets version that knows a special timestamp (KIP-734, KIP-405, KIP-1005)."""

TimestampedOffset = tuple[int, int, int]
"""Timestamp in ms, offset and leader epoch."""


def failed_partition(partition_id: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    """Return the ListOffsets result of a partition that failed."""
    return ListOffsetsPartitionResponse(partition_index=partition_id, error_code=error)


@dataclass(frozen=True, slots=True)
class ListOffsetsHandler:
    """Handles both APIs on one broker, on the broker's event loop."""

    replicas: Replicas
    lookups: LogLookups = field(default_factory=LogLookups)

    def list_offsets(
        self, context: RequestContext, request: ListOffsetsRequest
    ) -> IncrementalWork[None] | None:
        """Respond with one offset for each partition that the request names.

        A partition without a matching committed record gets offset -1. Errors of a partition:

        - INVALID_REQUEST if the request names it twice, because the client could not tell the two
          results apart.
        - UNSUPPORTED_VERSION if the version does not have this special timestamp (`SINCE`). A later
          client may send one that no version here has, such as -6 (KIP-1023).
        - The error of a missing replica (`PartitionRegistry.why_missing`), NOT_LEADER_OR_FOLLOWER,
          FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
        - OFFSET_NOT_AVAILABLE if a consumer asks for LATEST, or for a time without a committed
          record, while a new leader's high watermark is below the start of its epoch (KIP-207).
          Before version 5 it is LEADER_NOT_AVAILABLE.
        - The error of damaged records, or KAFKA_STORAGE_ERROR if the log directory fails.

        Return the steps that are left, or None.
        """
        return begun(self.lookups.run(context, self._list_offsets(context, request)))

    def _list_offsets(self, context: RequestContext, request: ListOffsetsRequest) -> Lookup[None]:
        twice = yield from named_twice(request)
        topics, pace = [], Pace()
        for topic in request.topics:
            partitions = []
            answered: set[int] = set()
            for each in topic.partitions:
                index = each.partition_index
                if index in answered:
                    continue
                answered.add(index)
                if pace.is_time(ENTRIES if each.timestamp < 0 else SEARCH_ENTRIES):
                    yield None
                if (topic.name, index) in twice:
                    listed = failed_partition(index, ErrorCode.INVALID_REQUEST)
                else:
                    listed = yield from self._list(
                        topic.name, each, request.replica_id, context.version
                    )
                partitions.append(listed)
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(partitions)))
            if pace.is_time(ENTRIES):
                yield None
        yield from context.respond_steps(ListOffsetsResponse(topics=tuple(topics)))

    def _list(
        self, topic: str, wanted: ListOffsetsPartition, replica_id: int, version: int
    ) -> Lookup[ListOffsetsPartitionResponse]:
        """Return the result of one partition. This broker must lead it, unless a tool asks.

        A new leader answers a consumer with OFFSET_NOT_AVAILABLE until its high watermark has
        passed the start of its epoch (KIP-207). The high watermark of the last leader may have been
        higher, so the end of the log and the absence of a committed record are not known. A
        record that was found is committed in any case.
        """
        if wanted.timestamp < 0 and version < SINCE.get(wanted.timestamp, version + 1):
            return failed_partition(wanted.partition_index, ErrorCode.UNSUPPORTED_VERSION)
        index = wanted.partition_index
        hosted, error = self._replica(topic, index, wanted.current_leader_epoch, replica_id)
        if hosted is None or error:
            return failed_partition(wanted.partition_index, error)
        unavailable = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else LEADER_UNKNOWN
        if wanted.timestamp == LATEST and replica_id == CONSUMER and is_behind(hosted):
            return failed_partition(wanted.partition_index, unavailable)
        epoch = hosted.partition.leader_epoch
        try:
            if (know := DIRECT.get(wanted.timestamp)) is not None:
                found = know(hosted, replica_id)
            else:
                search = SEARCHES.get(wanted.timestamp, at_time)
                found = yield from search(hosted, wanted.timestamp)
                if found is None and replica_id == CONSUMER and is_behind(hosted):
                    return failed_partition(wanted.partition_index, unavailable)
        except CorruptLog as damage:
            return failed_partition(wanted.partition_index, unreadable(hosted, damage))
        except CorruptBatch as poison:
            return failed_partition(wanted.partition_index, undecodable(hosted, poison))
        except OSError as failure:
            if not self.replicas.registry.survives(failure):
                raise
            return failed_partition(wanted.partition_index, ErrorCode.KAFKA_STORAGE_ERROR)
        if self._replica(topic, index, epoch, replica_id) != (hosted, ErrorCode.NONE):
            # The leader changed while the search paused.
            return failed_partition(wanted.partition_index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        timestamp, offset, epoch = found or (NO_TIMESTAMP, -1, -1)
        return ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index,
            error_code=ErrorCode.NONE,
            timestamp=timestamp,
            offset=offset,
            leader_epoch=epoch,
        )

    def epoch_end_offsets(
        self, context: RequestContext, request: OffsetForLeaderEpochRequest
    ) -> IncrementalWork[None] | None:
        """Respond with the end offset of a leader epoch for each partition.

        The result is the largest epoch up to the requested one that the log has, and its end
        offset. If the log begins with a later epoch, the result is the requested epoch and the
        start of the first one. If the requested epoch is -1 or above the latest epoch of the log,
        both results are -1. A partition that this broker does not lead gets an error. Return the
        steps that are left, or None.
        """
        return begun(self._epoch_end_offsets(context, request))

    def _epoch_end_offsets(
        self, context: RequestContext, request: OffsetForLeaderEpochRequest
    ) -> IncrementalWork[None]:
        topics, pace = [], Pace()
        for topic in request.topics:
            partitions = []
            for each in topic.partitions:
                partitions.append(self._epoch_end(topic.topic, each))
                if pace.is_time(ENTRIES):
                    yield
            topics.append(
                OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(partitions))
            )
            if pace.is_time(ENTRIES):
                yield
        yield from context.respond_steps(OffsetForLeaderEpochResponse(topics=tuple(topics)))

    def _epoch_end(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        hosted, error = self._leader(topic, wanted.partition, wanted.current_leader_epoch)
        if hosted is None or error:
            return EpochEndOffset(partition=wanted.partition, error_code=error)
        found = hosted.log.epochs.end_offset_for(wanted.leader_epoch, hosted.log.end_offset)
        return EpochEndOffset(
            partition=wanted.partition,
            error_code=ErrorCode.NONE,
            leader_epoch=-1 if found is None else found.epoch,
            end_offset=-1 if found is None else found.offset,
        )

    def _leader(
        self, topic: str, partition: int, current_leader_epoch: int
    ) -> tuple[HostedPartition | None, ErrorCode]:
        """Return the partition and NONE if this broker leads it in the epoch, or else the error."""
        return self._replica(topic, partition, current_leader_epoch, CONSUMER)

    def _replica(
        self, topic: str, partition: int, current_leader_epoch: int, replica_id: int
    ) -> tuple[HostedPartition | None, ErrorCode]:
        """Return the partition and NONE, or else the error. A follower answers DEBUGGING_CONSUMER
        only, in the same epoch as the leader."""
        registry = self.replicas.registry
        hosted = registry.find(topic, ZERO_UUID, partition)
        if hosted is None:
            return None, registry.why_missing(topic, ZERO_UUID, partition)
        error = hosted.partition.leader_error(current_leader_epoch)
        from_follower = replica_id == DEBUGGING_CONSUMER
        return hosted, error if is_refused(error, from_follower=from_follower) else ErrorCode.NONE


def named_twice(request: ListOffsetsRequest) -> IncrementalWork[set[tuple[str, int]]]:
    """Return the partitions that the request names more than once, in steps."""
    once: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    pace = Pace()
    for topic in request.topics:
        for each in topic.partitions:
            place = (topic.name, each.partition_index)
            if place in once:
                twice.add(place)
            else:
                once.add(place)
            if pace.is_time():
                yield
        if pace.is_time():
            yield
    yield from emptied(once)
    return twice


def is_behind(hosted: HostedPartition) -> bool:
    """Return True if this replica leads, and its high watermark is below the start of its epoch."""
    leading = hosted.partition.leadership
    return leading is not None and hosted.partition.high_watermark < leading.epoch_start_offset


LEADER_UNKNOWN = ErrorCode.LEADER_NOT_AVAILABLE
"""The error in place of OFFSET_NOT_AVAILABLE before version 5, where that error does not exist."""


def latest(hosted: HostedPartition, replica_id: int) -> TimestampedOffset | None:
    """Return the high watermark for a consumer, and the log end offset for a tool."""
    consumer = replica_id == CONSUMER
    offset = hosted.partition.high_watermark if consumer else hosted.log.end_offset
    return NO_TIMESTAMP, offset, hosted.partition.leader_epoch


def earliest(hosted: HostedPartition, replica_id: int) -> TimestampedOffset | None:
    """Return the log start offset."""
    offset = hosted.log.start_offset
    return NO_TIMESTAMP, offset, hosted.log.epochs.epoch_at(offset)


def no_tiered_offset(hosted: HostedPartition, replica_id: int) -> TimestampedOffset | None:
    """Return None: there is no tiered storage."""
    return None


def at_max_timestamp(hosted: HostedPartition, timestamp: int) -> Lookup[TimestampedOffset | None]:
    """Return the first record with the largest timestamp, or None if the log is empty or that
    record is not committed (KIP-734)."""
    log = None
    while log is not hosted.log:  # it may move to another log directory meanwhile
        log = hosted.log
        yield from log.learn_max_timestamps()
    return (yield from at_time(hosted, hosted.log.max_timestamp_ms))


def at_time(hosted: HostedPartition, timestamp: int) -> Lookup[TimestampedOffset | None]:
    """Return the first record with this or a later timestamp, or None if there is none or that
    record is not committed."""
    log, found = None, None
    while found is None and log is not hosted.log:  # see above
        log = hosted.log
        found = yield from look_up_timestamp(log, timestamp)
    if found is None or found.offset >= hosted.partition.high_watermark:
        return None
    return found.timestamp_ms, found.offset, found.leader_epoch


# The results that need no search of the log.
DIRECT: dict[int, Callable[[HostedPartition, int], TimestampedOffset | None]] = {
    LATEST: latest,
    EARLIEST: earliest,
    EARLIEST_LOCAL: earliest,
    LATEST_TIERED: no_tiered_offset,
}
SEARCHES: dict[int, Callable[[HostedPartition, int], Lookup[TimestampedOffset | None]]] = {
    MAX_TIMESTAMP: at_max_timestamp,
}
"""The searches for special timestamps. `at_time` searches for all others."""

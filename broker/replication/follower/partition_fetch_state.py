"""The fetch state of one followed partition, and the follower's reaction to the leader's answer.

| answer                               | reaction of the follower                                  |
|--------------------------------------|-----------------------------------------------------------|
| records                              | append them, and fetch from the new log end; first flush  |
|                                      | the log if flush.messages says so                         |
| no records                           | wait until the leader has a change                        |
| records of a later leader epoch only | back off: newer metadata will name that epoch             |
| diverging epoch                      | truncate by its own epochs, and fetch again (KIP-279)     |
| OFFSET_OUT_OF_RANGE                  | restart at the leader's log start                         |
| a log start at this log's end, and   | restart there: the epochs of deleted records prove        |
| unproved records below               | nothing                                                   |
| FENCED_LEADER_EPOCH                  | stop; newer metadata will name the leader                 |
| another error, damaged records       | back off, and fetch again                                 |
| records that do not continue the log | stop, with an error: the leader's log is not to be copied |
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass

from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.replication_throttle import ReplicationThrottle
from quorate.quorum.log.files.errors import BrokenChain, CorruptBatch, OutOfFiles
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.fetch_request import FetchPartition
from quorate.quorum.protocol.hot.fetch_response import FetchPartitionResult

logger = logging.getLogger("quorate.broker.replication")


RESTARTED = -1
"""The end of the records that stay when a log restarts elsewhere. None of them stays, so that a
snapshot of the producers is wrong even at the offset at which the log begins again."""


class FetchAction(enum.Enum):
    """The next step of the fetcher for one partition."""

    FETCH = "fetch again in the next request"
    FLUSH = "flush the log, then fetch again"
    WAIT = "wait until the leader has a change"
    BACK_OFF = "fetch again after the backoff"
    STOP = "stop until newer metadata"


# These errors say that the metadata of the leader or of this broker is older. They are expected at
# each change of leadership.
_EXPECTED = (
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherContext:
    """The parts of this broker that its replica fetchers use."""

    broker_id: int
    broker_epoch: Callable[[], int]
    truncated: Callable[[HostedPartition, int], None]
    """Called after a truncation of the log, with the new log end, and beside a restart, with
    RESTARTED, before the next append. Producer snapshots above that offset are wrong."""
    load_producers: Callable[[HostedPartition], None]
    """Starts a load of the producer states (`producer_loader.py`)."""
    flush: Callable[[HostedPartition, Callable[[], None]], None]
    """Flushes the log of a partition, and then calls the function."""
    throttle: ReplicationThrottle
    """The throttle of this broker as a follower."""
    on_disk_failure: Callable[[OSError], None]
    link_lost: Callable[[int], None]
    """Called with the leader's broker id when a link to it fails or cannot be opened. It is not
    called again before a fetch succeeds or new metadata ends the waits."""


class PartitionFetchState:
    """One partition that this broker follows, in one leader epoch. The event loop owns it."""

    __slots__ = ("hosted", "leader_epoch", "leader_high_watermark")

    def __init__(self, hosted: HostedPartition, leader_epoch: int) -> None:
        self.hosted = hosted
        self.leader_epoch = leader_epoch
        self.leader_high_watermark = -1

    @property
    def lag(self) -> int:
        """Return the number of records by which this log is behind the leader's high watermark, as
        of the last answer; 0 before the first one."""
        return max(0, self.leader_high_watermark - self.hosted.log.end_offset)

    @property
    def may_be_held_back(self) -> bool:
        """Return True if an exceeded throttle applies to the partition: it is listed, and outside
        of the ISR. A replica that has reached the leader's high watermark counts as in the ISR, as
        in Kafka. One that has no answer yet does not count as such (KAFKA-15080)."""
        hosted = self.hosted
        if not hosted.follower_throttled or hosted.in_isr:
            return False
        return self.leader_high_watermark < 0 or self.lag > 0

    def request(self, key: Key, max_bytes: int) -> FetchPartition:
        """Return the partition's entry of the next Fetch request."""
        log = self.hosted.log
        return FetchPartition(
            "",
            key[0],
            key[1],
            log.end_offset,
            max_bytes,
            self.leader_epoch,
            log.last_epoch,
            log.start_offset,
        )

    def apply(
        self,
        result: FetchPartitionResult,
        context: FetcherContext,
        wall_ms: int,
    ) -> FetchAction:
        """Apply the leader's answer to the log. Return the next step.

        If the leader epoch has changed since the request, or this replica leads now, do nothing and
        return STOP. Raise OSError if a write fails."""
        hosted, partition = self.hosted, self.hosted.partition
        if partition.leader_epoch != self.leader_epoch or partition.leadership is not None:
            return FetchAction.STOP
        if result.error:
            return self._failed(result, context)
        if result.diverging is not None:
            start, before = hosted.log.start_offset, hosted.log.end_offset
            partition.truncate(result.diverging)
            after = hosted.log.end_offset
            logger.info(
                "%r diverged from its leader and was truncated from offset %d to %d",
                hosted,
                before,
                after,
            )
            if after < before:
                context.truncated(hosted, RESTARTED if after < start else after)
            return FetchAction.FETCH
        before = hosted.log.end_offset
        if self._is_unproved_below(result.log_start_offset):
            logger.info("%r restarts at the log start %d of its leader", hosted, before)
            context.truncated(hosted, RESTARTED)
            partition.restart_at(before)
        start = hosted.log.start_offset
        try:
            if len(result.records):
                partition.append_as_follower(result.records, wall_ms=wall_ms)
                hosted.traffic.replication_bytes_in += len(result.records)
                if hosted.follower_throttled:
                    context.throttle.record(len(result.records))
                if hosted.adding:
                    hosted.traffic.reassignment_bytes_in += len(result.records)
                if partition.producers.wanted:
                    context.load_producers(hosted)
        except OutOfFiles:  # no batch is lost, but an empty log may begin at a lower offset now
            partition.high_watermark = min(partition.high_watermark, hosted.log.end_offset)
            return FetchAction.BACK_OFF
        except CorruptBatch as error:
            logger.warning("%r: the leader sent damaged records: %s; retrying", hosted, error)
            return FetchAction.BACK_OFF
        except BrokenChain as error:
            logger.error(
                "%r is not replicated until its leader changes: the leader sent records that do "
                "not continue the log: %s",
                hosted,
                error,
            )
            return FetchAction.STOP
        self.leader_high_watermark = result.high_watermark
        partition.leader_high_watermark(result.high_watermark)
        if hosted.watchers:  # fetches of consumers that read this follower
            hosted.settle()
        if result.log_start_offset > start:
            hosted.log.advance_start(min(result.log_start_offset, hosted.log.end_offset))
        if not len(result.records):
            # A deletion of records at the leader waits for the new start of this log.
            return FetchAction.FETCH if hosted.log.start_offset > start else FetchAction.WAIT
        if hosted.log.end_offset <= before:
            return FetchAction.BACK_OFF
        return FetchAction.FLUSH if hosted.log.must_flush else FetchAction.FETCH

    def _is_unproved_below(self, leader_start: int) -> bool:
        """Return True if this log ends at the leader's log start, and some of its records may
        differ from those that the leader deleted.

        The leader's epochs begin at its log start, so the leader accepts any older epoch at that
        offset. An uncommitted record of a deposed leader would stay below the log start. After
        `kill -9` an older log start returns, and a consumer could read that record. Records below
        the high watermark, and records of the leader's own epoch, are proved."""
        log, partition = self.hosted.log, self.hosted.partition
        return (
            leader_start == log.end_offset > log.start_offset
            and partition.high_watermark < leader_start
            and log.last_epoch < self.leader_epoch
        )

    def _failed(self, result: FetchPartitionResult, context: FetcherContext) -> FetchAction:
        hosted = self.hosted
        if result.error == ErrorCode.FENCED_LEADER_EPOCH:
            return FetchAction.STOP
        if result.error == ErrorCode.OFFSET_OUT_OF_RANGE and result.log_start_offset >= 0:
            logger.warning(
                "%r: the leader's log does not have offset %d; restarting at its log start %d",
                hosted,
                hosted.log.end_offset,
                result.log_start_offset,
            )
            context.truncated(hosted, RESTARTED)
            hosted.partition.restart_at(result.log_start_offset)
            return FetchAction.FETCH
        if result.error not in _EXPECTED:
            logger.warning(
                "%r: the leader answered the fetch with %s; retrying after the backoff",
                hosted,
                ErrorCode.of(result.error).name,
            )
        return FetchAction.BACK_OFF

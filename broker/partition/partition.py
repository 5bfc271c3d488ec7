"""One replica of a partition with the work of its leader: produce, fetch, ISR and high watermark.

`local_replica.py` has the work of a follower and the invariants of both roles. The rules of the ISR
and of the high watermark are in `leadership.py`. The code is synchronous. Its only I/O is that of
the log that it is given. The caller picks up two results after each call: `high_watermark`, and
`leadership.proposal`, which is at most one ISR change (`HostedPartition.settle` does both).

Delayed requests, sockets and files belong to `broker/replication`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from quorate.broker.partition.key_check import CheckedKeys
from quorate.broker.partition.leadership import Brokers, Leadership
from quorate.broker.partition.local_replica import LocalReplica
from quorate.broker.partition.partition_log import PartitionLog
from quorate.broker.partition.producer_state import ProducerStates
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.partition.truncation import diverging_epoch
from quorate.broker.partition.validation import validate_client_batch
from quorate.quorum.controller.state.messages import IsrChange, IsrChangeResult
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.log.batches.batch import (
    HEADER,
    BatchHeader,
    assign,
    set_append_time,
)
from quorate.quorum.metadata import image
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.state_in_doubt import changing

ACKS_ALL = -1
NO_TIMESTAMP = -1
NO_EPOCH = -1
"""The epoch in a request that names none."""
TO_HIGH_WATERMARK = -1
"""The offset with which `Partition.delete_records` deletes up to the high watermark."""


class Appended(NamedTuple):
    """The result of an append. `end_offset` is the high watermark that acks=all waits for.
    `append_time_ms` is NO_TIMESTAMP if the topic does not use LogAppendTime. A repeated batch,
    which is not appended again, has the offsets and the time of its first append."""

    base_offset: int
    end_offset: int
    append_time_ms: int


class FollowerFetch(NamedTuple):
    """The part of a follower's Fetch that acknowledges records.

    The follower has everything below `offset`, and `last_fetched_epoch` is the leader epoch of its
    last record. `leader_epoch` is the epoch that it follows, `start_offset` its log start."""

    replica_id: int
    broker_epoch: int
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    start_offset: int


class Partition(LocalReplica):
    """One replica on this broker, as its leader and as a follower (Kafka's Partition).

    The event loop owns it. A role lasts until the metadata names another leader: `make_leader` and
    `make_follower` apply an image's state of the partition, and ignore an older one.

    `now_ms` is the monotonic time and `wall_ms` the time of day, both in ms. The caller checks
    `high_watermark` and `leadership.proposal` after each call.

    Invariant: consumers read nothing at or above the high watermark."""

    def __init__(
        self,
        topic_id: Uuid,
        partition_id: int,
        broker_id: int,
        log: PartitionLog,
        settings: PartitionSettings,
        *,
        brokers: Brokers,
        producers: ProducerStates | None,
        high_watermark: int = 0,
    ) -> None:
        """Begin without a role. `brokers` returns a broker's registration in the latest image, or
        None. `producers` are the states as of the log end, or None if they must be loaded."""
        super().__init__(topic_id, partition_id, log, producers, high_watermark)
        self._settings = settings
        self._broker_id = broker_id
        self._brokers = brokers

    # --- roles

    def make_leader(self, value: image.Partition, now_ms: int) -> bool:
        """Lead in the epoch that the metadata names. Return True if a new leader epoch begins.

        An older state than the present one is ignored, and the result is False. Raise
        AssertionError if this broker is not in the state's ISR."""
        if self._is_old(value):
            return False
        if self.leadership is None:
            self.leadership = Leadership(
                (self.topic_id, self.partition_id), self._broker_id, self._brokers, self._settings
            )
        new_epoch = self.leadership.assign(value, self.log.end_offset, now_ms)
        if new_epoch:
            # A follower may have later epochs than any in this log. This entry lets the leader
            # answer where its own log ends before those epochs (KIP-101).
            self.log.assign_epoch(value.leader_epoch)
        self._take_epochs(value)
        self._advance_high_watermark(now_ms)
        return new_epoch

    @property
    def settings(self) -> PartitionSettings:
        """Return the partition's settings."""
        return self._settings

    def configure(self, settings: PartitionSettings, now_ms: int) -> None:
        """Replace the settings. A lower min.insync.replicas may let the high watermark advance."""
        self._settings = settings
        if self.leadership is not None:
            self.leadership.settings = settings
            self._advance_high_watermark(now_ms)

    def raise_min_isr(self, min_insync_replicas: int) -> None:
        """Apply min.insync.replicas if it is higher than the present one. The high watermark does
        not move."""
        if min_insync_replicas > self._settings.min_insync_replicas:
            self._settings = replace(self._settings, min_insync_replicas=min_insync_replicas)
            if self.leadership is not None:
                self.leadership.settings = self._settings

    def leader_error(self, current_leader_epoch: int = NO_EPOCH) -> ErrorCode:
        """Return NONE if this replica leads in the epoch that a request names, or the error for
        the request.

        `current_leader_epoch` is NO_EPOCH if the request names none. An epoch later than this
        replica's gives UNKNOWN_LEADER_EPOCH, an earlier one FENCED_LEADER_EPOCH (KIP-320; R58 in
        tests/scenarios). Otherwise a follower gives NOT_LEADER_OR_FOLLOWER."""
        if current_leader_epoch != NO_EPOCH:
            if current_leader_epoch < self.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            if current_leader_epoch > self.leader_epoch:
                return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.leadership is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _leading(self) -> Leadership:
        """Return the leadership. Raise KafkaError (NOT_LEADER_OR_FOLLOWER) if this replica
        follows."""
        if self.leadership is None:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"the leader of the partition is {self.leader_id}, not {self._broker_id}",
            )
        return self.leadership

    # --- produce

    def append_as_leader(
        self,
        data: bytearray | memoryview,
        required_acks: int,
        *,
        now_ms: int,
        wall_ms: int,
        internal: bool = False,
        keys: CheckedKeys | None = None,
    ) -> Appended:
        """Append one batch of a client. `data` is patched in place with offsets and epoch. On
        return the batch is in the page cache, and the high watermark may have advanced.

        `required_acks` matters only if it is ACKS_ALL: the batch is then refused while the ISR is
        too small. `internal` marks a batch of this broker's own coordinators. `keys` is the result
        of an earlier check of the keys of this batch, if there was one. A repeated batch of an
        idempotent producer is not appended again; the result is that of its first append.

        Raise KafkaError (NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, or an error of
        `validation.py` or `producer_state.py`), ProducersNotLoaded if the producer states must be
        loaded first, or OSError if the write fails. The log has the same batches as before after
        each of these errors."""
        leadership = self._leading()
        if required_acks == ACKS_ALL and leadership.under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"the ISR {list(leadership.isr.committed)} is smaller than min.insync.replicas "
                f"({leadership.effective_min_isr})",
            )
        settings = self._settings
        header = validate_client_batch(data, settings, wall_ms, internal=internal, keys=keys)
        if header.size_bytes > settings.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"the batch has {header.size_bytes} bytes, segment.bytes is "
                f"{settings.segment_bytes}",
            )
        if header.producer_id >= 0:
            sent = self.producers.required().check(header)
            if sent is not None:
                time_ms = sent.timestamp_ms if settings.log_append_time else NO_TIMESTAMP
                return Appended(sent.first_offset, sent.last_offset + 1, time_ms)
        append_time_ms = NO_TIMESTAMP
        if self._settings.log_append_time:
            append_time_ms = wall_ms
            set_append_time(data, wall_ms)
        base_offset = self.log.end_offset
        assign(data, base_offset, leadership.epoch)
        placed = BatchHeader._make(HEADER.unpack_from(data))
        with changing(self._name, OSError):
            self.log.append(data, wall_ms=wall_ms, placed=((0, placed),))
            assert self.log.end_offset == base_offset + header.record_count
            if header.producer_id >= 0:
                self.producers.append(placed)
            self._advance_high_watermark(now_ms)
        return Appended(base_offset, base_offset + header.record_count, append_time_ms)

    def acks_all_error(self, required_offset: int) -> ErrorCode | None:
        """Return the result of an acks=all append whose batch ends at `required_offset`, or None if
        the append must wait for the high watermark.

        NONE: the batch is committed. NOT_ENOUGH_REPLICAS_AFTER_APPEND: the high watermark has
        passed the batch, but the ISR is too small now. NOT_LEADER_OR_FOLLOWER: this replica
        follows."""
        if self.leadership is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark < required_offset:
            return None
        if len(self.leadership.isr.maximal) < self.leadership.effective_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def delete_records(self, offset: int) -> int:
        """Move the log start up to `offset`, or to the high watermark for TO_HIGH_WATERMARK. Return
        this offset. The deletion is complete when `low_watermark` has reached it.

        A log start that is already higher stays. The new start is in memory only; the next
        checkpoint of the log start offsets makes it durable. Raise KafkaError if this replica does
        not lead (NOT_LEADER_OR_FOLLOWER), the topic is only compacted (POLICY_VIOLATION), or
        `offset` is negative or above the high watermark (OFFSET_OUT_OF_RANGE)."""
        self._leading()
        if self._settings.compacted and not self._settings.deletes:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                "the topic's cleanup.policy is compact, so its records cannot be deleted",
            )
        if offset == TO_HIGH_WATERMARK:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"cannot delete up to offset {offset}: the high watermark is {self.high_watermark}",
            )
        self.log.advance_start(offset)
        assert self.log.start_offset <= self.high_watermark
        return offset

    @property
    def low_watermark(self) -> int:
        """Return the lowest log start of the in-sync replicas, or -1 while one is unknown. Raise
        KafkaError if this replica does not lead."""
        return self._leading().low_watermark(self.log.start_offset)

    # --- fetch, the leader's side

    def diverging(self, offset: int, last_fetched_epoch: int) -> EpochOffset | None:
        """Return the epoch and offset at which a fetcher's log diverges from this one, or None if
        it does not.

        The fetcher has everything below `offset`, up to a record of `last_fetched_epoch`, or
        NO_EPOCH if it does not know its epoch. Nothing diverges without an epoch. An `offset` above
        the log end diverges, unless there is no epoch.

        Raise KafkaError (OFFSET_OUT_OF_RANGE) if the offset is below the log start, if the epoch is
        above the latest one of this log, or if the offset is above the log end and there is no
        epoch (KIP-595)."""
        if last_fetched_epoch != NO_EPOCH:
            if offset < self.log.start_offset:
                raise self._out_of_range(offset)
            # Fast path for a follower of the latest epoch, without the epoch cache.
            if last_fetched_epoch == self.log.last_epoch and offset <= self.log.end_offset:
                return None
            end_of_epoch = self.log.epochs.end_offset_for(last_fetched_epoch, self.log.end_offset)
            if end_of_epoch is None:
                raise self._out_of_range(offset)
            diverging = diverging_epoch(last_fetched_epoch, offset, end_of_epoch)
            if diverging is not None:
                return diverging
        if not self.log.start_offset <= offset <= self.log.end_offset:
            raise self._out_of_range(offset)
        return None

    def follower_fetched(self, fetch: FollowerFetch, now_ms: int) -> EpochOffset | None:
        """Take note of a follower's fetch. Return the diverging epoch and offset, or None.

        The caller has checked the leader epoch (`leader_error`). A fetch that diverges proves
        nothing about the follower's log, so it changes nothing. Another fetch may advance the high
        watermark and propose the follower for the ISR. Raise KafkaError if this replica does not
        lead or the follower's broker epoch is outdated (NOT_LEADER_OR_FOLLOWER), if the follower is
        no replica (UNKNOWN_LEADER_EPOCH), or if its offset is out of range (`diverging`)."""
        leadership = self._leading()
        replica = leadership.replicas.get(fetch.replica_id)
        if replica is None:
            # The metadata of this broker may be older than the follower's.
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {fetch.replica_id} is not a replica as of partition epoch "
                f"{self.partition_epoch}",
            )
        if leadership.stale_fetch(fetch.replica_id, fetch.broker_epoch):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker epoch {fetch.broker_epoch} of replica {fetch.replica_id} is outdated",
            )
        diverging = self.diverging(fetch.offset, fetch.last_fetched_epoch)
        if diverging is not None:
            return diverging
        moved = replica.end_offset != fetch.offset
        replica.fetched(
            fetch.offset,
            fetch.start_offset,
            fetch.broker_epoch,
            leader_end_offset=self.log.end_offset,
            now_ms=now_ms,
        )
        leadership.maybe_expand(replica, self.high_watermark)
        if moved:
            self._advance_high_watermark(now_ms)
        return None

    def _out_of_range(self, offset: int) -> KafkaError:
        return KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} is outside of the log, {self.log.start_offset} to "
            f"{self.log.end_offset}",
        )

    # --- ISR

    def check_followers(self, now_ms: int) -> None:
        """Propose to remove the members of the ISR that lag. Call it every half of
        replica.lag.time.max.ms."""
        if self.leadership is not None:
            self.leadership.maybe_shrink(self.log.end_offset, now_ms)

    def check_joining(self, now_ms: int) -> None:
        """Propose a follower that has caught up, and advance the high watermark if a follower that
        held it back no longer does. Call it when the eligibility of a broker may have changed since
        the follower's last fetch, and from time to time. Do nothing if this replica follows or all
        replicas are in sync, and propose nothing while a proposal has no answer."""
        leadership = self.leadership
        if leadership is None or len(leadership.isr.committed) > len(leadership.replicas):
            return
        for replica in leadership.replicas.values():
            leadership.maybe_expand(replica, self.high_watermark)
        self._advance_high_watermark(now_ms)

    def follower_seen(self, replica_id: int, at_ms: int) -> None:
        """Note that the follower had fetched everything there was at `at_ms`.

        A fetch that waits at the leader sends nothing while the log does not grow, but it proves
        that its follower is caught up (`broker/replication/fetches/replica_session.py`)."""
        if self.leadership is not None and replica_id in self.leadership.replicas:
            self.leadership.replicas[replica_id].seen_caught_up(at_ms)

    def isr_answered(self, change: IsrChange, result: IsrChangeResult, now_ms: int) -> None:
        """Apply the controller's answer to a proposed ISR change, if this replica still leads."""
        if self.leadership is not None:
            self.leadership.answered(change, result)
            self.partition_epoch = max(self.partition_epoch, self.leadership.partition_epoch)
            self._advance_high_watermark(now_ms)

    def _advance_high_watermark(self, now_ms: int) -> None:
        assert self.leadership is not None, "only a leader computes the high watermark"
        before, end_offset = self.high_watermark, self.log.end_offset
        after = self.leadership.next_high_watermark(before, end_offset, now_ms)
        assert before <= after <= end_offset, (before, after, end_offset)
        self.high_watermark = after

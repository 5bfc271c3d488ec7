"""The fetch session of one fetcher of a follower, at the leader's broker: the work grows with the
changes only (KIP-227).

A fetcher names a partition once. Afterwards a request has only the partitions whose fetch offset
moved, and the leader looks only at the partitions that changed. Each session watches its
partitions.

Rules:

- A partition that was answered with records, an error or a diverging epoch is not answered again
  until its follower names it. A new high watermark or log start is sent with the next answer. If
  consumers were sent to the follower, a new high watermark is sent immediately, because they may
  read only below it. In Kafka it waits for up to replica.fetch.wait.max.ms (KAFKA-9952). A follower
  that names the partition in another leader epoch gets both again, because it ignores answers to
  its requests of the earlier epoch.
- A partition waits for the metadata if it is not open here, or if the follower names a leader epoch
  that this broker has not replayed. After AWAIT_METADATA_MAX_MS, the next answer has an error for
  it. An immediate error would cost the follower its backoff.
- A fetch waits until replica.fetch.min.bytes are readable in all partitions together, but answers
  an error, a divergence and a new log start immediately.
- A partition that a request names counts as fetched at the offset named. One that it does not name
  is still at its earlier offset. While nothing is readable for such a partition, its follower has
  everything (`Partition.follower_seen`).
- A partition whose follower is outside of the ISR is left out while the leader's throttle holds it
  back (`replication_throttle.py`). It stays readable, and is tried again with each answer and each
  fetch, thus at the latest after the follower's maximum wait.
- A partition that neither this broker nor its metadata knows is not kept: at most MAX_UNKNOWN of
  them wait, and none stays after its error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from quorate.broker.partition.partition import FollowerFetch
from quorate.broker.replication.fetches.fetch_session_cache import (
    FIRST_EPOCH,
    NO_SESSION,
    epoch_after,
)
from quorate.broker.replication.fetches.reading import count_failed, failed, fetched
from quorate.broker.replication.fetches.session_context import SessionContext
from quorate.broker.replication.partitions.damage import unreadable
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.quorum.log.files.errors import CorruptLog, OffsetOutOfRange
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.hot.fetch_request import FetchPartition, FetchRequest
from quorate.quorum.protocol.hot.fetch_response import FetchPartitionResult

AWAIT_METADATA_MAX_MS = 5000
MAX_UNKNOWN = 10_000
"""A session refuses an unknown partition while this many of its partitions wait for metadata. A
request may name this many partitions more than are open here."""

Respond = Callable[[int, int, Sequence[FetchPartitionResult]], None]
"""(error, session id or 0, partitions). With an error there are no partitions."""


class ReplicaSession:
    """The fetch session of one fetcher (a `Session` of the cache), and a watcher of its
    partitions. The event loop owns it.

    A partition is in at most one of `_errors`, `_readable` and `_awaiting`. `_answered` holds the
    partitions that the follower must name again. At most one fetch waits (`_respond`)."""

    of_follower = True
    uses_topic_ids = True

    def __init__(
        self,
        context: SessionContext,
        replica_id: int,
        broker_epoch: int,
        on_end: Callable[[ReplicaSession], None],
    ) -> None:
        """Begin empty, without an id. `on_end` is called once when the session ends."""
        self.id = NO_SESSION
        self.next_epoch = epoch_after(FIRST_EPOCH)
        self.counted = 0
        """The number of partitions after the last fetch (`ReplicaSessions` keeps the sum)."""
        self._context = context
        self._on_end = on_end
        self._replica_id = replica_id
        self._broker_epoch = broker_epoch
        self._partitions: dict[Key, FetchPartition] = {}
        self._watched: dict[Key, HostedPartition] = {}
        self._errors: dict[Key, FetchPartitionResult] = {}  # errors and diverging epochs
        self._answered: set[Key] = set()  # the follower must name them again
        self._readable: dict[Key, HostedPartition] = {}
        self._moved: dict[Key, HostedPartition] = {}  # a new high watermark or log start
        self._awaiting: dict[Key, int] = {}  # partitions that wait for metadata, since a time in ms
        self._last_fetch_ms = 0
        self._urgent = False  # an answer without records must not wait
        self._max_bytes = 0
        self._missing_bytes = 0  # until replica.fetch.min.bytes are readable
        self._respond: Respond | None = None
        self._tick = 0

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def idle_since_ms(self) -> int:
        """Return the monotonic time of the last fetch, in ms."""
        return self._last_fetch_ms

    # --- the follower's requests

    def fetch(self, request: FetchRequest, respond: Respond) -> None:
        """Take note of the request's partitions. Answer at the end of the loop iteration if there
        is something to send, or otherwise when the follower's wait is over. An earlier fetch that
        still waits is answered immediately."""
        if self._respond is not None:
            # A follower has one fetch in flight, so the link of the earlier fetch is gone.
            self._answer()
        now_ms = self._context.clock.now_ms()
        self._last_fetch_ms = now_ms
        self._max_bytes = request.max_bytes
        self._missing_bytes = request.min_bytes
        for key, hosted in self._readable.items():
            if self._missing_bytes <= 0:
                break
            self._count_from(hosted, self._partitions[key].fetch_offset)
        self._respond = respond
        for _, topic_id, partition_id in request.forgotten:
            self._forget((topic_id, partition_id))
        for wanted in request.partitions:
            key = (wanted.topic_id, wanted.partition)
            if self._is_unknown(key) and len(self._awaiting) >= MAX_UNKNOWN:
                self._forget(key)
                self._errors[key] = failed(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
                continue
            before = self._partitions.get(key)
            self._partitions[key] = wanted
            self._note(key, wanted, now_ms)
            if before is not None and before.current_leader_epoch != wanted.current_leader_epoch:
                self._resend_offsets(key)
        if self._errors or self._readable or self._urgent:
            # Answer at the end of this iteration. More partitions may become readable until then,
            # and the producers whose records these offsets acknowledge are answered first.
            self._context.callbacks.wake(self._try)
        self._tick = self._context.delayed_operations.add(self, max(0, request.max_wait_ms))

    def _is_unknown(self, key: Key) -> bool:
        registry = self._context.registry
        return registry.get(key) is None and registry.image.partition(*key) is None

    def _note(self, key: Key, wanted: FetchPartition, now_ms: int) -> None:
        self._answered.discard(key)
        self._errors.pop(key, None)
        self._readable.pop(key, None)
        self._awaiting.pop(key, None)
        hosted = self._context.registry.get(key)
        if hosted is None:
            self._awaiting[key] = now_ms
            return
        self._watch(key, hosted)
        error = hosted.partition.leader_error(wanted.current_leader_epoch)
        if error is ErrorCode.UNKNOWN_LEADER_EPOCH:
            self._awaiting[key] = now_ms
            return
        if error:
            self._errors[key] = failed(wanted, error, hosted)
            return
        try:
            diverging = hosted.partition.follower_fetched(
                FollowerFetch(
                    self._replica_id,
                    self._broker_epoch,
                    wanted.current_leader_epoch,
                    wanted.fetch_offset,
                    wanted.last_fetched_epoch,
                    wanted.log_start_offset,
                ),
                now_ms,
            )
        except KafkaError as refused:
            self._errors[key] = fetched(wanted, hosted)._replace(error=refused.code)
            return
        if diverging is not None:
            self._errors[key] = fetched(wanted, hosted, diverging=diverging)
        elif wanted.fetch_offset < hosted.log.end_offset:
            self._readable[key] = hosted
            self._count_from(hosted, wanted.fetch_offset)
        hosted.settle()

    def _count_from(self, hosted: HostedPartition, offset: int) -> None:
        """Count the bytes of the log from `offset` on. A read reports damage, and records that
        retention has removed meanwhile."""
        readable_bytes = self._missing_bytes
        if readable_bytes > 1 and offset >= hosted.log.start_offset:
            with suppress(CorruptLog, OSError):
                readable_bytes = hosted.log.size_bytes - hosted.log.bytes_below(offset)
        self._missing_bytes -= readable_bytes

    def _watch(self, key: Key, hosted: HostedPartition) -> None:
        if self._watched.get(key) is not hosted:
            self._watched[key] = hosted
            hosted.watchers[self] = None
            self._moved[key] = hosted

    def _resend_offsets(self, key: Key) -> None:
        """Send the high watermark and the log start again with the next answer. The follower did
        not apply an answer that came after the epoch had changed there."""
        if key in self._watched:
            self._moved[key] = self._watched[key]

    def _forget(self, key: Key) -> None:
        self._partitions.pop(key, None)
        self._answered.discard(key)
        self._errors.pop(key, None)
        self._readable.pop(key, None)
        self._moved.pop(key, None)
        self._awaiting.pop(key, None)
        hosted = self._watched.pop(key, None)
        if hosted is not None:
            hosted.watchers.pop(self, None)

    def retry_awaiting(self) -> None:
        """Look again at the partitions that wait for metadata."""
        now_ms = self._context.clock.now_ms()
        for key, since_ms in list(self._awaiting.items()):
            self._note(key, self._partitions[key], now_ms)
            if key in self._awaiting:
                self._awaiting[key] = since_ms
        if self._errors or self._readable:
            self._context.callbacks.wake(self._try)

    def end(self) -> None:
        """Answer the waiting fetch, and stop watching. The cache calls it once."""
        self._on_end(self)
        if self._respond is not None:
            self._answer()
        for key in list(self._watched):
            self._forget(key)

    # --- news of the partitions

    def appended(self, hosted: HostedPartition, size_bytes: int) -> None:
        """Take note that a partition is readable."""
        key = hosted.key
        if key in self._errors or (key in self._readable and self._missing_bytes <= 0):
            return
        if key in self._answered or key in self._awaiting:
            return
        self._missing_bytes -= size_bytes
        if key not in self._readable:
            self._became_readable(key, hosted)
        if self._respond is not None:
            self._context.callbacks.wake(self._try)

    def _became_readable(self, key: Key, hosted: HostedPartition) -> None:
        self._readable[key] = hosted
        # Before this append the follower had everything, as of its last fetch.
        hosted.partition.follower_seen(self._replica_id, self._last_fetch_ms)

    def moved(self, hosted: HostedPartition, size_bytes: int) -> None:
        """Take note of a new high watermark or log start. A new log start is sent immediately,
        because a deletion of records waits for it. So is the high watermark of a partition that
        consumers read from the follower."""
        self._moved[hosted.key] = hosted
        if not size_bytes or (
            hosted.readers_until_ms is not None
            and hosted.is_read_at(self._replica_id, self._context.clock.now_ms())
        ):
            self._urgent = True
            self._context.callbacks.wake(self._try)

    def read_at(self, hosted: HostedPartition, broker_id: int) -> None:
        """Send the follower a high watermark that it lacks, because consumers come to read."""
        if broker_id == self._replica_id and hosted.key in self._moved:
            self._urgent = True
            self._context.callbacks.wake(self._try)

    def changed(self, hosted: HostedPartition) -> None:
        """Take note of another role or epoch, or of the removal of the partition."""
        key, wanted = hosted.key, self._partitions[hosted.key]
        error = hosted.partition.leader_error(wanted.current_leader_epoch)
        if hosted.gone:
            error = ErrorCode.UNKNOWN_TOPIC_ID
            del self._watched[key]
            del hosted.watchers[self]
        if not error or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
            return
        self._readable.pop(key, None)
        self._awaiting.pop(key, None)
        self._errors[key] = failed(wanted, error, hosted)
        self._context.callbacks.wake(self._try)

    # --- answers

    def expire(self) -> None:
        """Answer now, because the follower's wait is over."""
        self._answer()

    def _try(self) -> None:
        if self._respond is not None and (
            self._errors or self._urgent or (self._missing_bytes <= 0 and self._may_read_any())
        ):
            self._answer()

    def throttle_changed(self) -> None:
        """Try again to read what the throttle held back."""
        self._context.callbacks.wake(self._try)

    def _may_read_any(self) -> bool:
        """Return True if there is a readable partition that the throttle does not hold back."""
        if not self._context.throttle.exceeded:
            return bool(self._readable)
        return not all(map(self._is_held_back, self._readable.values()))

    def _is_held_back(self, hosted: HostedPartition) -> bool:
        """Return True if an exceeded throttle applies to the partition and the follower
        (ReplicaManager.shouldLeaderThrottle)."""
        if not hosted.leader_throttled:
            return False
        leadership = hosted.partition.leadership
        return leadership is not None and self._replica_id not in leadership.isr.committed

    def _answer(self) -> None:
        respond, self._respond = self._respond, None
        if respond is None:
            return
        self._urgent = False
        self._context.delayed_operations.remove(self, self._tick)
        self._give_up_awaiting()
        partitions = list(self._errors.values())
        count_failed(self._context.registry, partitions)
        self._answered.update(key for key in self._errors if key in self._partitions)
        self._errors.clear()
        self._read_into(partitions)
        for key, hosted in list(self._moved.items()):
            # A follower that diverges or waits must not apply these offsets to its log.
            if key not in self._answered and key not in self._awaiting:
                del self._moved[key]
                partitions.append(fetched(self._partitions[key], hosted))
        respond(ErrorCode.NONE, self.id, partitions)

    def _read_into(self, partitions: list[FetchPartitionResult]) -> None:
        """Read the readable partitions, the one that has waited longest first, until the response
        is full. At least one is read."""
        throttle, throttled_bytes = self._context.throttle, 0
        exceeded = throttle.exceeded
        # replica.fetch.response.max.bytes may be 0.
        max_bytes = left_bytes = max(1, min(self._max_bytes, self._context.room()))
        for key, hosted in list(self._readable.items()):
            if left_bytes <= 0:
                break
            if exceeded and self._is_held_back(hosted):
                continue
            wanted = self._partitions[key]
            limit = min(wanted.max_bytes, left_bytes)
            try:
                records = hosted.log.read(wanted.fetch_offset, limit)
            except OffsetOutOfRange:  # retention has removed the records meanwhile
                result = fetched(wanted, hosted)._replace(error=ErrorCode.OFFSET_OUT_OF_RANGE)
                count_failed(self._context.registry, [result])
            except CorruptLog as damage:
                result = failed(wanted, unreadable(hosted, damage))
                count_failed(self._context.registry, [result])
            except OSError as error:
                if not self._context.registry.survives(error):
                    raise
                result = failed(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
                count_failed(self._context.registry, [result])
            else:
                if len(records) > left_bytes and left_bytes < max_bytes:
                    break
                left_bytes -= len(records)
                hosted.traffic.fetch_requests += 1
                hosted.traffic.replication_bytes_out += len(records)
                if hosted.leader_throttled:
                    throttled_bytes += len(records)
                result = fetched(wanted, hosted, records)
            partitions.append(result)
            del self._readable[key]
            self._moved.pop(key, None)
            self._answered.add(key)
        if throttled_bytes:
            throttle.record(throttled_bytes)

    def _give_up_awaiting(self) -> None:
        now_ms = self._context.clock.now_ms()
        for key, since_ms in list(self._awaiting.items()):
            if now_ms - since_ms < AWAIT_METADATA_MAX_MS:
                continue
            del self._awaiting[key]
            known = self._context.registry.get(key) is not None
            error = ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.UNKNOWN_TOPIC_ID
            self._errors[key] = failed(self._partitions[key], error)
            if self._is_unknown(key):
                del self._partitions[key]

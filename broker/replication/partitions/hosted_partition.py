"""An open replica on this broker: the pure replica, its log, and the requests that wait for it.

Call `settle` after everything that may have moved the high watermark. It answers the requests that
are complete, notifies the watchers, and sends a proposed ISR change. Call `changed`, which calls
`settle`, after a change of role or leader epoch and after the removal of the replica.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Protocol

from quorate.broker.partition.partition import Partition
from quorate.broker.replication.partitions.settings import TopicSettings
from quorate.broker.replication.partitions.traffic import TopicTraffic
from quorate.quorum.controller.state.messages import IsrChange, IsrChangeResult
from quorate.quorum.ids import Uuid
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.log import Log
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Clock

UNKNOWN_BYTES = 1 << 62
"""The size that watchers get if the real one is unknown. No fetch asks for more bytes."""
MIN_PRUNED = 1024
"""The number of waiting requests above which expired ones are searched and removed."""
MAX_UNCOMMITTED = 65_536
"""Uncommitted appends whose sizes are kept. The sizes of older ones are lost, so that `moved` may
report too few bytes and a fetch may wait longer than necessary."""

Key = tuple[Uuid, int]
Propose = Callable[[IsrChange, Callable[[IsrChangeResult], None]], bool]
"""A function that sends an ISR change and later calls back once. It returns False if it did not
take the change over (`AlterPartitionSender.propose`)."""
ProducersLoaded = Callable[[KafkaError | None], None]


class ProduceWaiter(Protocol):
    """A produce request that waits for the high watermarks of some partitions."""

    def acknowledged(self, index: int, error: int) -> None:
        """End the wait of the partition at `index`, with an error code or 0."""
        ...

    def waits(self, index: int) -> bool:
        """Return True if the partition at `index` of the request has no result yet."""


class DeletionWaiter(Protocol):
    """A DeleteRecords request that waits for the low watermarks of some partitions."""

    def deleted(self, index: int, low_watermark: int, error: int) -> None:
        """End the wait of the partition at `index`, with the low watermark or an error code."""
        ...

    def waits(self, index: int) -> bool:
        """Return True if the partition at `index` of the request has no result yet."""


class Watcher(Protocol):
    """A delayed fetch, or the fetch session of a follower. Its methods only take note of an event;
    they must not change the partition."""

    def appended(self, hosted: HostedPartition, size_bytes: int) -> None:
        """Take note of an append to the log, of `size_bytes`."""
        ...

    def moved(self, hosted: HostedPartition, size_bytes: int) -> None:
        """Take note of a new high watermark, past `size_bytes`, or of a new log start (0 bytes)."""

    def changed(self, hosted: HostedPartition) -> None:
        """Take note of another leader epoch or role, or of the removal of the replica."""

    def read_at(self, hosted: HostedPartition, broker_id: int) -> None:
        """Take note that consumers begin to read from that follower."""


class HostedPartition:
    """One open replica of this broker, with its waiting requests (Kafka's HostedPartition).

    The event loop owns it. `key` is (topic id, partition number). `gone` is True once the replica
    was removed, and `offline` if that is because its log directory failed. `adding` is True while a
    reassignment adds this replica. `in_isr` is True while the metadata has it in the ISR.
    `leader_throttled` and `follower_throttled` are True if the topic's throttled replicas list it
    (`replication_throttle.py`). `moving` is True while a move copies the log to another log
    directory. The log cleaner and retention then leave it alone. `promised` is True while the
    broker reports the target of that move as the directory of the replica. `incomplete` is the
    registry's set of partitions that this broker leads and whose ISR lacks a replica or has a
    proposal to be sent.

    Invariant: Produce and DeleteRecords requests wait here only while this replica leads."""

    __slots__ = (
        "_acks",
        "_acks_pruned_at",
        "_clock",
        "_deletions",
        "_deletions_pruned_at",
        "_producer_waits",
        "_propose",
        "_proposing",
        "_seen_high_watermark",
        "_sequence",
        "_uncommitted",
        "adding",
        "damage",
        "follower_throttled",
        "gone",
        "in_isr",
        "incomplete",
        "key",
        "leader_throttled",
        "log",
        "moving",
        "offline",
        "partition",
        "poison",
        "promised",
        "readers_until_ms",
        "recompressing",
        "topic",
        "traffic",
        "watchers",
    )

    def __init__(
        self, key: Key, topic: str, partition: Partition, log: Log, clock: Clock, propose: Propose
    ) -> None:
        self.key = key
        self.topic = topic
        self.partition = partition
        self.log = log
        self.watchers: dict[Watcher, None] = {}
        self.incomplete: dict[HostedPartition, None] = {}
        """The registry's set of incomplete partitions, shared by all hosted partitions."""
        self.traffic = TopicTraffic()
        self.readers_until_ms: dict[int, int] | None = None
        """The followers to which this leader has sent consumers, each with the time until which it
        counts as read. None if there are none."""
        self.adding = False
        self.in_isr = False
        self.leader_throttled = False
        self.follower_throttled = False
        self.gone = False
        self.offline = False
        self.moving = False
        self.promised = False
        self.recompressing = 0
        """The number of batches that wait for a recompression (`recompressions.py`)."""
        self.damage = ""  # the last logged damage
        self.poison = ""  # the last logged batch that cannot be decoded
        self._clock = clock
        self._propose = propose
        self._proposing = False
        self._uncommitted: deque[tuple[int, int]] = deque(maxlen=MAX_UNCOMMITTED)
        self._acks: list[tuple[int, int, ProduceWaiter, int]] = []
        self._acks_pruned_at = MIN_PRUNED
        self._deletions: list[tuple[int, DeletionWaiter, int]] = []
        self._deletions_pruned_at = MIN_PRUNED
        self._producer_waits: list[ProducersLoaded] = []
        self._sequence = 0
        self._seen_high_watermark = partition.high_watermark

    def __repr__(self) -> str:
        return f"{self.topic}-{self.key[1]}"

    @property
    def name(self) -> PartitionName:
        """Return the name of the partition's directory."""
        return PartitionName(self.topic, self.key[1])

    def await_acks(self, required_offset: int, waiting: ProduceWaiter, index: int) -> None:
        """Let a produce request wait until the high watermark reaches `required_offset`, or this
        replica stops leading. `waiting.acknowledged` gets the result.

        Call it only if `Partition.acks_all_error` returns None: a high watermark that is already
        there wakes nothing."""
        self._sequence += 1
        heapq.heappush(self._acks, (required_offset, self._sequence, waiting, index))
        if len(self._acks) >= self._acks_pruned_at:
            self._prune_acks()

    def await_low_watermark(
        self, required_offset: int, waiting: DeletionWaiter, index: int
    ) -> None:
        """Let a DeleteRecords request wait until the low watermark reaches `required_offset`, or
        this replica stops leading. `waiting.deleted` gets the result, at the earliest in the next
        `settle`."""
        self._deletions.append((required_offset, waiting, index))
        if len(self._deletions) >= self._deletions_pruned_at:
            self._deletions = [each for each in self._deletions if each[1].waits(each[2])]
            self._deletions_pruned_at = max(MIN_PRUNED, 2 * len(self._deletions))

    def await_producers(self, callback: ProducersLoaded) -> None:
        """Call back once when the producer states are loaded, with the error if they cannot be.

        If this replica stops leading first, the callback comes then, without an error. The callers
        bound the number of callbacks, because a request may end before its callback."""
        self._producer_waits.append(callback)

    @property
    def producer_waits(self) -> int:
        """Return the number of callbacks that `await_producers` keeps."""
        return len(self._producer_waits)

    def producers_loaded(self, error: KafkaError | None) -> None:
        """End the wait of all callers of `await_producers`, in their order."""
        waits, self._producer_waits = self._producer_waits, []
        for callback in waits:
            callback(error)

    def _prune_acks(self) -> None:
        """Remove the requests that timed out. Nothing else removes them while the high watermark
        does not move, for example because a follower is down."""
        self._acks[:] = [each for each in self._acks if each[2].waits(each[3])]
        heapq.heapify(self._acks)
        self._acks_pruned_at = max(MIN_PRUNED, 2 * len(self._acks))

    def appended(self, size_bytes: int) -> None:
        """Notify the watchers of an append of `size_bytes`."""
        self._uncommitted.append((self.log.end_offset, size_bytes))
        for watcher in self.watchers:
            watcher.appended(self, size_bytes)

    def throttle_by(self, settings: TopicSettings) -> None:
        """Note whether the settings of the topic list this replica as throttled."""
        self.leader_throttled = self.key[1] in settings.leader_throttled
        self.follower_throttled = self.key[1] in settings.follower_throttled

    def sent_reader(self, broker_id: int, until_ms: int) -> None:
        """Note that a consumer was sent to a follower, which counts as read until that time.
        Notify the watchers of the first one."""
        first = not self.is_read_at(broker_id, self._clock.now_ms())
        if self.readers_until_ms is None:
            self.readers_until_ms = {}
        self.readers_until_ms[broker_id] = until_ms
        if first:
            for watcher in self.watchers:
                watcher.read_at(self, broker_id)

    def is_read_at(self, broker_id: int, now_ms: int) -> bool:
        """Return True if consumers were sent to that follower and may still read there."""
        return self.readers_until_ms is not None and (
            now_ms < self.readers_until_ms.get(broker_id, now_ms)
        )

    def start_moved(self) -> None:
        """Notify the watchers of a new log start, so that followers learn it."""
        for watcher in self.watchers:
            watcher.moved(self, 0)

    def settle(self) -> None:
        """Complete the requests that the present high watermark and low watermark allow, notify the
        watchers if the high watermark moved, and send a proposal.

        A proposal waits if an earlier one has no answer yet."""
        high_watermark = self.partition.high_watermark
        if high_watermark != self._seen_high_watermark:
            size_bytes = self._committed_bytes(high_watermark)
            self._seen_high_watermark = high_watermark
            self._acknowledge()
            for watcher in self.watchers:
                watcher.moved(self, size_bytes)
        if self._deletions:
            self._complete_deletions()
        leadership = self.partition.leadership
        if leadership is None:
            return
        if leadership.proposal is not None:
            self._send_proposal(leadership.proposal)
        if not leadership.complete:
            self.incomplete[self] = None

    def changed(self) -> None:
        """Notify all waiting requests of a change of role, epoch, ISR or existence.

        If this replica was removed or follows now, produce and DeleteRecords requests fail with
        NOT_LEADER_OR_FOLLOWER, or KAFKA_STORAGE_ERROR if its directory failed. Otherwise they wait
        on."""
        if self.gone or self.partition.leadership is None:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            if self.offline:
                error = ErrorCode.KAFKA_STORAGE_ERROR
            self.readers_until_ms = None
            self._uncommitted.clear()
            waiting, self._acks = self._acks, []
            for _, _, each, index in waiting:
                each.acknowledged(index, error)
            deletions, self._deletions = self._deletions, []
            for _, deletion, index in deletions:
                deletion.deleted(index, -1, error)
            self.producers_loaded(None)
        for watcher in list(self.watchers):
            watcher.changed(self)
        if not self.gone:
            self.settle()

    def _committed_bytes(self, high_watermark: int) -> int:
        """Return the bytes that a move to `high_watermark` made readable. The result is
        UNKNOWN_BYTES if they were appended before this replica led."""
        uncommitted = self._uncommitted
        size_bytes = 0
        while uncommitted and uncommitted[0][0] <= high_watermark:
            size_bytes += uncommitted.popleft()[1]
        return size_bytes or UNKNOWN_BYTES

    def _acknowledge(self) -> None:
        acks, high_watermark = self._acks, self._seen_high_watermark
        while acks and acks[0][0] <= high_watermark:
            required_offset, _, waiting, index = heapq.heappop(acks)
            error = self.partition.acks_all_error(required_offset)
            assert error is not None, f"{self}: {required_offset} is not below the high watermark"
            waiting.acknowledged(index, error)

    def _complete_deletions(self) -> None:
        if self.partition.leadership is None:  # `changed` answers them
            return
        low_watermark = self.partition.low_watermark
        waiting, self._deletions = self._deletions, []
        for required_offset, deletion, index in waiting:
            if required_offset <= low_watermark:
                deletion.deleted(index, low_watermark, ErrorCode.NONE)
            else:
                self._deletions.append((required_offset, deletion, index))

    def _send_proposal(self, change: IsrChange) -> None:
        """Send a proposed ISR change, unless an earlier one has no answer yet."""
        if self._proposing:
            return

        def answered(result: IsrChangeResult) -> None:
            self._proposing = False
            if not self.gone:
                self.partition.isr_answered(change, result, self._clock.now_ms())
                self.settle()

        if self._propose(change, answered):
            self._proposing = True
            assert self.partition.leadership is not None
            self.partition.leadership.proposal = None

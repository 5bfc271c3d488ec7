"""A partition hosted on this broker: the pure replica, its log, and who waits for it.

`settle` is called after everything that may have moved the high watermark or changed the role: it
answers the produce requests that are complete, tells the watchers, and hands on a proposed ISR
change.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Protocol

from quorate.broker.partition.partition import Partition
from quorate.broker.replication.traffic import TopicTraffic
from quorate.quorum.controller.messages import IsrChange, IsrChangeResult
from quorate.quorum.ids import Uuid
from quorate.quorum.log.log import Log
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Clock

UNKNOWN_BYTES = 1 << 62
MIN_PRUNED = 1024
"""Waiting requests of a partition below which those that expired are not looked for."""
MAX_UNCOMMITTED = 65_536  # appends of which the size is known; beyond, waiting fetches wait on

Key = tuple[Uuid, int]
Propose = Callable[[IsrChange, Callable[[IsrChangeResult], None]], bool]
ProducersLoaded = Callable[[KafkaError | None], None]


class Acknowledge(Protocol):
    """A produce request that waits for the high watermark of some partitions."""

    def acknowledged(self, index: int, error: int) -> None: ...

    def waits(self, index: int) -> bool:
        """Return True if the partition at `index` of the request is not answered yet."""


class Deletion(Protocol):
    """A DeleteRecords request that waits for the low watermark of some partitions."""

    def deleted(self, index: int, low_watermark: int, error: int) -> None: ...

    def waits(self, index: int) -> bool:
        """Return True if the partition at `index` of the request is not answered yet."""


class Watcher(Protocol):
    """Somebody whose fetch waits. Nothing is done inside these calls but taking note."""

    def appended(self, hosted: HostedPartition, size_bytes: int) -> None: ...
    def moved(self, hosted: HostedPartition, size_bytes: int) -> None:
        """The high watermark, over that many bytes, or the log start."""

    def changed(self, hosted: HostedPartition) -> None:
        """Another leader epoch or role, or the partition is gone from this broker."""


class HostedPartition:
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
        "gone",
        "incomplete",
        "key",
        "log",
        "partition",
        "poison",
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
        """Those led here with an ISR that lacks a replica or a proposal that is not out: the
        registry's, shared by all."""
        self.traffic = TopicTraffic()
        self.adding = False  # by a reassignment
        self.gone = False
        self.damage = ""  # what was said of it last
        self.poison = ""  # the same, of a batch that a producer sent unreadable
        self._clock = clock
        self._propose = propose
        self._proposing = False
        self._uncommitted: deque[tuple[int, int]] = deque(maxlen=MAX_UNCOMMITTED)
        self._acks: list[tuple[int, int, Acknowledge, int]] = []
        self._acks_pruned_at = MIN_PRUNED
        self._deletions: list[tuple[int, Deletion, int]] = []
        self._deletions_pruned_at = MIN_PRUNED
        self._producer_waits: list[ProducersLoaded] = []
        self._sequence = 0
        self._seen_high_watermark = partition.high_watermark

    def __repr__(self) -> str:
        return f"{self.topic}-{self.key[1]}"

    def await_acks(self, required_offset: int, waiting: Acknowledge, index: int) -> None:
        self._sequence += 1
        heapq.heappush(self._acks, (required_offset, self._sequence, waiting, index))
        if len(self._acks) >= self._acks_pruned_at:
            self._prune_acks()

    def await_low_watermark(self, required_offset: int, waiting: Deletion, index: int) -> None:
        self._deletions.append((required_offset, waiting, index))
        if len(self._deletions) >= self._deletions_pruned_at:
            self._deletions = [each for each in self._deletions if each[1].waits(each[2])]
            self._deletions_pruned_at = max(MIN_PRUNED, 2 * len(self._deletions))

    def await_producers(self, callback: ProducersLoaded) -> None:
        """Call back once when the producer states are loaded, with the error if they cannot be.

        If this replica stops leading first, the callback comes then, without an error. The number
        of callbacks is bounded by the requests in flight."""
        self._producer_waits.append(callback)

    def producers_loaded(self, error: KafkaError | None) -> None:
        """End the wait of all callers of `await_producers`, in their order."""
        waits, self._producer_waits = self._producer_waits, []
        for callback in waits:
            callback(error)

    def _prune_acks(self) -> None:
        """Remove the requests that timed out. While the high watermark stands still, for example
        because a follower is gone, nothing else removes them."""
        self._acks[:] = [each for each in self._acks if each[2].waits(each[3])]
        heapq.heapify(self._acks)
        self._acks_pruned_at = max(MIN_PRUNED, 2 * len(self._acks))

    def appended(self, size_bytes: int) -> None:
        self._uncommitted.append((self.log.end_offset, size_bytes))
        for watcher in self.watchers:
            watcher.appended(self, size_bytes)

    def start_moved(self) -> None:
        """Retention or DeleteRecords: followers are told with their next answer."""
        for watcher in self.watchers:
            watcher.moved(self, 0)

    def settle(self) -> None:
        high_watermark = self.partition.high_watermark
        if high_watermark != self._seen_high_watermark:
            size_bytes = self._committed_bytes(high_watermark)
            self._seen_high_watermark = high_watermark
            self._acknowledge()
            for watcher in self.watchers:
                watcher.moved(self, size_bytes)
        if self._deletions:
            self._tell_deletions()
        leadership = self.partition.leadership
        if leadership is None:
            return
        if leadership.proposal is not None:
            self._hand_on(leadership.proposal)
        if not leadership.complete:
            self.incomplete[self] = None

    def changed(self) -> None:
        """After a change of role, epoch, ISR or existence."""
        if self.gone or self.partition.leadership is None:
            self._uncommitted.clear()
            waiting, self._acks = self._acks, []
            for _, _, each, index in waiting:
                each.acknowledged(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            deletions, self._deletions = self._deletions, []
            for _, deletion, index in deletions:
                deletion.deleted(index, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self.producers_loaded(None)
        for watcher in list(self.watchers):
            watcher.changed(self)
        if not self.gone:
            self.settle()

    def _committed_bytes(self, high_watermark: int) -> int:
        """What the move to `high_watermark` made visible; more than enough when that is not known,
        because it was appended before this replica led."""
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

    def _tell_deletions(self) -> None:
        if self.partition.leadership is None:  # `changed` tells them
            return
        low_watermark = self.partition.low_watermark
        waiting, self._deletions = self._deletions, []
        for required_offset, deletion, index in waiting:
            if required_offset <= low_watermark:
                deletion.deleted(index, low_watermark, ErrorCode.NONE)
            else:
                self._deletions.append((required_offset, deletion, index))

    def _hand_on(self, change: IsrChange) -> None:
        """At most one proposal is out: the next goes when the one before is answered."""
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

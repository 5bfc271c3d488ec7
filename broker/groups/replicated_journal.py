"""The journal of one shard: it appends to a partition of __consumer_offsets with acks=all.

The journal has no timeout of its own. An append is committed when the ISR has it, and a replica
that does not fetch leaves the ISR after replica.lag.time.max.ms. An append that `append` refused
never appears later. The outcome is unknown only if leadership is lost, or if the replica manager
gives the append up after MAX_TIMEOUT_MS, because no controller has answered for so long. The
coordinator then loads the shard again, because the records may be committed later or never. Kafka
also answers with an error after offsets.commit.timeout.ms, and the append may be committed after
that.

Each record is encoded and decoded again before it is appended. A record that the next coordinator
could not read would make its shard unavailable.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from quorate.broker.groups.guarded import Guard
from quorate.broker.groups.records import (
    GroupRecord,
    UnreadableRecord,
    read_back,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata.internal_topics import OFFSETS_TOPIC
from quorate.quorum.protocol.codec import DecodeError, EncodeError
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import ProducePartition, ProducePartitionResult
from quorate.quorum.seams import Clock

logger = logging.getLogger("quorate.broker.groups")

ACKS_ALL = -1
"""The value of `acks` that waits for all in-sync replicas."""
APPEND_TIMEOUT_MS = 2**31 - 1
"""The append timeout: the greatest int32, 24.8 days, because the journal has no timeout of its own.
"""
COMMITTED = (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
"""The results of an append that is committed.

NOT_ENOUGH_REPLICAS_AFTER_APPEND means that the ISR is now smaller than min.insync.replicas.
"""

NO_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)
"""The results after which another broker leads, or soon will. The metadata drops the shard then."""

Done = Callable[[ErrorCode], None]


class AppendFailed(Exception):
    """An append that the shard has applied was not committed, although this broker leads."""


class Append(Protocol):
    """The replica manager's append function."""

    def __call__(
        self,
        appends: Sequence[ProducePartition],
        acks: int,
        timeout_ms: int,
        done: Callable[[Sequence[ProducePartitionResult]], None],
        *,
        internal: bool = False,
    ) -> None:
        """Append batches to partitions that this broker leads, and call `done` with the results.

        `done` may be called before this function returns.
        """
        ...


class ReplicatedJournal:
    """The journal of one partition of __consumer_offsets. It runs on the broker's event loop.

    Invariant: at most as many appends are committed as were appended, and they are committed in
    order. After `close`, appends fail with NOT_LEADER_OR_FOLLOWER. The journal also closes itself
    if an accepted append is not committed. If this broker still leads, the guard then gets
    AppendFailed."""

    def __init__(
        self, clock: Clock, append: Append, topic_id: Uuid, partition: int, *, guard: Guard
    ) -> None:
        """`guard` runs the callbacks of `when_committed`, and gets AppendFailed."""
        self._clock = clock
        self._guard = guard
        self._append = append
        self._topic_id = topic_id
        self._partition = partition
        self._appended = 0
        self._committed = 0
        self._waiting: deque[tuple[int, Done]] = deque()
        self._closed = False

    def append(self, records: Sequence[GroupRecord]) -> ErrorCode:
        """Append the records as one batch, and return NONE if they are in the log (see `Journal`).

        The other results are UNKNOWN_SERVER_ERROR if a record does not decode to itself,
        NOT_LEADER_OR_FOLLOWER after `close`, and the errors of the replica manager.
        """
        if self._closed:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        wall_ms = self._clock.wall_ms()
        try:
            encoded = read_back(records)
        except (EncodeError, DecodeError, UnreadableRecord) as error:
            logger.warning(
                "%s-%d: records of a group are refused, because they cannot be read back: %s",
                OFFSETS_TOPIC,
                self._partition,
                error,
            )
            return ErrorCode.UNKNOWN_SERVER_ERROR
        batch = build_batch(
            [Record(index, wall_ms, *each) for index, each in enumerate(encoded)], leader_epoch=0
        )
        outcome: list[ErrorCode] = []
        appending = True

        def done(results: Sequence[ProducePartitionResult]) -> None:
            error = ErrorCode.of(results[0].error)
            if appending:
                outcome.append(error)
            else:
                self._append_completed(error)

        wanted = ProducePartition(OFFSETS_TOPIC, self._topic_id, self._partition, memoryview(batch))
        self._append([wanted], ACKS_ALL, APPEND_TIMEOUT_MS, done, internal=True)
        appending = False
        if outcome and outcome[0] not in COMMITTED:
            return outcome[0]
        self._appended += 1
        if outcome:
            self._append_completed(outcome[0])
        return ErrorCode.NONE

    def when_committed(self, done: Done) -> None:
        """Call `done(NONE)` when everything appended so far is committed (see `Journal`).

        The call is immediate if nothing is uncommitted, or if the journal is closed
        (NOT_COORDINATOR).
        """
        if self._closed:
            done(ErrorCode.NOT_COORDINATOR)
        elif self._committed == self._appended:
            done(ErrorCode.NONE)
        else:
            self._waiting.append((self._appended, done))

    def close(self) -> None:
        """Close the journal because leadership is lost.

        The outcome of uncommitted appends is unknown, so all waiting callers get NOT_COORDINATOR.
        """
        self._closed = True
        waiting, self._waiting = self._waiting, deque()
        for _, done in waiting:
            self._guard.run(partial(done, ErrorCode.NOT_COORDINATOR))

    def _append_completed(self, error: ErrorCode) -> None:
        """Record the outcome of the oldest undecided append. The partition decides appends in
        order.
        """
        if self._closed:
            return
        if error not in COMMITTED:
            self.close()
            if error not in NO_LEADER:
                self._guard.run(partial(_fail, error))
            return
        self._committed += 1
        while self._waiting and self._waiting[0][0] <= self._committed:
            _, done = self._waiting.popleft()
            self._guard.run(partial(done, ErrorCode.NONE))


def _fail(error: ErrorCode) -> None:
    raise AppendFailed(f"an append was not committed: {error.name}")

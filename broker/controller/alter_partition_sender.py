"""Sends ISR changes to the active controller, batched, with one request in flight (KIP-497).

A request that fails as a whole is sent again without limit: it was lost, it timed out, the node was
not the controller, or the broker epoch was stale. Meanwhile the partition's leader waits for its
maximal ISR (`broker/partition/isr_states.py`), because the controller may have applied the change.
The result of a single partition goes to `done`, which decides by OUTCOMES in the same file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from quorate.broker.controller.controller_channel import ControllerChannel
from quorate.quorum.controller.state.messages import (
    MAX_CHANGES,
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrChange,
    IsrChangeResult,
)
from quorate.quorum.histogram import Histogram
from quorate.quorum.ids import Uuid
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Clock

RETRY_MS = 50
"""The wait if no active controller answered, and the first wait after a refusal."""
MAX_RETRY_MS = 1000
"""The longest wait. The wait doubles with each refusal in a row, such as STALE_BROKER_EPOCH."""

logger = logging.getLogger("quorate.broker.isr")
Done = Callable[[IsrChangeResult], None]
Key = tuple[Uuid, int]


# Not frozen: a broker that returns makes as many as it leads partitions.
@dataclass(slots=True)
class Proposal:
    """A change without a result, and the monotonic time of its proposal in ms."""

    change: IsrChange
    done: Done
    asked_ms: int


class AlterPartitionSender:
    """The outstanding ISR proposals of one broker. The event loop owns it.

    Invariants: each partition has at most one proposal, from `propose` until its `done` is called,
    which may propose again; at most one request is in flight. `shrinks`, `expands` and `failures`
    count the accepted and the refused changes of single partitions. `repeated` counts requests that
    failed as a whole."""

    def __init__(
        self,
        clock: Clock,
        controller: ControllerChannel,
        broker_id: int,
        broker_epoch: Callable[[], int],
        timeout_ms: int = 30_000,
    ) -> None:
        """Send through `controller`. `broker_epoch` returns the current broker epoch. `timeout_ms`
        is controller.socket.timeout.ms, the longest wait for an answer."""
        self._clock = clock
        self._controller = controller
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._timeout_ms = timeout_ms
        self.shrinks = self.expands = self.failures = self.repeated = 0
        self.round_trips = Histogram()
        """The answered requests, from the request to the response of the controller."""
        self._proposals: dict[Key, Proposal] = {}  # The oldest comes first.
        self._in_flight: list[IsrChange] = []
        self._sent_us = 0
        self._scheduled = False
        self._closed = False
        self._refusals = 0  # in a row
        self._lines = LogLimit(clock)

    def propose(self, change: IsrChange, done: Done) -> bool:
        """Queue a change, and call `done` once with the controller's result, however long that
        takes. After `close`, `done` is not called. Return True if the change was queued.

        Return False, without calling `done`, if an earlier proposal of this partition has no result
        yet."""
        key = (change.topic_id, change.partition_id)
        if key in self._proposals:
            return False
        self._proposals[key] = Proposal(change, done, self._clock.now_ms())
        self._schedule(0)
        return True

    @property
    def pending(self) -> int:
        """Return the number of proposals without a result."""
        return len(self._proposals)

    @property
    def in_flight(self) -> int:
        """Return the number of proposals in the request that is in flight, or 0."""
        return len(self._in_flight)

    @property
    def oldest_ms(self) -> int:
        """Return the age of the oldest proposal without a result in ms, or 0 if there is none."""
        return next((age_ms for _, age_ms in self.oldest(1)), 0)

    def oldest(self, count: int) -> Iterator[tuple[IsrChange, int]]:
        """Yield at most `count` proposals without a result and their ages in ms, oldest first."""
        now_ms = self._clock.now_ms()
        for each in islice(self._proposals.values(), count):
            yield each.change, now_ms - each.asked_ms

    def close(self) -> None:
        """Discard all proposals. No `done` is called any more."""
        self._closed = True
        self._proposals.clear()

    def _count(self, change: IsrChange, result: IsrChangeResult) -> None:
        if result.error != ErrorCode.NONE:
            self.failures += 1
        elif change.cause == Cause.ISR_EXPAND:
            self.expands += 1
        else:
            self.shrinks += 1

    def _schedule(self, delay_ms: int) -> None:
        if self._scheduled or self._in_flight or self._closed:
            return
        self._scheduled = True
        if delay_ms:
            self._clock.call_later(delay_ms, self._send)
        else:
            self._clock.call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self._closed or not self._proposals:
            return
        assert not self._in_flight, "one request is in flight at a time"
        changes = [each.change for each in islice(self._proposals.values(), MAX_CHANGES)]
        self._in_flight = changes
        request = AlterPartitionRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch(), changes=tuple(changes)
        )
        self._sent_us = self._clock.now_us()
        self._controller.send(request, self._timeout_ms, self._answered)

    def _answered(self, response: AlterPartitionResponse | None) -> None:
        if response is not None:
            self.round_trips.observe(self._clock.now_us() - self._sent_us)
        sent, self._in_flight = self._in_flight, []
        if self._closed:
            return
        if response is None or response.error != ErrorCode.NONE:
            self.repeated += 1
            if response is not None:
                self._log_refusal(len(sent), ErrorCode.of(response.error).name)
            self._schedule(self._retry_ms(response))
            return
        self._refusals = 0
        for result in response.results:
            proposal = self._proposals.pop((result.topic_id, result.partition_id), None)
            if proposal is not None:
                self._count(proposal.change, result)
                proposal.done(result)
        # A proposal without a result in the response is sent again.
        unanswered = any((each.topic_id, each.partition_id) in self._proposals for each in sent)
        if self._proposals:
            self._schedule(RETRY_MS if unanswered else 0)

    def _retry_ms(self, response: AlterPartitionResponse | None) -> int:
        """Return the wait before the next attempt, in ms. The wait is short if no active controller
        answered."""
        if response is None or response.error == ErrorCode.NOT_CONTROLLER:
            return RETRY_MS
        wait_ms = min(RETRY_MS << min(self._refusals, 10), MAX_RETRY_MS)
        self._refusals += 1
        return wait_ms

    def _log_refusal(self, partitions: int, error: str) -> None:
        left_out = self._lines.passes(error)
        if left_out is not None:
            logger.warning(
                "the controller answered AlterPartition for %d partitions with %s; the request is "
                "sent again%s",
                partitions,
                error,
                left_out,
            )

"""Reports the log directories of replicas to the active controller (KIP-858, AssignReplicasToDirs).

Assignments are collected for a short time and sent in batches, with one request in flight, as in
Kafka's AssignmentsManager. A request that fails as a whole is sent again after a backoff, without
limit. A later assignment of the same replica replaces the earlier one. An assignment that the
controller refuses is dropped: the replica does not exist any more, and the broker learns that from
the metadata.

The assignments of a directory that has failed stay queued. The controller does not know without
them which replicas were in that directory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorate.broker.controller.controller_channel import ControllerChannel
from quorate.quorum.controller.state.messages import (
    MAX_ASSIGNMENTS,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Clock

BATCH_DELAY_MS = 100
"""The time in which assignments are collected before they are sent."""
FIRST_BACKOFF_MS = 100
"""The wait after the first failed request. It doubles with each failure in a row."""
MAX_BACKOFF_MS = 10_000
"""The longest wait after a failed request."""

Key = tuple[Uuid, int]
logger = logging.getLogger("quorate.broker.directories")


class AssignmentSender:
    """The assignments of one broker that the controller has not confirmed. The event loop owns it.

    Invariants: each replica has at most one assignment in the queue; at most one request is in
    flight."""

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
        self._queue: dict[Key, tuple[Uuid, Callable[[], None]]] = {}
        self._in_flight: dict[Key, Uuid] = {}
        self._scheduled = False
        self._closed = False
        self._failures = 0  # in a row
        self._lines = LogLimit(clock)

    @property
    def pending(self) -> int:
        """Return the number of assignments that the controller has not confirmed."""
        return len(self._queue)

    def assign(
        self, key: Key, directory: Uuid, accepted: Callable[[], None] = lambda: None
    ) -> None:
        """Queue the assignment of a replica to a directory. Call `accepted` once, when the
        controller has committed it. It is not called if a later assignment replaces this one, if
        the controller refuses it, or after `close`."""
        self._queue[key] = (directory, accepted)
        self._schedule(BATCH_DELAY_MS)

    def close(self) -> None:
        """Discard all assignments."""
        self._closed = True
        self._queue.clear()

    def _schedule(self, delay_ms: int) -> None:
        if not (self._scheduled or self._in_flight or self._closed):
            self._scheduled = True
            self._clock.call_later(delay_ms, self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self._closed or not self._queue:
            return
        assert not self._in_flight, "one request is in flight at a time"
        named = list(self._queue.items())[:MAX_ASSIGNMENTS]
        self._in_flight = {key: directory for key, (directory, _) in named}
        request = AssignReplicasToDirsRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            assignments=tuple((*key, directory) for key, directory in self._in_flight.items()),
        )
        self._controller.send(request, self._timeout_ms, self._answered)

    def _answered(self, response: AssignReplicasToDirsResponse | None) -> None:
        sent, self._in_flight = self._in_flight, {}
        if self._closed:
            return
        if response is None or response.error or len(response.errors) != len(sent):
            delay_ms = min(FIRST_BACKOFF_MS << min(self._failures, 10), MAX_BACKOFF_MS)
            self._failures += 1
            self._log_failure(len(sent), response, delay_ms)
            self._schedule(delay_ms)
            return
        self._failures = 0
        for (key, directory), error in zip(sent.items(), response.errors, strict=True):
            queued = self._queue.get(key)
            if queued is not None and queued[0] == directory:
                del self._queue[key]
                if error == ErrorCode.NONE:
                    queued[1]()
        if self._queue:
            self._schedule(BATCH_DELAY_MS)

    def _log_failure(
        self, count: int, response: AssignReplicasToDirsResponse | None, delay_ms: int
    ) -> None:
        reason = "no answer" if response is None else ErrorCode.of(response.error).name
        left_out = self._lines.passes(reason)
        if left_out is not None:
            logger.warning(
                "the controller did not take the log directories of %d replicas (%s); the broker "
                "sends them again in %d ms%s",
                count,
                reason,
                delay_ms,
                left_out,
            )

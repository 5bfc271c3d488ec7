"""Probes of brokers whose connection was lost: does a process still listen at their port?

If a broker process may be dead, the rules of the controller ask for a probe (`ProbeBroker`)
and get the result (docs/protocol/broker-sessions-and-hints.md). A refused connection proves that no
process listens. A timeout proves nothing, because the network may be at fault.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from quorate.quorum.controller.state.result import ProbeBroker
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.rpc.connector import ProbeResult, probe
from quorate.quorum.rpc.delivery import raise_failure
from quorate.quorum.seams import Seams, Timer

PROBE_TIMEOUT_MS = 1000
"""Time, in ms, after which a probe without an answer is UNREACHABLE, which proves nothing."""
MAX_PROBES = 1000
"""Maximum number of probes in flight, and of probes that wait for their delay. A probe beyond it is
dropped; the broker's session then expires as without a hint."""

logger = logging.getLogger("quorate.quorum.controller")

Probed = Callable[[ProbeBroker, ProbeResult], None]


class BrokerProbes:
    """The probes of one controller. It owns their tasks and timers, on the node's event loop."""

    def __init__(self, seams: Seams, probed: Probed) -> None:
        """`probed` gets the result of each probe that was not dropped or cancelled. An exception
        that it raises stops the node."""
        self._clock = seams.clock
        self._transport = seams.transport
        self._probed = probed
        self._closed = False
        self._log_limit = LogLimit(seams.clock)
        # Both are ordered by insertion, so that a simulation can be repeated.
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._delayed: dict[int, Timer] = {}
        self._last_key = 0

    def start(self, effect: ProbeBroker) -> None:
        """Connect to the broker after the delay of `effect`. Do nothing after `close`, or if
        MAX_PROBES are in flight (without a delay) or wait (with one)."""
        if not effect.delay_ms:
            self._start_now(effect)
        elif not self._closed and self._has_room(len(self._delayed), effect):
            self._last_key = key = self._last_key + 1
            self._delayed[key] = self._clock.call_later(
                effect.delay_ms, lambda: self._delay_over(key, effect)
            )

    def close(self) -> None:
        """Cancel all probes, because the node stops."""
        self._closed = True
        for timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()
        for task in list(self._tasks):
            task.cancel()

    def _delay_over(self, key: int, effect: ProbeBroker) -> None:
        self._delayed.pop(key, None)
        self._start_now(effect)

    def _start_now(self, effect: ProbeBroker) -> None:
        if self._closed or not self._has_room(len(self._tasks), effect):
            return
        task = asyncio.get_running_loop().create_task(self._probe(effect))
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        task.add_done_callback(raise_failure)

    def _has_room(self, count: int, effect: ProbeBroker) -> bool:
        """Return True if `count` is below MAX_PROBES. Otherwise log that the probe is dropped."""
        if count < MAX_PROBES:
            return True
        left_out = self._log_limit.passes("dropped probe")
        if left_out is not None:
            logger.warning(
                "broker %d is not probed because %d probes are in flight: if it is dead, it is "
                "fenced when its session ends%s",
                effect.broker_id,
                MAX_PROBES,
                left_out,
            )
        return False

    async def _probe(self, effect: ProbeBroker) -> None:
        self._probed(effect, await probe(self._transport, effect.address, PROBE_TIMEOUT_MS))

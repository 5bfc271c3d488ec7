"""The task that keeps the keys of a token provider up to date.

The keys are read once in each refresh interval. A failed attempt is repeated after a backoff that
doubles up to its maximum, and the keys in use stay. A token with an unknown key asks for an early
refresh. A client chooses the key of its token, so there is at most one early refresh in
EARLY_REFRESH_MS.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from quorate.quorum.clipped import shown
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.rpc.delivery import raise_failure
from quorate.quorum.rpc.jwks.source import Source, SourceFailed
from quorate.quorum.sasl.key_set import KeySet, KeySetRefused, parse_key_set
from quorate.quorum.seams import Clock

EARLY_REFRESH_MS = 10_000
MAX_REASON_CHARS = 300

logger = logging.getLogger("quorate.kafka")


@dataclass(frozen=True, slots=True)
class RefreshTimes:
    """The times between attempts to read the keys, in ms."""

    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int

    def until_next_ms(self, failures: int) -> int:
        """Return the time until the next attempt, after `failures` failed attempts in a row."""
        if failures == 0:
            return self.refresh_ms
        doublings = min(failures - 1, 62)
        return min(self.retry_backoff_ms << doublings, self.retry_backoff_max_ms)


class KeyRefresher:
    """The keys of one listener. The event loop owns it.

    `keys` are those in use, none before the first successful attempt. `refreshes` and `failures`
    count the attempts that succeeded and failed."""

    def __init__(
        self,
        listener: str,
        source: Source,
        times: RefreshTimes,
        clock: Clock,
        keys: KeySet | None = None,
    ) -> None:
        """Begin with `keys`, if they were read already. Nothing runs before `start`."""
        self.listener = listener
        self.keys = KeySet() if keys is None else keys
        self.refreshes = 0
        self.failures = 0
        self._failures_in_a_row = 0
        self._source = source
        self._times = times
        self._clock = clock
        self._wait_first = keys is not None
        self._early = asyncio.Event()
        self._early_ms: int | None = None
        self._lines = LogLimit(clock)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Read the keys until `close`."""
        self._task = asyncio.get_running_loop().create_task(self._refresh())
        self._task.add_done_callback(raise_failure)

    def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def refresh_early(self) -> None:
        """Read the keys soon, unless that was asked for in the last EARLY_REFRESH_MS, or attempts
        fail at the moment."""
        now_ms = self._clock.now_ms()
        is_recent = self._early_ms is not None and now_ms - self._early_ms < EARLY_REFRESH_MS
        if not is_recent and not self._failures_in_a_row:
            self._early_ms = now_ms
            self._early.set()

    async def _refresh(self) -> None:
        if self._wait_first:
            await self._wait(self._times.refresh_ms)
        while True:
            await self._attempt()
            await self._wait(self._times.until_next_ms(self._failures_in_a_row))

    async def _wait(self, delay_ms: int) -> None:
        """Wait for `delay_ms`, or until an early refresh is asked for."""
        timer = self._clock.call_later(delay_ms, self._early.set)
        try:
            await self._early.wait()
        finally:
            timer.cancel()
            self._early.clear()

    async def _attempt(self) -> None:
        """Read the keys once. Keep those in use if that fails."""
        try:
            text = await self._source.read()
            self.keys = await asyncio.to_thread(parse_key_set, text)
        except (SourceFailed, KeySetRefused) as error:
            self._failed(str(error))
        except Exception as error:  # an answer that no library expects must not stop the node
            self._failed(f"an unexpected {type(error).__name__}")
        else:
            self.refreshes += 1
            self._failures_in_a_row = 0

    def _failed(self, reason: str) -> None:
        self.failures += 1
        self._failures_in_a_row += 1
        left_out = self._lines.passes(self.listener)
        if left_out is not None:
            logger.warning(
                "listener %s cannot read the keys that verify tokens: %s. It %s%s",
                self.listener,
                shown(reason, MAX_REASON_CHARS),
                "keeps those in use" if self.keys.keys else "refuses all tokens until then",
                left_out,
            )

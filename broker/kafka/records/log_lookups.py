"""Runs timestamp lookups in logs for requests, without blocking the event loop.

A lookup runs in the slices of the server's work. A large payload is decompressed in the thread of
long work. One lookup at a time holds such a payload, and the others wait for it in turn. The memory
for them is therefore bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from functools import partial
from types import TracebackType
from typing import Any

from quorate.quorum.log.batches.compression import decompress
from quorate.quorum.log.segments.timestamp_lookup import Acquire, Decompress, Lookup, Release
from quorate.quorum.rpc.kafka.server import RequestContext
from quorate.quorum.seams import Buffer


class LogLookups:
    """The lookups of all requests of a broker, on the broker's event loop.

    `expanded` counts the large payloads that were decompressed since the start."""

    def __init__(self) -> None:
        self.expanded = 0
        self._holder: RunningLookup | None = None
        self._waiting: deque[RunningLookup] = deque()

    def run(self, context: RequestContext, lookup: Lookup[None]) -> RunningLookup:
        """Return the steps of a lookup that answers the request."""
        return RunningLookup(self, context, lookup)

    def take(self, running: RunningLookup) -> bool:
        """Return True if no other lookup holds a payload. Otherwise `running` is resumed later.

        A lookup that failed in one partition may still hold its turn when it begins the next one.
        """
        if self._holder is None or self._holder is running:
            self._holder = running
            return True
        self._waiting.append(running)
        return False

    def release(self, running: RunningLookup) -> None:
        """If `running` held a payload, let the next lookup continue."""
        if self._holder is not running:
            return
        self._holder = self._waiting.popleft() if self._waiting else None
        if self._holder is not None:
            self._holder.resume()


class RunningLookup(Generator[None, None, None]):
    """The steps of one lookup, which the server runs in slices.

    Where the lookup waits, the steps end. `resume` gives them to the server again."""

    def __init__(self, lookups: LogLookups, context: RequestContext, lookup: Lookup[None]) -> None:
        self._lookups = lookups
        self._context = context
        self._lookup = lookup
        self._reply: Buffer | None = None
        self._error: BaseException | None = None
        self._waits = False

    def send(self, value: None, /) -> None:
        """Run one step. Raise StopIteration if the lookup has ended or waits."""
        try:
            while (asked := self._ask()) is not None:
                if isinstance(asked, Release):
                    self._lookups.release(self)
                elif isinstance(asked, Decompress):
                    self._lookups.expanded += 1
                    work = partial(decompress, asked.codec, asked.payload)
                    self._waits = True
                    asked.disk.submit_long(work, self._decompressed)
                    break
                elif not self._lookups.take(self):
                    self._waits = True
                    break
        except BaseException:
            self._end()
            raise
        if self._waits:
            raise StopIteration

    def throw(
        self,
        kind: Any,
        value: BaseException | object = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None:
        """End the lookup with an exception."""
        self._end()
        raise kind if value is None else value  # type: ignore[misc]

    def close(self) -> None:
        """End the lookup, unless it waits. A lookup that waits ends when it is resumed after its
        request has ended.
        """
        if not self._waits:
            self._end()

    def resume(self) -> None:
        """Continue after a wait, or end the lookup if its request was answered or its connection is
        closed.
        """
        self._waits = False
        if self._context.closed or self._context.parts is not None:
            self._end()
        else:
            self._context.run(self)

    def _ask(self) -> Acquire | Decompress | Release | None:
        reply, error = self._reply, self._error
        self._reply = self._error = None
        return self._lookup.send(reply) if error is None else self._lookup.throw(error)

    def _decompressed(self, data: Buffer | None, error: BaseException | None) -> None:
        self._reply, self._error = data, error
        self.resume()

    def _end(self) -> None:
        self._reply = self._error = None
        self._lookup.close()
        self._lookups.release(self)

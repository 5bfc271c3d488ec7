"""The time that the requests of one API take, as a whole and in stages.

The stages of a request follow each other:

- `queue`: from the arrival to the first slice of a request whose work runs in slices.
- `local`: the work of the handler, until it has answered or must wait.
- `remote`: the wait for other nodes, records or a flush, until the response is there.
- `response`: the wait for the responses of earlier requests of the same connection.

`throttle` is the time for which the connection is not read after a response, because of a quota.
A stage counts only the requests that had it, except that every request has `local`. The handler
answers most requests immediately. These are counted once, in `immediate`, because their whole time
is also their local time. An event must cost no more, because a request costs a few us altogether.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.quorum.histogram import US_PER_MS, Histogram


class Stages:
    """The stages of one request that its handler did not answer immediately, or whose response had
    to wait. Times are monotonic, in us, and 0 if the request did not have the stage."""

    __slots__ = ("handled_us", "queued_us", "ready_us")

    def __init__(self) -> None:
        """Create the stages of a request that had none yet."""
        self.queued_us = 0
        """The duration of the stage `queue`."""
        self.handled_us = 0
        """The beginning of the stage `remote`."""
        self.ready_us = 0
        """The beginning of the stage `response`."""


class RequestTimes:
    """The times of the requests of one API on one port. The event loop owns it."""

    __slots__ = ("_local", "_queue", "_remote", "_response", "_throttle", "_total", "immediate")

    def __init__(self) -> None:
        """Create the histograms without events."""
        self.immediate = Histogram()
        """The requests that had no stage but `local`."""
        self._total, self._local, self._remote = Histogram(), Histogram(), Histogram()
        self._queue, self._response, self._throttle = Histogram(), Histogram(), Histogram()

    def sent(self, received_us: int, stages: Stages, now_us: int) -> None:
        """Count a request that arrived at `received_us`, and whose response leaves now."""
        ready_us = stages.ready_us or now_us
        handled_us = min(stages.handled_us or ready_us, ready_us)
        self._total.observe(now_us - received_us)
        self._local.observe(max(0, handled_us - received_us - stages.queued_us))
        if stages.queued_us:
            self._queue.observe(stages.queued_us)
        if stages.handled_us:
            self._remote.observe(ready_us - handled_us)
        if stages.ready_us:
            self._response.observe(now_us - ready_us)

    def throttled(self, delay_ms: int) -> None:
        """Count a request whose connection is not read for `delay_ms` after the response."""
        self._throttle.observe(delay_ms * US_PER_MS)

    def stages(self) -> Iterator[tuple[str, Histogram]]:
        """Yield (name, histogram) of the whole time and of each stage that a request had."""
        total, local = Histogram(), Histogram()
        for each, rest in ((total, self._total), (local, self._local)):
            each.add(self.immediate)
            each.add(rest)
        stages = {
            "total": total,
            "queue": self._queue,
            "local": local,
            "remote": self._remote,
            "response": self._response,
            "throttle": self._throttle,
        }
        return ((name, each) for name, each in stages.items() if each.count)

"""Runs long work of the shards in the background of the event loop."""

from __future__ import annotations

from quorate.broker.groups.guarded import Guard
from quorate.broker.groups.shard import Shard
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.seams import Clock


class Background:
    """Runs one step of one shard's work in each iteration of the event loop.

    The shards take turns. A shard has at most one work at a time, so there are at most as many
    works as shards that are open or being closed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._works: dict[Shard, tuple[Guard, IncrementalWork[None]]] = {}
        self._scheduled = False

    def add(self, shard: Shard, guard: Guard, work: IncrementalWork[None]) -> None:
        """Run `work` under the guard, from the next iteration on.

        Discard `work` if the shard has another one already. The caller must know that the other one
        suffices: a running `Expiration.steps`, for example, also carries out new requests. If
        `work` raises, the guard reports it and the rest of `work` is discarded.
        """
        if shard not in self._works:
            self._works[shard] = (guard, work)
            self._schedule()

    def cancel(self, shard: Shard) -> None:
        """Discard the work of this shard, if it has one."""
        self._works.pop(shard, None)

    def _schedule(self) -> None:
        if self._works and not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._step)

    def _step(self) -> None:
        """Run one step of the first work, and move the work to the end unless it has ended or has
        raised.
        """
        self._scheduled = False
        if not self._works:
            return
        shard = next(iter(self._works))
        guard, work = self._works[shard]
        has_more = False

        def run() -> None:
            nonlocal has_more
            try:
                next(work)
            except StopIteration:
                return
            has_more = True

        guard.run(run)
        if shard in self._works and self._works[shard][1] is work:
            del self._works[shard]
            if has_more:
                self._works[shard] = (guard, work)
        self._schedule()

"""Runs long work of the shards in the background of the event loop."""

from __future__ import annotations

from quorate.broker.groups.guarded import Guard
from quorate.broker.replication.hosted_partition import Key
from quorate.quorum.seams import Clock
from quorate.quorum.steps import Steps


class Background:
    """Runs one step of one shard's work in each iteration of the event loop.

    The shards take turns by whole works, in the order in which the works were added. A shard has
    at most one work at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._works: dict[Key, tuple[Guard, Steps[None]]] = {}
        self._scheduled = False

    def add(self, key: Key, guard: Guard, work: Steps[None]) -> None:
        """Run `work` under the guard of the shard `key`, if this shard has no work yet."""
        if key not in self._works:
            self._works[key] = (guard, work)
            self._schedule()

    def cancel(self, key: Key) -> None:
        """Discard the work of a shard that is dropped."""
        self._works.pop(key, None)

    def _schedule(self) -> None:
        if self._works and not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._step)

    def _step(self) -> None:
        """Run one step of the first work. Remove the work if it has ended or has raised."""
        self._scheduled = False
        entry = next(iter(self._works.items()), None)
        if entry is None:
            return
        key, (guard, work) = entry
        has_more = False

        def run() -> None:
            nonlocal has_more
            try:
                next(work)
            except StopIteration:
                return
            has_more = True

        guard.run(run)
        if not has_more and self._works.get(key) == (guard, work):
            del self._works[key]
        self._schedule()

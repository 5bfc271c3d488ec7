"""Frees memory when the members of all groups of a broker hold too much (`member_memory.py`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from heapq import nlargest

from quorate.broker.groups.member import cancel
from quorate.broker.groups.member_memory import MemberMemory
from quorate.broker.groups.shard_context import ShardContext
from quorate.quorum.clipped import shown
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.seams import Clock, Timer

RELIEF = 1 / 8
"""The part of the limit that is free afterwards."""
MAX_EVICTED = 4
"""Maximum number of groups that lose their members in one step."""
REST_MS = 1
"""The time between two steps."""

logger = logging.getLogger("quorate.broker.groups")


class Relief:
    """Lets the groups that hold the most lose their members, on the broker's event loop.

    It never does so during a request, which may be changing a group, but soon after it."""

    def __init__(
        self, clock: Clock, memory: MemberMemory, shards: Callable[[], Iterable[ShardContext]]
    ) -> None:
        """`shards` returns all shards of the broker. Set `memory.on_full`."""
        self._clock = clock
        self._memory = memory
        self._shards = shards
        self._lines = LogLimit(clock)
        self._timer: Timer | None = None
        memory.on_full = self._soon

    def close(self) -> None:
        """Cancel a step that has not run yet."""
        cancel(self._timer)

    def _soon(self) -> None:
        if self._timer is None:
            self._timer = self._clock.call_later(0, self._relieve)

    def _relieve(self) -> None:
        self._timer = None
        enough_bytes = self._memory.limit_bytes * (1 - RELIEF)
        held = (
            (group.held_bytes, group_id, context)
            for context in self._shards()
            if context.ready
            for group_id, group in context.shard.groups.items()
            if group.members
        )
        evicted = self._memory.evicted
        for held_bytes, group_id, context in nlargest(MAX_EVICTED, held, key=lambda each: each[0]):
            if self._memory.used_bytes <= enough_bytes:
                return
            self._log(group_id, held_bytes)
            self._memory.evicted += 1
            context.guard.run(partial(context.shard.evict, group_id))
        if evicted < self._memory.evicted and self._memory.used_bytes > enough_bytes:
            cancel(self._timer)
            self._timer = self._clock.call_later(REST_MS, self._relieve)

    def _log(self, group_id: str, held_bytes: int) -> None:
        left_out = self._lines.passes("memory")
        if left_out is not None:
            logger.warning(
                "group %s loses its members, which hold %d bytes, because the groups of this "
                "broker hold %d bytes and MAX_GROUPS_BYTES is %d%s",
                shown(group_id),
                held_bytes,
                self._memory.used_bytes,
                self._memory.limit_bytes,
                left_out,
            )

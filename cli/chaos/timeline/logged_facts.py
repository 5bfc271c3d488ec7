"""The metadata of a cluster as its nodes' metadata logs on disk describe it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from quorate.cli.chaos.timeline.cluster_states import ClusterStates
from quorate.cli.chaos.timeline.metadata_tail import MetadataTail, log_end
from quorate.cli.chaos.timeline.timeline import Event


class LoggedFacts:
    """The records that are appended to the nodes' metadata logs after the creation of this object.

    `log_dirs` are the data directories of all nodes. During the run, records are taken from the
    logs of `brokers`."""

    def __init__(self, log_dirs: Mapping[int, Path], brokers: Sequence[int]) -> None:
        self._log_dirs = dict(log_dirs)
        self._tails = [MetadataTail(self._log_dirs[each]) for each in brokers]
        for tail in self._tails:
            tail.skip_to_end()
        self._since = min(tail.offset for tail in self._tails)
        self._next_offset = 0
        self._ends: dict[int, MetadataTail] = {}

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Do nothing, because the nodes write their logs."""
        yield

    def new_events(self, states: ClusterStates) -> Iterator[Event]:
        """Yield the events in new records of the logs.

        Each record is taken from the first broker's log that contains it, committed or not."""
        for tail in self._tails:
            new = [each for each in tail.read() if each.offset >= self._next_offset]
            if new:
                self._next_offset = new[-1].offset + 1
                yield from states.apply(new)

    def replay(self, states: ClusterStates) -> list[Event]:
        """Return the events of the most up-to-date log of all nodes.

        During the run, records may have been shown that were replaced later."""
        longest = max(self._log_dirs.values(), key=log_end)
        return list(states.apply(list(MetadataTail(longest, self._since).read())))

    def log_end(self, node_id: int) -> int:
        """Return the end offset of the node's log on disk. The first call reads the whole log."""
        tail = self._ends.setdefault(node_id, MetadataTail(self._log_dirs[node_id]))
        tail.skip_to_end()
        return tail.offset

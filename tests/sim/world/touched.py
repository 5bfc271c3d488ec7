"""The replicas of one process that have changed. They are checked once the moment is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorate.broker.replication.partitions.hosted_partition import HostedPartition


class Touched:
    """A watcher, as waiting fetches are."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, look: Callable[[HostedPartition], None]
    ) -> None:
        self._loop = loop
        self._look = look
        self._touched: dict[HostedPartition, None] = {}

    def watch(self, hosted: HostedPartition) -> None:
        hosted.watchers[self] = None

    def appended(self, hosted: HostedPartition, size_bytes: int) -> None:
        """What is not committed is compared with nothing."""

    def moved(self, hosted: HostedPartition, size_bytes: int) -> None:
        self._touch(hosted)

    def changed(self, hosted: HostedPartition) -> None:
        self._touch(hosted)

    def read_at(self, hosted: HostedPartition, broker_id: int) -> None:
        """No offset moves."""

    def _touch(self, hosted: HostedPartition) -> None:
        if not self._touched:
            self._loop.call_soon(self._look_at_all)
        self._touched[hosted] = None

    def _look_at_all(self) -> None:
        touched, self._touched = self._touched, {}
        for hosted in touched:
            self._look(hosted)

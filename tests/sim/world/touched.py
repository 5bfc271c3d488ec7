"""Collects the replicas of one process that have changed, and checks them in the next iteration of
the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorate.broker.replication.partitions.hosted_partition import HostedPartition


class Touched:
    """A watcher of replicas, with the same methods as a waiting fetch."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, look: Callable[[HostedPartition], None]
    ) -> None:
        self._loop = loop
        self._look = look
        self._touched: dict[HostedPartition, None] = {}

    def watch(self, hosted: HostedPartition) -> None:
        hosted.watchers[self] = None

    def appended(self, hosted: HostedPartition, size_bytes: int) -> None:
        """Do nothing, because the checks compare only committed records."""

    def moved(self, hosted: HostedPartition, size_bytes: int) -> None:
        self._touch(hosted)

    def changed(self, hosted: HostedPartition) -> None:
        self._touch(hosted)

    def read_at(self, hosted: HostedPartition, broker_id: int) -> None:
        """Do nothing, because a read moves no offset."""

    def _touch(self, hosted: HostedPartition) -> None:
        if not self._touched:
            self._loop.call_soon(self._look_at_all)
        self._touched[hosted] = None

    def _look_at_all(self) -> None:
        touched, self._touched = self._touched, {}
        for hosted in touched:
            self._look(hosted)

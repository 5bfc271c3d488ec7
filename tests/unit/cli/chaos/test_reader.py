"""The consumer of a run finds the leaders again after a time in which no partition had one."""

from __future__ import annotations

import asyncio
from array import array
from dataclasses import dataclass, field
from typing import Any, cast

from quorate.cli.chaos.workload.brokers import Brokers
from quorate.cli.chaos.workload.read_delays import ReadDelays
from quorate.cli.chaos.workload.reader import Reader, taken_back
from quorate.quorum.ids import ZERO_UUID


@dataclass
class Leaderless:
    """Metadata in which partition 0 has no leader until the first refresh."""

    topic: str = "t"
    topic_id: Any = ZERO_UUID
    leader: int = -1
    fetched: asyncio.Event = field(default_factory=asyncio.Event)

    def led_by(self, node_id: int) -> list[int]:
        """Return the partition if the node leads it."""
        return [0] if node_id == self.leader else []

    async def refresh(self, last: int = -1) -> None:
        """Learn the leader."""
        self.leader = 4

    async def call(self, node_id: int, request: Any, **options: Any) -> Any:
        """Note a fetch, and wait."""
        self.fetched.set()
        await asyncio.sleep(3600)


async def test_a_reader_looks_for_leaders_when_no_partition_has_one() -> None:
    brokers = Leaderless()
    reader = Reader(cast(Brokers, brokers), ReadDelays())
    reader.start([4, 5], 1)
    async with asyncio.timeout(20):
        await brokers.fetched.wait()
    await reader.stop()


def test_records_that_were_read_and_are_gone() -> None:
    read = {0: array("q", [1, 2, 3]), 1: array("q", [7])}
    assert taken_back(read, {0: array("q", [1, 2, 3, 4]), 1: array("q", [7])}) == []
    assert taken_back(read, {0: array("q", [1, 9]), 1: array("q", [7])}) == [(0, 1), (0, 2)]


def test_records_of_a_partition_that_was_not_read_at_the_end_are_not_judged() -> None:
    read = {0: array("q", [1, 2, 3])}
    assert taken_back(read, {0: array("q", [1])}, {0}) == []
    assert taken_back(read, {0: array("q", [9])}, {0}) == [(0, 0)]

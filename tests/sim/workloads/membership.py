"""A consumer group whose members join, leave and vanish, while its coordinator moves.

The members record everything in a `GroupBook`, which checks it. After the faults, all members reach
one generation in which each partition has an owner, and the owners find the offsets that were
committed last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.sim.workloads.group_book import GroupBook
from tests.sim.workloads.group_member import PARTITIONS, GroupMember
from tests.sim.workloads.workload import BACKOFF_S, Workload

MEMBERS = {"member1": False, "member2": False, "member3": True}
"""True for a static member."""


class Membership(Workload):
    name_of = "membership"
    keys: ClassVar[Mapping[str, str]] = {
        "offsets.topic.num.partitions": "2",
        "group.min.session.timeout.ms": "500",
    }

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self.book = GroupBook("crew")
        self.members = [
            GroupMember(stage.cluster, name, self.book, self.count, static=static)
            for name, static in MEMBERS.items()
        ]
        self._runs: list[asyncio.Task[None]] = []
        stage.clients += self.members

    async def prepare(self) -> None:
        self._runs = [each.spawn(each.run()) for each in self.members]

    async def step(self) -> None:
        """Do nothing, because the members have loops of their own."""

    async def check(self) -> None:
        for each in self.members:
            each.calm = True
        while not (self._is_settled() and await self._offsets_are_found()):
            await self.pause(BACKOFF_S)
        for each in self.members:
            each.ending = True
        for run in self._runs:
            await run

    def _is_settled(self) -> bool:
        """Return True if all members are in one generation and own all partitions."""
        generations = {each.generation for each in self.members}
        owned = [partition for each in self.members for partition in each.owned]
        return len(generations) == 1 and sorted(owned) == list(PARTITIONS)

    async def _offsets_are_found(self) -> bool:
        for each in self.members:
            for partition in sorted(each.owned):
                if not await each.spawn(each.finds_offset(partition)):
                    return False
        return True

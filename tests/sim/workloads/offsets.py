"""Committed offsets of a group: each fetch returns the last commit that was acknowledged.

A commit without an answer may take effect at any later time, because Kafka does not order the
commits of a client without a generation. It may therefore be returned, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.find_coordinator import FindCoordinatorRequest
from quorate.quorum.protocol.schemas.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.sim.clients.clients import Unreachable
from tests.sim.workloads.workload import BACKOFF_S, Workload, require

TOPIC = "data"
GROUPS = ("g1", "g2", "g3")
COMMIT_VERSION, FETCH_VERSION, FIND_VERSION = 8, 7, 3
NOTHING = -1


class Offsets(Workload):
    name_of = "offsets"
    keys: ClassVar[Mapping[str, str]] = {"offsets.topic.num.partitions": "2"}

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self._acknowledged = dict.fromkeys(GROUPS, NOTHING)
        self._unknown: dict[str, set[int]] = {each: set() for each in GROUPS}
        self._coordinators: dict[str, int] = {}
        self._next = 0

    async def step(self) -> None:
        group = self.random.choice(GROUPS)
        if self.random.randrange(0, 3):
            await self._commit(group)
        else:
            await self._fetch(group)

    async def check(self) -> None:
        for group in GROUPS:
            while not await self._fetch(group):
                await self.pause(BACKOFF_S)

    async def _coordinator(self, group: str) -> int | None:
        known = self._coordinators.get(group)
        if known is not None:
            return known
        broker = self.random.choice(sorted(self._addresses))
        answer = await self.ask(broker, FindCoordinatorRequest(key=group), FIND_VERSION)
        if answer.error_code:
            return None
        self._coordinators[group] = answer.node_id
        node_id: int = answer.node_id
        return node_id

    async def _commit(self, group: str) -> None:
        coordinator = await self._coordinator(group)
        if coordinator is None:
            return
        self._next += 1
        offset = self._next
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,))
        request = OffsetCommitRequest(group_id=group, member_id="", topics=(topic,))
        unknown = self._unknown[group]
        unknown.add(offset)
        try:
            answer = await self.ask(coordinator, request, COMMIT_VERSION)
        except Unreachable:
            self._coordinators.pop(group, None)
            raise
        error = answer.topics[0].partitions[0].error_code
        if error == ErrorCode.NONE:
            unknown.discard(offset)
            self._acknowledged[group] = offset
            self.effects += 1
        else:
            self._refused(group, error)

    async def _fetch(self, group: str) -> bool:
        topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,))
        request = OffsetFetchRequest(group_id=group, topics=(topic,))
        try:
            coordinator = await self._coordinator(group)
            if coordinator is None:
                return False
            answer = await self.ask(coordinator, request, FETCH_VERSION)
        except Unreachable:
            self._coordinators.pop(group, None)
            return False
        partition = answer.topics[0].partitions[0] if answer.topics else None
        error = answer.error_code or (partition.error_code if partition is not None else 0)
        if error:
            self._refused(group, error)
            return False
        assert partition is not None
        found, last = partition.committed_offset, self._acknowledged[group]
        require(
            found == last or found in self._unknown[group],
            f"group {group} has offset {found}; {last} was acknowledged last, and unknown are "
            f"{sorted(self._unknown[group])}",
        )
        self.effects += 1
        return True

    def _refused(self, group: str, error: int) -> None:
        code = ErrorCode.of(error)
        require(code.retriable, f"group {group}: {code.name}")
        self._coordinators.pop(group, None)

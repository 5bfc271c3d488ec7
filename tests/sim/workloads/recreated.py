"""A topic with records that is grown, deleted and created again under the same name.

A reader of the new topic sees no record of an earlier topic, and all acknowledged records of the
new one.
"""

from __future__ import annotations

from typing import Any

from quorate.quorum.ids import Uuid
from quorate.quorum.protocol.schemas.topics import CreatePartitionsRequest, CreatePartitionsTopic
from tests.sim.workloads.workload import TIMEOUT_MS, Workload, require

NAME = "phoenix"
MOST_PARTITIONS = 3
BURST = 5


class Recreated(Workload):
    name_of = "recreated"

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self._acknowledged: dict[Uuid, dict[tuple[int, int], bytes]] = {}
        self._number = 0

    async def prepare(self) -> None:
        while NAME not in self.topics:
            await self.create(NAME, 1)
            await self.refresh()

    async def step(self) -> None:
        chance = self.random.randrange(0, 20)
        if chance == 0:
            await self.delete(NAME)
            await self.create(NAME, 1)
            await self.refresh()
        elif chance == 1:
            count = self.random.randrange(2, MOST_PARTITIONS + 1)
            topic = CreatePartitionsTopic(name=NAME, count=count, assignments=None)
            await self.ask_any(
                CreatePartitionsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS, validate_only=False)
            )
            await self.refresh()
        elif chance == 2:
            await self.create(NAME, 1)
            await self.refresh()
        else:
            for _ in range(BURST):
                await self._write()

    async def _write(self) -> None:
        topic = self.topics.get(NAME)
        if topic is None:
            await self.refresh()
            return
        partition = self.random.randrange(0, max(1, len(topic.leaders)))
        self._number += 1
        value = b"%s:%d" % (topic.id.hex().encode(), self._number)
        done = await self.produce(NAME, partition, value)
        if done is not None:
            topic_id, offset = done
            self._acknowledged.setdefault(topic_id, {})[partition, offset] = value
            self.effects += 1

    async def check(self) -> None:
        topic = self.stage.cluster.newest_image().topic(NAME)
        if topic is None:
            return
        while self.topics.get(NAME) is None or self.topics[NAME].id != topic.id:
            await self.refresh()
        found: dict[tuple[int, int], bytes] = {}
        for partition in sorted(topic.partitions):
            for offset, value in await self.read(NAME, partition, 0):
                found[partition, offset] = value
                require(
                    value.startswith(topic.id.hex().encode()),
                    f"{NAME}-{partition} of {topic.id.hex()} has at {offset} {value!r} of a topic "
                    "that was deleted",
                )
        for place, value in self._acknowledged.get(topic.id, {}).items():
            require(
                found.get(place) == value,
                f"{NAME}: {value!r} acknowledged at {place}, found {found.get(place)!r}",
            )

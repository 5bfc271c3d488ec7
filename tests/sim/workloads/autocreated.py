"""Topics that brokers create when a client asks for them, and that get records immediately."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataRequestTopic
from tests.sim.workloads.workload import Workload, require

MOST = 3
PARTITIONS = 1


class AutoCreated(Workload):
    name_of = "autocreated"
    keys: ClassVar[Mapping[str, str]] = {"auto.create.topics.enable": "true"}

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self._acknowledged: dict[str, dict[int, bytes]] = {}
        self._number = 0

    async def step(self) -> None:
        name = f"auto{self.random.randrange(0, MOST)}"
        if name not in self.topics:
            topic = MetadataRequestTopic(name=name)
            await self.ask_any(MetadataRequest(topics=(topic,), allow_auto_topic_creation=True))
            await self.refresh()
            return
        self._number += 1
        value = b"auto:%d" % self._number
        done = await self.produce(name, 0, value)
        if done is not None:
            self._acknowledged.setdefault(name, {})[done[1]] = value
            self.effects += 1

    async def check(self) -> None:
        image = self.stage.cluster.newest_image()
        for name, acknowledged in self._acknowledged.items():
            topic = image.topic(name)
            require(topic is not None, f"{name} was written to and does not exist")
            assert topic is not None
            require(len(topic.partitions) == PARTITIONS, f"{name} has {len(topic.partitions)}")
            found = dict(await self.read(name, 0, 0))
            for offset, value in acknowledged.items():
                require(found.get(offset) == value, f"{name}: {value!r} is not at {offset}")

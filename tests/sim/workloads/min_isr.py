"""A topic whose min.insync.replicas an administrator lowers and raises while a client writes.

A lower value lets the leader commit alone, and then no other replica may be eligible (KIP-966). No
acknowledged record is lost, whatever the value was.

A change of the value while the ISR is empty leaves no replica that may be elected, as in Kafka. The
administrator then elects a leader uncleanly, and the records may be lost.
"""

from __future__ import annotations

from typing import Any

from quorate.quorum.metadata.image import TOPIC_RESOURCE
from quorate.quorum.protocol.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.sim.workloads.workload import TIMEOUT_MS, Workload, require

NAME = "guarded"
UNCLEAN = 1
"""The type of an election that may lose records."""
KEY = "min.insync.replicas"
CHANGE_ONE_IN = 5
"""One of so many steps changes the value."""
VALUES = (1, 1, 2, 3)
BURST = 2


class MinIsr(Workload):
    name_of = "min isr"

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self.acknowledged: dict[int, bytes] = {}
        self._number = 0

    async def prepare(self) -> None:
        while NAME not in self.topics:
            await self.create(NAME, 1, {KEY: "2"})
            await self.refresh()

    async def step(self) -> None:
        if self._nobody_may_lead():
            await self._elect_uncleanly()
        if self.random.randrange(0, CHANGE_ONE_IN) == 0:
            value = self.random.choice(VALUES)
            admin = self.stage.admin
            if await admin.spawn(admin.configure(TOPIC_RESOURCE, NAME, KEY, value)) == 0:
                self.count("changes of the min ISR")
        for _ in range(BURST):
            self._number += 1
            value_written = b"guarded:%d" % self._number
            done = await self.produce(NAME, 0, value_written)
            if done is not None:
                self.acknowledged[done[1]] = value_written
                self.count("writes")

    def _nobody_may_lead(self) -> bool:
        partition = self.stage.cluster.newest_image().partition(self.topics[NAME].id, 0)
        return partition is not None and not (
            partition.isr or partition.elr or partition.last_known_elr
        )

    async def _elect_uncleanly(self) -> None:
        self.stage.invariants.unclean_topics[NAME] = None
        self.acknowledged.clear()
        topic = TopicPartitions(topic=NAME, partitions=(0,))
        request = ElectLeadersRequest(
            election_type=UNCLEAN, topic_partitions=(topic,), timeout_ms=TIMEOUT_MS
        )
        await self.ask_any(request)
        self.count("unclean elections on request")

    async def check(self) -> None:
        found = dict(await self.read(NAME, 0, 0))
        for offset, value in self.acknowledged.items():
            require(found.get(offset) == value, f"{NAME}: {value!r} is not at {offset}")

"""A topic that allows unclean elections, so that an election may lose acknowledged records.

A record may be lost only to an election whose cause states the loss (`unclean_elections.py`). All
other acknowledged records stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.sim.checks.unclean_elections import epochs_of
from tests.sim.workloads.workload import Workload, require

NAME = "unclean"
RULES = (
    {"unclean.leader.election.enable": "true"},
    {"unclean.recovery.strategy": "aggressive"},
    {"unclean.recovery.strategy": "balanced"},
)
BURST = 3
HIGH_WATERMARK_S = 5


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A record, and the leader epoch in which it was appended."""

    value: bytes
    epoch: int


class Unclean(Workload):
    name_of = "unclean"

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        stage.invariants.unclean_topics[NAME] = None
        self.acknowledged: dict[int, list[Acknowledged]] = {}
        """The acknowledged records by offset. After an unclean election, another record may be
        acknowledged at the same offset."""
        self._number = 0

    async def prepare(self) -> None:
        rule = self.random.choice(RULES)
        while NAME not in self.topics:
            await self.create(NAME, 1, {"min.insync.replicas": "1", **rule})
            await self.refresh()

    async def step(self) -> None:
        for _ in range(BURST):
            await self._write()

    async def _write(self) -> None:
        found = self.known_leader(NAME, 0)
        self._number += 1
        value = b"unclean:%d" % self._number
        done = await self.produce(NAME, 0, value)
        if done is None or found is None:
            return
        topic_id, offset = done
        leader = next(each for each in self.stage.cluster.brokers if each.id == found[1])
        epochs = epochs_of(leader, (topic_id, 0)) or {}
        epoch = epochs.get(offset, self.topics[NAME].epochs[0])
        self.acknowledged.setdefault(offset, []).append(Acknowledged(value, epoch))
        self.count("writes")

    async def check(self) -> None:
        topic_id, _ = await self.leader((NAME, 0))
        await self.stage.until(
            self._all_is_committed, f"the high watermark of {NAME}", HIGH_WATERMARK_S
        )
        found = dict(await self.read(NAME, 0, 0))
        self.check_losses((topic_id, 0), found)

    def _all_is_committed(self) -> bool:
        leader = self.stage.leader_of((NAME, 0))
        if leader is None or leader.process is None or leader.process.broker is None:
            return False
        return any(
            each.topic == NAME and each.partition.high_watermark == each.log.end_offset
            for each in leader.process.broker.replicas.registry
        )

    def check_losses(self, key: Any, found: dict[int, bytes]) -> None:
        """Check that every acknowledged record that is not in the log was lost to an election that
        allows it. `found` has the values in the log by offset."""
        elections = self.stage.invariants.unclean
        for offset, records in self.acknowledged.items():
            for each in records:
                if found.get(offset) == each.value:
                    continue
                require(
                    elections.may_lose(key, offset, each.epoch),
                    f"{NAME}: {each.value!r}, acknowledged at {offset} in epoch {each.epoch}, is "
                    f"lost, and no election states it: {elections.of(key)}",
                )
                self.count("records lost by an unclean election")
        for _ in elections.of(key):
            self.count("unclean elections")

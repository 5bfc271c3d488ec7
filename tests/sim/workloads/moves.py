"""A topic whose replicas an administrator moves between the log directories of their brokers.

A move copies a log while clients and other replicas use it. Then the copy replaces the log
(KIP-113). Kills, power losses and failed disks interrupt moves. No acknowledged record is lost, and
each move ends after the faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.sim.checks.watermarks import hosted_by
from tests.sim.workloads.workload import Workload, require
from tests.sim.world.cluster import Machine
from tests.sim.world.shape import NAME as MACHINE

NAME = "moved"
PARTITIONS = 2
DIRECTORIES = (f"/{MACHINE}", f"/{MACHINE}-two")
MOVE_ONE_IN = 3
"""One of so many steps moves a replica."""
BURST = 2
END_S = 8.0
"""The virtual time within which a move ends on a healthy cluster."""


class Moves(Workload):
    name_of = "moves"
    keys: ClassVar[Mapping[str, str]] = {"log.dirs": ",".join(DIRECTORIES)}

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self._places: dict[tuple[str, int], str] = {}
        """The directory in which each replica was seen last, by machine and partition."""
        self._number = 0

    async def prepare(self) -> None:
        while NAME not in self.topics:
            await self.create(NAME, PARTITIONS)
            await self.refresh()

    async def step(self) -> None:
        self._look()
        if self.random.randrange(0, MOVE_ONE_IN) == 0:
            await self._move(self.random.choice(self.stage.cluster.brokers))
        for _ in range(BURST):
            partition = self.random.randrange(0, PARTITIONS)
            self._number += 1
            value = b"moved:%d" % self._number
            done = await self.produce(NAME, partition, value)
            if done is not None:
                self.acknowledged[partition, done[1]] = value
                self.count("writes")

    async def _move(self, broker: Machine) -> None:
        partition = self.random.randrange(0, PARTITIONS)
        topic = AlterReplicaLogDirTopic(name=NAME, partitions=(partition,))
        path = self.random.choice(DIRECTORIES).replace(MACHINE, broker.name)
        wanted = AlterReplicaLogDir(path=path, topics=(topic,))
        answer = await self.ask(broker.id, AlterReplicaLogDirsRequest(dirs=(wanted,)))
        code = answer.results[0].partitions[0].error_code
        name = ErrorCode.of(code).name
        self.stage.cluster.note(f"moves: b{broker.id} {NAME}-{partition} {wanted.path}: {name}")
        if code == ErrorCode.NONE:
            self.count("moves that were accepted")

    def _look(self) -> None:
        """Count the replicas that are in another directory than before."""
        for broker in self.stage.cluster.brokers:
            for hosted in hosted_by(broker).values():
                if hosted.topic != NAME:
                    continue
                place, directory = (broker.name, hosted.key[1]), hosted.log.directory
                if self._places.setdefault(place, directory) != directory:
                    self._places[place] = directory
                    self.count("moves that ended")

    async def check(self) -> None:
        await self.stage.until(lambda: not self._under_way(), "all moves have ended", END_S)
        self._look()
        for partition in range(PARTITIONS):
            found = dict(await self.read(NAME, partition, 0))
            for (where, offset), value in self.acknowledged.items():
                require(
                    where != partition or found.get(offset) == value,
                    f"{NAME}-{partition}: {value!r} is not at {offset}",
                )

    def _under_way(self) -> int:
        """Return the number of moves that have not ended."""
        processes = [each.process for each in self.stage.cluster.brokers]
        return sum(
            len(each.broker.replicas.moves)
            for each in processes
            if each is not None and each.broker
        )

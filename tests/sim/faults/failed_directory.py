"""A log directory that fails on a cluster that is otherwise healthy, while clients write.

Only the partitions of this directory are affected (KIP-112, KIP-858):

- The broker continues, and reports the directory.
- No replica in the directory leads, and none stays in an ISR that has another member. This is also
  so if the controller learns of the directory of a replica only after the failure.
- Other replicas lead, so clients write to all partitions with acks=all, as far as
  min.insync.replicas replicas are left.
- A broker that starts without the directory makes no second log of a partition that may be there.

Later the directory is mended, and the broker starts again with everything that it had. The
directory is on a disk of its own, which fails before it does anything, so no data is lost.
"""

from __future__ import annotations

import asyncio
import enum
from random import Random
from typing import TYPE_CHECKING

from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.quorum.directory_ids import is_online
from quorate.quorum.metadata.records import NO_LEADER
from quorate.quorum.metadata.replica_directories import replica_directory
from tests.sim.checks.watermarks import hosted_by
from tests.sim.workloads.moves import DIRECTORIES
from tests.sim.workloads.workload import require
from tests.sim.world.cluster import Machine
from tests.sim.world.shape import NAME

if TYPE_CHECKING:
    from tests.sim.run import Simulation

LIVENESS_S = 12.0
NOTICED_S, SERVED_S, STARTED_S = 5.0, 6.0, 10.0
ALONE_S = 8.0
"""The virtual time in which the sessions of killed brokers end."""
SETTLED_S = 0.5
NEW_TOPIC, NEW_PARTITIONS = "placed", 6
LATEST_S = 0.03
"""The directory fails up to so long after a request for a new topic."""


class Course(enum.Enum):
    """The events beside the failure."""

    RUNS = "the broker continues"
    STARTS_AGAIN = "the broker starts without the directory"
    ALONE = "the broker is alone in the ISR"


class FailedDirectory:
    """The failure of the second log directory of one broker."""

    def __init__(self, stage: Simulation, random: Random, machine: Machine) -> None:
        self._stage = stage
        self._random = random
        self.machine = machine
        self.path = second_directory(machine)
        self._held: list[Key] = []
        """The replicas of "data" whose logs are in the directory when it fails, except for those
        of partition 0, which the administrators reassign."""

    async def happens(self) -> None:
        """Draw the events beside the failure."""
        courses = [each for each in Course if each is not Course.ALONE or self._may_be_alone()]
        await self.takes(self._random.choice(courses))

    async def takes(self, course: Course) -> None:
        """Fail the directory, check what is promised meanwhile, and mend it."""
        self._stage.cluster.note(f"{self.path} fails: {course.value}")
        self._stage.coverage[f"directories that failed: {course.value}"] += 1
        if course is Course.ALONE:
            await self._fails_alone()
        else:
            await self._fails_beside_others()
        if course is Course.STARTS_AGAIN:
            await self._starts_without()
        self.mend()

    def mend(self) -> None:
        """Mend the directory, and start the broker again, which opens it."""
        self.machine.disk.failed.pop(self.path, None)
        if self.machine.process is not None:
            self._stage.cluster.kill(self.machine)
        self._stage.cluster.start(self.machine)

    def _may_be_alone(self) -> bool:
        """Return True if no other broker is a controller."""
        return not self._stage.cluster.combined

    async def _fails_beside_others(self) -> None:
        stage = self._stage
        made = stage.admin.spawn(stage.admin.create_surely(NEW_TOPIC, NEW_PARTITIONS))
        known_s = stage.loop.time() + NOTICED_S
        await stage.until(
            lambda: (
                stage.cluster.newest_image().topic(NEW_TOPIC) is not None
                or stage.loop.time() > known_s
            ),
            "a topic is created",
            SERVED_S,
        )
        await asyncio.sleep(self._random.uniform(0, LATEST_S))
        self._fail()
        await self.takes_no_part()
        before = stage.done()
        await stage.until(
            lambda: all(stage.done()[each] > before[each] for each in before),
            "clients write beside a failed directory",
            SERVED_S,
        )
        await stage.until(made.done, "a topic is created beside a failed directory", SERVED_S)

    def _fail(self) -> None:
        self._held = [
            each.key for each in held_in(self.machine) if each.topic == "data" and each.key[1] > 0
        ]
        self.machine.disk.failed[self.path] = None

    async def takes_no_part(self) -> None:
        """Wait until the failure is noticed, and no replica in the directory leads or is in sync
        any more."""
        stage = self._stage
        await stage.until(self.is_noticed, "a broker reports its failed directory", NOTICED_S)
        await stage.until(
            lambda: not self.taking_part(), "no replica in a failed directory leads", SERVED_S
        )

    def is_noticed(self) -> bool:
        broker = self._stage.cluster.newest_image().brokers.get(self.machine.id)
        return broker is not None and len(broker.log_dirs) < len(DIRECTORIES)

    def taking_part(self) -> list[str]:
        """Return the partitions with a leader or an ISR member in a directory of the broker that
        is not registered. The last member of an ISR may stay there, without a leader."""
        image = self._stage.cluster.newest_image()
        broker = image.brokers[self.machine.id]
        return [
            f"{topic.name}-{partition_id}"
            for topic, partition_id, each in image.all_partitions()
            if broker.id in each.replicas
            and not is_online(replica_directory(each, broker.id), broker.log_dirs)
            and (each.leader == broker.id or (broker.id in each.isr and len(each.isr) > 1))
        ]

    async def _starts_without(self) -> None:
        """Start the broker without the directory. It hosts no log that belongs there."""
        stage, machine = self._stage, self.machine
        stage.cluster.kill(machine)
        stage.cluster.start(machine)
        await stage.until(
            lambda: stage.all_serve() and not self.taking_part(),
            "a broker serves without a directory",
            STARTED_S,
        )
        self.require_one_log()

    def require_one_log(self) -> None:
        second = self.second_logs()
        require(not second, f"{self.machine.name} made a second log: {second}")

    def second_logs(self) -> list[str]:
        """Return the replicas that the broker hosts although their logs are in the directory that
        has failed."""
        hosted = hosted_by(self.machine)
        return [f"{hosted[key]}" for key in self._held if key in hosted]

    async def _fails_alone(self) -> None:
        """Kill all other brokers. When the broker is alone in the ISR of a partition in the
        directory, let the directory fail. Nobody leads the partition then, also when the broker
        has started again without the directory."""
        stage = self._stage
        others = [each for each in stage.cluster.brokers if each is not self.machine]
        for each in others:
            stage.cluster.kill(each)
        alone_s = stage.loop.time() + ALONE_S
        await stage.until(
            lambda: self._is_alone() or stage.loop.time() > alone_s, "alone", 2 * ALONE_S
        )
        self._fail()
        await self.takes_no_part()
        stage.cluster.kill(self.machine)
        stage.cluster.start(self.machine)
        await stage.until(self._is_unfenced, "a broker starts without a directory", STARTED_S)
        await asyncio.sleep(SETTLED_S)
        await self.takes_no_part()
        for each in others:
            if each.process is None:
                stage.cluster.start(each)

    def _is_unfenced(self) -> bool:
        broker = self._stage.cluster.newest_image().brokers[self.machine.id]
        return self._stage.cluster.is_registered(self.machine) and not broker.fenced

    def _is_alone(self) -> bool:
        """Return True if the broker alone is in the ISR of each partition that has a leader."""
        partitions = self._stage.cluster.newest_image().all_partitions()
        led = [each for _, _, each in partitions if each.leader != NO_LEADER]
        return bool(led) and all(each.isr == (self.machine.id,) for each in led)


def second_directory(machine: Machine) -> str:
    return DIRECTORIES[1].replace(NAME, machine.name)


def held_in(machine: Machine) -> list[HostedPartition]:
    """Return the replicas in the second directory of a broker."""
    inside = f"{second_directory(machine)}/"
    return [each for each in hosted_by(machine).values() if each.log.directory.startswith(inside)]


def chosen(stage: Simulation, random: Random) -> Machine | None:
    """Return a broker with a partition of "data" in its second directory, one that leads it if
    there is any, or None."""
    found = [
        (each, hosted.partition.leadership is not None)
        for each in stage.cluster.brokers
        for hosted in held_in(each)
        if hosted.topic == "data"
    ]
    leading = [each for each, leads in found if leads]
    candidates = leading or [each for each, _ in found]
    return random.choice(candidates) if candidates else None


async def directory_fails(stage: Simulation) -> None:
    """Let a directory of one broker of a healthy cluster fail, and mend it."""
    random = stage.cluster.random("failed directory")
    await stage.until(
        lambda: stage.all_serve() and stage.all_in_sync(), "all serve, in sync", LIVENESS_S
    )
    machine = chosen(stage, random)
    if machine is not None:
        await FailedDirectory(stage, random, machine).happens()

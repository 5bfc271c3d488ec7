"""A simulation: a cluster with its clients, its faults and its invariants.

Seeds (`seeds.py`) and scripted scenarios use it. It also runs a script, and checks everything at
the end.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from quorate.quorum.metadata.records import NO_LEADER
from quorate.quorum.raft.voter_changes import KRAFT_VERSION
from quorate.quorum.rpc import frame_link
from tests.sim.adversary.moves import Mover
from tests.sim.checks.electorate import Electorate
from tests.sim.checks.invariants import Invariants, Violation
from tests.sim.checks.quorum_history import QuorumHistory
from tests.sim.clients import joining
from tests.sim.clients.admin import Admin
from tests.sim.clients.clients import Client, Consumer, Producer, ProducerSettings
from tests.sim.clients.history import History, Place
from tests.sim.clients.progress import Progress
from tests.sim.clients.quorum_admin import QuorumAdmin
from tests.sim.faults.faults import Faults
from tests.sim.workloads.workload import Workload
from tests.sim.world.cluster import Machine, Shape, SimCluster
from tests.sim.world.disk_thread import simulated_locks
from tests.sim.world.loop import SimLoop

SWEEP_S = 0.01
LIVENESS_S = 12.0
"""The virtual time after the healing within which everything must work again."""
STOP_S = 3.0
"""The virtual time within which a broker of a healthy cluster stops cleanly under load."""
PLACES: list[Place] = [("data", 0), ("data", 1), ("data", 2)]
LOOSE: list[Place] = [("loose", 0)]


class Simulation:
    def __init__(self, loop: SimLoop, seed: int | str, shape: Shape) -> None:
        self.loop = loop
        self.coverage: Counter[str] = Counter()
        self.cluster = SimCluster(loop, seed, shape)
        self.invariants = Invariants(self.cluster, self.coverage)
        self.history = History()
        self.admins = [Admin(self.cluster, self.history, name) for name in ("admin", "admin2")]
        self.admin = self.admins[0]
        self.electorate = Electorate(self.cluster)
        self.voting = QuorumHistory(self.electorate.configured(), self.invariants.elections)
        self.cluster.started.append(
            lambda _, process: joining.watch(process.core.replica, self.voting, loop.time)
        )
        self.quorum_admin = QuorumAdmin(self.cluster, self.electorate, self.voting)
        self.clients: list[Client] = [*self.admins, self.quorum_admin]
        self.cluster.dying.append(self.electorate.remember)
        self.faults = Faults(self.cluster, self.electorate)
        self.producers: list[Producer] = []
        self.workloads: list[Workload] = []
        self.adversaries: list[Mover] = []
        self.profile = "scripted"
        self.progress: Progress | None = None
        self.healed_s = 0.0
        self._sweep()

    def _sweep(self) -> None:
        if self.cluster.failed.done():
            return
        try:
            self.faults.limits.look()
            self.invariants.sweep()
        except Violation as violation:
            self.cluster.fail(violation)
        finally:  # An exception that one sweep raises must not end the checks of the whole run.
            self.loop.call_at(self.loop.time() + SWEEP_S, self._sweep)

    async def ready(self, topics: dict[str, int]) -> None:
        self.cluster.start_all()
        await self.until(self.all_serve, "the cluster is up", 10)
        for name, partitions in topics.items():
            await self.admin.spawn(self.admin.create_surely(name, partitions))

    def producer(self, name: str, places: list[Place], **settings: Any) -> Producer:
        producer = Producer(self.cluster, self.history, name, ProducerSettings(**settings))
        self.clients.append(producer)
        self.producers.append(producer)
        producer.start(places)
        return producer

    def consumer(self, name: str) -> Consumer:
        consumer = Consumer(self.cluster, self.history, self.invariants, name)
        self.clients.append(consumer)
        return consumer

    async def begin(self, work: type[Workload], pace_s: float = 0.1) -> Workload:
        """Start a workload on a healthy cluster."""
        client = work(self)
        self.clients.append(client)
        self.workloads.append(client)
        await client.spawn(client.prepare())
        client.start(pace_s)
        return client

    async def until(self, holds: Callable[[], bool], what: str, seconds: float) -> float:
        """Wait until `holds` returns True. Return the virtual seconds that this took. Raise
        Violation if it takes more than `seconds`."""
        start_s = self.loop.time()
        while not holds():
            if self.loop.time() > start_s + seconds:
                raise Violation(f"not within {seconds} s: {what}; {self._state()}")
            await asyncio.sleep(0.02)
        return self.loop.time() - start_s

    def all_serve(self) -> bool:
        """Return True if there is one active controller, and all brokers run and are unfenced."""
        brokers = [each.process.broker for each in self.cluster.brokers if each.process]
        image = self.cluster.newest_image()
        return (
            len(self.cluster.active_controllers()) == 1
            and len(brokers) == len(self.cluster.brokers)
            and all(broker is not None and broker.running for broker in brokers)
            and all(
                (found := image.brokers.get(each.id)) is not None and not found.fenced
                for each in self.cluster.brokers
            )
        )

    def leader_of(self, place: Place) -> Machine | None:
        """Return the leader of a partition in the newest committed image, or None."""
        topic = self.cluster.newest_image().topic(place[0])
        partition = None if topic is None else topic.partitions.get(place[1])
        if partition is None or partition.leader == NO_LEADER:
            return None
        return next(each for each in self.cluster.brokers if each.id == partition.leader)

    def followers_of(self, place: Place) -> list[Machine]:
        leader = self.leader_of(place)
        return [each for each in self.cluster.brokers if each is not leader]

    def isr_of(self, place: Place) -> tuple[int, ...]:
        topic = self.cluster.newest_image().topic(place[0])
        return () if topic is None else topic.partitions[place[1]].isr

    def active(self) -> Machine:
        (machine,) = self.cluster.active_controllers()
        return machine

    def all_in_sync(self) -> bool:
        """Return True if every partition has a leader, and all of its replicas are in sync."""
        image = self.cluster.newest_image()
        return all(
            partition.leader != NO_LEADER and len(partition.isr) == len(partition.replicas)
            for _, _, partition in image.all_partitions()
        )

    def _state(self) -> str:
        image = self.cluster.newest_image()
        partitions = {
            f"{topic.name}-{partition_id}": (each.leader, each.isr)
            for topic, partition_id, each in image.all_partitions()
        }
        fenced = [each for each in image.broker_ids() if image.brokers[each].fenced]
        active = [each.name for each in self.cluster.active_controllers()]
        return f"active {active}, fenced {fenced}, {partitions}"

    async def stops_in_time(self, broker: Machine) -> None:
        """Stop a broker of a healthy cluster while clients write, and start it again."""
        await self.until(
            lambda: self.all_serve() and self.all_in_sync(), "all serve, in sync", LIVENESS_S
        )
        self.cluster.stop(broker)
        took_s = await self.until(
            lambda: broker.process is None, f"{broker.name} stops in order", STOP_S
        )
        self.coverage["clean stops under load"] += 1
        self.cluster.note(f"{broker.name} took {took_s:.2f} s to stop")
        self.cluster.start(broker)

    def done(self) -> Mapping[str, int]:
        """Return the number of requests that clients know to be done: records with acks=all in each
        partition, or committed batches of metadata if there are no brokers."""
        if not self.cluster.brokers:
            return {"metadata": len(self.invariants.metadata.batches)}
        return {f"{name}-{at}": self.history.acknowledged_in((name, at)) for name, at in PLACES}

    async def reckoning(self) -> float:
        """Check that a healed cluster works within LIVENESS_S, and that it has kept every promise.
        Return the virtual seconds until everything works."""
        start_s = self.loop.time()
        await self.until(
            lambda: self.all_serve() and self.all_in_sync(), "all serve, in sync", LIVENESS_S
        )
        for producer in self.producers:
            await self._in_time(producer.spawn(producer.stop()), "all writes acknowledged")
        administrators: list[Admin | QuorumAdmin] = [*self.admins, self.quorum_admin]
        for admin in administrators:
            await self._in_time(admin.spawn(admin.stop()), "the admins are answered")
        for work in self.workloads:
            await self._in_time(work.spawn(work.stop()), f"{work.name} is answered")
            await self._in_time(work.spawn(work.check()), f"{work.name} is checked")
            self.coverage[f"workload {work.name}"] += work.effects
        took_s = self.loop.time() - start_s
        checker = self.consumer("checker")
        image = self.cluster.newest_image()
        for place in self._places():
            topic = image.topic(place[0])
            assert topic is not None, place
            ends = self.invariants.committed((topic.id, place[1])).batches.values()
            # A record that a leader with a damaged disk acknowledges cannot be read there (seed
            # 30341).
            end = max([self.history.end_of(place), *(each.next_offset for each in ends)])
            read = checker.spawn(checker.read_all(place, end))
            self.history.check(place, await self._in_time(read, f"{place} can be read"))
        watermarks = self.invariants.watermarks
        await self.until(lambda: not watermarks.at_the_end(), "high watermarks are back", 2)
        self.history.admin.check(self.cluster.newest_image(), self.loop.time())
        decided = self.voting.check(self.electorate.voting(), self.loop.time())
        self.coverage["the order of changes of the voters"] += decided
        return took_s

    async def caught_up(self) -> None:
        """Wait until every node has all records that are committed now, and check its
        kraft.version."""
        offset = self.cluster.newest_image().last.offset
        machines = self.cluster.machines.values()
        await self.until(
            lambda: all(
                each.process is not None and each.process.core.image.last.offset >= offset
                for each in machines
            ),
            f"everybody knows offset {offset}",
            LIVENESS_S,
        )
        voting = self.electorate.voting()
        for each in machines:
            assert each.process is not None
            level = each.process.core.features().finalized.get(KRAFT_VERSION, 0)
            if level != voting.kraft_version:
                raise Violation(f"{each.name} tells of kraft.version {level}, it is {voting}")

    async def _in_time(self, task: asyncio.Task[Any], what: str) -> Any:
        await self.until(task.done, what, LIVENESS_S)
        return task.result()

    def _places(self) -> list[Place]:
        return sorted({place for _, place in self.history.promises})


@contextmanager
def simulation(seed: int | str, shape: Shape | None = None) -> Iterator[Simulation]:
    """Yield a simulation, and end everything in it afterwards, also after an error. No garbage is
    collected while it runs, because finalizers must not run at moments that depend on anything
    else."""
    gc.collect()
    gc.disable()
    loop = SimLoop()
    replaced = ExitStack()
    replaced.enter_context(mock.patch.object(frame_link, "perf_counter", loop.time))
    replaced.enter_context(simulated_locks())
    asyncio.set_event_loop(loop)
    stage = Simulation(loop, seed, shape or Shape())
    try:
        yield stage
    finally:
        hosts = [each.host for each in stage.clients]
        hosts += [each.host for each in stage.adversaries]
        for host in hosts:
            stage.cluster.network.crash(host)
        stage.cluster.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.set_exception_handler(lambda loop, context: None)
        loop.run_until_complete(asyncio.sleep(0.1))
        asyncio.set_event_loop(None)
        loop.close()
        replaced.close()
        gc.enable()


def play(stage: Simulation, script: Coroutine[Any, Any, Any]) -> Any:
    """Run `script` to its end, or to the first failure of the simulation. Return its result."""

    async def watched() -> Any:
        task = stage.loop.create_task(script)
        await asyncio.wait([task, stage.cluster.failed], return_when=asyncio.FIRST_COMPLETED)
        if stage.cluster.failed.done():
            task.cancel()
            await stage.cluster.failed
        return await task

    return stage.loop.run_until_complete(watched())

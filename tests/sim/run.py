"""One run: a cluster, its clients and its faults from a seed; then healing, liveness and the
reckoning. `Simulation` is the stage for scripted scenarios, too."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from quorate.quorum.metadata.records import NO_LEADER
from tests.sim.admin import Admin
from tests.sim.clients import Client, Consumer, Producer, ProducerSettings
from tests.sim.cluster import Cluster, Machine, Shape
from tests.sim.electorate import Electorate
from tests.sim.history import History, Place
from tests.sim.host import current_host
from tests.sim.invariants import Invariants, Violation
from tests.sim.loop import SimLoop
from tests.sim.nemesis import PROFILES, Nemesis, Profile
from tests.sim.quorum_admin import QuorumAdmin
from tests.sim.shape import Quorum

SWEEP_S = 0.01
FAULTS_S = 12.0
LIVENESS_S = 12.0
"""Virtual time after healing within which everything has to work again."""
PLACES: list[Place] = [("data", 0), ("data", 1), ("data", 2)]
SNAPSHOTS: list[dict[str, str]] = [
    {},
    {
        "metadata.log.max.record.bytes.between.snapshots": "2000",
        "metadata.max.retention.bytes": "6000",
        "internal.metadata.log.segment.bytes": "3000",
    },
    {
        "metadata.log.max.record.bytes.between.snapshots": "500",
        "metadata.max.retention.bytes": "1000",
        "internal.metadata.log.segment.bytes": "1000",
    },
]
LOOSE: list[Place] = [("loose", 0)]


@dataclass(frozen=True, slots=True)
class Report:
    seed: int | str
    profile: str
    virtual_s: float
    healed_s: float
    """How long after healing everything worked."""
    acknowledged: int
    consumed: int
    admin_done: int
    metadata_batches: int
    leaders: int
    trace_hash: str


class SeedFailed(AssertionError):
    def __init__(self, seed: int | str, error: BaseException) -> None:
        super().__init__(
            f"seed {seed}: {type(error).__name__}: {error}\nreplay: python -m tests.sim {seed}"
        )


class Simulation:
    def __init__(self, loop: SimLoop, seed: int | str, shape: Shape) -> None:
        self.loop = loop
        self.cluster = Cluster(loop, seed, shape)
        self.invariants = Invariants(self.cluster)
        self.history = History()
        self.admin = Admin(self.cluster, self.history)
        self.electorate = Electorate(self.cluster)
        self.quorum_admin = QuorumAdmin(self.cluster, self.electorate)
        self.clients: list[Client] = [self.admin, self.quorum_admin]
        self.cluster.dying.append(self.electorate.remember)
        self.producers: list[Producer] = []
        self._sweep()

    def _sweep(self) -> None:
        if self.cluster.failed.done():
            return
        try:
            self.invariants.sweep()
        except Violation as violation:
            self.cluster.fail(violation)
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

    async def until(self, holds: Callable[[], bool], what: str, seconds: float) -> float:
        """The virtual time that it took; Violation when it took longer."""
        start_s = self.loop.time()
        while not holds():
            if self.loop.time() > start_s + seconds:
                raise Violation(f"not within {seconds} s: {what}; {self._state()}")
            await asyncio.sleep(0.02)
        return self.loop.time() - start_s

    def all_serve(self) -> bool:
        """One active controller, and all brokers are unfenced and know it."""
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
        """As the newest committed image has it."""
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
        """Every partition is led, by all of its replicas in sync."""
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

    async def reckoning(self) -> float:
        """Of a healed cluster: it works, within LIVENESS_S, and it keeps every promise."""
        start_s = self.loop.time()
        await self.until(
            lambda: self.all_serve() and self.all_in_sync(), "all serve, in sync", LIVENESS_S
        )
        for producer in self.producers:
            await self._in_time(producer.spawn(producer.stop()), "all writes acknowledged")
        await self._in_time(self.admin.spawn(self.admin.stop()), "the admin is answered")
        took_s = self.loop.time() - start_s
        checker = self.consumer("checker")
        image = self.cluster.newest_image()
        for place in self._places():
            topic = image.topic(place[0])
            assert topic is not None, place
            ends = self.invariants.committed((topic.id, place[1])).batches.values()
            end = max((each.next_offset for each in ends), default=0)
            read = checker.spawn(checker.read_all(place, end))
            self.history.check(place, await self._in_time(read, f"{place} can be read"))
        self.admin.check(self.cluster.newest_image())
        return took_s

    async def caught_up(self) -> None:
        """Every node has all that is committed now."""
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

    async def _in_time(self, task: asyncio.Task[Any], what: str) -> Any:
        await self.until(task.done, what, LIVENESS_S)
        return task.result()

    def _places(self) -> list[Place]:
        return sorted({place for _, place in self.history.promises})


@contextmanager
def simulation(seed: int | str, shape: Shape | None = None) -> Iterator[Simulation]:
    """A stage that is cleared afterwards, whatever happened on it. Garbage is collected at its end
    only: finalizers must not run at moments that depend on anything else."""
    gc.collect()
    gc.disable()
    loop = SimLoop()
    asyncio.set_event_loop(loop)
    stage = Simulation(loop, seed, shape or Shape())
    try:
        yield stage
    finally:
        for client in stage.clients:
            stage.cluster.network.crash(client.host)
        stage.cluster.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.set_exception_handler(lambda loop, context: None)
        loop.run_until_complete(asyncio.sleep(0.1))
        asyncio.set_event_loop(None)
        loop.close()
        gc.enable()


def play(stage: Simulation, script: Coroutine[Any, Any, Any]) -> Any:
    """Runs `script` to its end, or to the first thing that is wrong."""

    async def watched() -> Any:
        task = stage.loop.create_task(script)
        await asyncio.wait([task, stage.cluster.failed], return_when=asyncio.FIRST_COMPLETED)
        if stage.cluster.failed.done():
            task.cancel()
            await stage.cluster.failed
        return await task

    return stage.loop.run_until_complete(watched())


class _LogLines(logging.Handler):
    """What the nodes log, into the trace."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def emit(self, record: logging.LogRecord) -> None:
        self._cluster.note(f"  {current_host.get()}: {record.name}: {record.getMessage()}")


def run_seed(
    seed: int,
    profile: Profile | None = None,
    trace: list[str] | None = None,
    *,
    verbose: bool = False,
) -> Report:
    """`trace` gets a line for everything that happened, also when the run fails."""
    with simulation(seed, shape_of(seed)) as stage:
        stage.cluster.trace = trace if trace is not None else []
        if verbose:
            logging.getLogger("quorate").setLevel(logging.INFO)
            logging.getLogger("quorate").addHandler(_LogLines(stage.cluster))
        try:
            report: Report = play(stage, _script(stage, seed, profile))
        except Exception as error:
            raise SeedFailed(seed, error) from error
        return report


def shape_of(seed: int) -> Shape:
    random = Random(f"{seed}/shape")
    quorum = random.choice(list(Quorum))
    dynamic = quorum is not Quorum.STATIC
    return Shape(
        controllers=random.choice((3, 3, 3, 3, 3, 3, 3, 5)),
        brokers=random.choice((3, 3, 3, 3, 3, 3, 3, 4)),
        spares=random.choice((1, 2)) if dynamic else 0,
        quorum=quorum,
        auto_join=dynamic and random.randrange(0, 4) == 0,
        replication_port=random.choice((0, 9094)),
        overrides={
            "quorate.hints.enable": random.choice(("true", "true", "true", "false")),
            **random.choice(SNAPSHOTS),
        },
    )


async def _script(stage: Simulation, seed: int, profile: Profile | None) -> Report:
    random = stage.cluster.random("profile")
    profile = profile or random.choice(PROFILES)
    for machine in stage.cluster.machines.values():
        machine.clock_rate = random.uniform(0.98, 1.02)
        machine.wall_offset_ms = random.randrange(-60_000, 60_000)
    stage.cluster.note(f"seed {seed}: {profile.name}")
    await stage.ready({"data": len(PLACES), "loose": len(LOOSE)})
    stage.producer("p1", PLACES)
    stage.producer("p2", PLACES[:1])
    stage.producer("p3", LOOSE, acks=1, idempotent=False)
    consumer = stage.consumer("reader")
    consumer.start([*PLACES, *LOOSE], 0.1)
    stage.admin.start(0.7)
    if stage.cluster.shape.quorum is not Quorum.STATIC:
        stage.quorum_admin.start(random.choice((0.3, 1.0)))
    names = [each.name for each in stage.clients]
    nemesis = Nemesis(
        stage.cluster,
        stage.electorate,
        profile,
        names,
        lambda: stage.all_serve() and stage.all_in_sync(),
    )
    end_s = stage.loop.time() + FAULTS_S
    faults = stage.loop.create_task(nemesis.run(end_s))
    await asyncio.sleep(end_s - stage.loop.time())
    faults.cancel()
    stage.quorum_admin.stopping = True
    some = stage.electorate.majority(random) if random.getrandbits(1) else None
    nemesis.heal(some)
    healed_s = await stage.reckoning()
    nemesis.heal()
    await stage.caught_up()
    return Report(
        seed,
        profile.name,
        stage.loop.time(),
        healed_s,
        stage.history.acknowledged,
        stage.history.consumed,
        stage.history.admin_done,
        len(stage.invariants.metadata.batches),
        stage.invariants.raft_epochs,
        _hash_of(stage),
    )


def _hash_of(stage: Simulation) -> str:
    """Of all that happened and of how often chance was asked."""
    digest = hashlib.sha256("\n".join(stage.cluster.trace).encode())
    digest.update(repr(stage.cluster.network.random.random()).encode())
    digest.update(repr(sorted(stage.invariants.metadata.batches.items())).encode())
    return digest.hexdigest()[:16]

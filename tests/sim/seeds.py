"""One run from a seed, which decides the cluster, the clients and the faults.

After the faults, all controllers or a random majority of them are healed. Then the cluster must
work again, and everything is checked.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tests.sim.adversary.client import HostileClient
from tests.sim.adversary.moves import Mover
from tests.sim.adversary.peer import FaultyNode
from tests.sim.adversary.values import OWN_TOPICS
from tests.sim.clients.progress import Progress
from tests.sim.faults.crashes import SHARE as CRASHES_SHARE
from tests.sim.faults.failed_directory import directory_fails
from tests.sim.faults.faults import Fault
from tests.sim.faults.lost_quorum import is_lost, lose_quorum
from tests.sim.faults.nemesis import PROFILES, Nemesis, replay
from tests.sim.faults.swarm import SHARE, Swarm, is_swarm, swarm_of
from tests.sim.run import LOOSE, PLACES, Simulation, play, simulation
from tests.sim.workloads.moves import Moves
from tests.sim.workloads.table import workloads_of
from tests.sim.workloads.workload import Workload
from tests.sim.world.cluster import Shape, SimCluster
from tests.sim.world.host import current_host
from tests.sim.world.shape import Quorum

FAULTS_S = 12.0
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
BROKERS = (3, 3, 3, 3, 3, 4, 4, 5)
FEW_BROKERS = (3, 3, 3, 3, 3, 3, 3, 4)
STOPS_ONE_IN = 4
"""At the end of one in so many seeds, a broker stops cleanly."""
WORKS_OF_A_SWARM = 1
PACE_S, ADMIN_PACE_S, VOTER_PACES_S = 0.1, 1.0, (0.3, 1.0)
"""The mean times between two requests of a producer, of an administrator, and of the administrator
that changes the voters."""
MILD = ("calm", "mild")
"""The profiles with one fault at a time, in which the clients must make progress."""
COMBINED_SHARE = 0.1
"""The share of the seeds with workloads in which the voters are brokers, too. In these seeds no
disk lies, and the quorum is not lost for good."""
THREADS_SHARE = 0.2
"""The share of the seeds in which each call of the disks' threads takes a while, also without a
fault, and the event loop runs between two calls (`disk_thread.py`)."""
DAMAGED_SHARE = 0.3
"""The share of the seeds in which disks lie and rot."""
DISK_CALLS_S = (0.0001, 0.0005, 0.002)
STREAMS_SHARE = 0.25
"""The share of the seeds in which links are streams of bytes (`stream.py`)."""
ADVERSARY_KEYS = {"offsets.topic.num.partitions": "2"}
"""The hostile client joins groups. The 50 partitions that groups have by default would be replicas
to simulate."""

FOLLOWER_READS = {
    "replica.selector.class": "quorate.LeastLoadedReplicaSelector",
    "num.replica.fetchers": "2",
}
"""Consumers read from followers, which fetch over two connections from each leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The choices of a run apart from its seed. `schedule` replaces the faults that are drawn."""

    controllers_only: bool = False
    faults_s: float = FAULTS_S
    schedule: Sequence[Fault] | None = None
    workloads: bool = True
    """True for workloads, up to five brokers, and clean stops. False for smaller clusters without
    these."""
    adversary: bool = False
    """True if a hostile client and a faulty node take part."""
    moves: Sequence[str] | None = None
    """The moves of the adversaries that are carried out, or None for all."""
    adversary_share: float = 0.0
    """The share of the seeds of a campaign in which adversaries take part."""
    always: Sequence[str] = ()
    """The workloads that each seed has, beside those that it draws."""
    threads: bool = False
    """Calls of the disks' threads take time in each seed, not only in THREADS_SHARE of them."""
    damaged: bool = False
    """Disks lie and rot in each seed where they may."""
    crashes: bool = False
    """Processes crash at drawn calls of their disks in each seed, not only in some of them."""
    swarm_share: float = SHARE
    """The share of swarms among the seeds with workloads or with controllers only."""

    def of(self, seed: int) -> Plan:
        """Return the plan of one seed of a campaign."""
        drawn = Random(f"{seed}/adversary").random() < self.adversary_share
        return replace(self, adversary=self.adversary or drawn, adversary_share=0.0)

    def arguments(self) -> str:
        """Return the arguments of the command that replays the run."""
        words = ["--controllers-only"] if self.controllers_only else []
        if not self.workloads:
            words.append("--no-workloads")
        if self.adversary:
            words.append("--adversary")
        if self.moves is not None:
            words.append(f"--moves {','.join(self.moves)}")
        if self.always:
            words.append(f"--always {','.join(self.always)}")
        if self.threads:
            words.append("--threads")
        if self.damaged:
            words.append("--damaged")
        if self.crashes:
            words.append("--crashes")
        if self.swarm_share != SHARE:
            words.append(f"--swarms {self.swarm_share:g}")
        if self.faults_s != FAULTS_S:
            words.append(f"--seconds {self.faults_s:g}")
        return " ".join(["", *words])


PLAN = Plan()


@dataclass(frozen=True, slots=True)
class Report:
    seed: int
    profile: str
    quorum: str
    brokers: int
    virtual_s: float
    healed_s: float
    """The time from the healing until everything worked."""
    cpu_s: float
    events: int
    acknowledged: int
    consumed: int
    stall_s: float
    """The longest time without progress of the clients during the faults."""
    histories: int
    undecided: int
    admin_done: int
    voter_changes: int
    metadata_batches: int
    leaders: int
    trace_hash: str
    faults: Counter[str] = field(repr=False)
    effects: Counter[str] = field(repr=False)
    coverage: Counter[str] = field(repr=False)
    checks: Counter[str] = field(repr=False)


class SeedFailed(AssertionError):
    """Raised if a run fails. `schedule` has the faults that were carried out until then, and
    `moves` the moves of the adversaries."""

    def __init__(
        self,
        seed: int,
        error: BaseException,
        plan: Plan = PLAN,
        schedule: Sequence[Fault] = (),
        moves: Sequence[str] = (),
    ) -> None:
        super().__init__(seed, error, plan, schedule, moves)
        self.seed, self.error, self.schedule, self.moves = seed, error, schedule, moves
        self.command = f"python -m tests.sim {seed}{plan.arguments()}"

    def __str__(self) -> str:
        kind = type(self.error).__name__
        return f"seed {self.seed}: {kind}: {self.error}\nreplay: {self.command}"


class _LogLines(logging.Handler):
    """Adds the log lines of the nodes to the trace."""

    def __init__(self, cluster: SimCluster) -> None:
        super().__init__()
        self._cluster = cluster

    def emit(self, record: logging.LogRecord) -> None:
        self._cluster.note(f"  {current_host.get()}: {record.name}: {record.getMessage()}")


def run_seed(
    seed: int, plan: Plan = PLAN, trace: list[str] | None = None, *, verbose: bool = False
) -> Report:
    """Run a seed. `trace` gets a line for every event, also if the run fails. Raise SeedFailed."""
    logger = logging.getLogger("quorate")
    level = logger.level
    started_s = time.process_time()
    with simulation(seed, shape_of(seed, plan)) as stage:
        stage.cluster.trace = trace if trace is not None else []
        lines = _LogLines(stage.cluster)
        if verbose:
            logger.setLevel(logging.INFO)
            logger.addHandler(lines)
        try:
            play(stage, _script(stage, seed, plan))
        except Exception as error:
            moves = [move for each in stage.adversaries for move in each.done]
            raise SeedFailed(seed, error, plan, stage.faults.done, moves) from error
        finally:
            logger.setLevel(level)
            logger.removeHandler(lines)
        return _report(stage, seed, time.process_time() - started_s)


def swarm_in(seed: int, plan: Plan) -> Swarm | None:
    """Return the swarm of a seed, or None. Smaller clusters and runs with adversaries have none."""
    if plan.adversary or not plan.workloads or not is_swarm(seed, plan.swarm_share):
        return None
    return swarm_of(seed)


def shape_of(seed: int, plan: Plan = PLAN) -> Shape:
    random = Random(f"{seed}/shape")
    quorum = random.choice(list(Quorum))
    dynamic = quorum is not Quorum.STATIC
    reads_followers = Random(f"{seed}/follower reads").random() < 0.3
    keys: dict[str, str] = {}
    for work in works_of(seed, plan):
        keys.update(work.keys)
    if (swarm := swarm_in(seed, plan)) is not None:
        keys = {**swarm.keys, **keys}
    controllers = random.choice((3, 3, 3, 3, 3, 3, 3, 5))
    brokers = 0 if plan.controllers_only else random.choice(_brokers_of(plan))
    combined = is_combined(seed, plan)
    return Shape(
        controllers=controllers,
        brokers=max(0, brokers - controllers) if combined else brokers,
        combined=combined,
        spares=random.choice((1, 2)) if dynamic else 0,
        quorum=quorum,
        auto_join=dynamic and random.randrange(0, 4) == 0,
        streams=not plan.adversary and Random(f"{seed}/streams").random() < STREAMS_SHARE,
        distances=swarm is not None and swarm.distances,
        sasl=any(work.logs_in for work in works_of(seed, plan)),
        disk_call_s=disk_call_s(seed, plan),
        replication_port=random.choice((0, 9094)),
        overrides={
            "quorate.hints.enable": random.choice(("true", "true", "true", "false")),
            **random.choice(SNAPSHOTS),
            **keys,
            **(ADVERSARY_KEYS if plan.adversary else {}),
            **(FOLLOWER_READS if reads_followers else {}),
        },
    )


def disk_call_s(seed: int, plan: Plan = PLAN) -> float:
    """Return the longest time of a call of the disk's thread without a fault."""
    random = Random(f"{seed}/threads")
    takes_time = random.random() < THREADS_SHARE or plan.threads
    return random.choice(DISK_CALLS_S) if takes_time else 0.0


def _brokers_of(plan: Plan) -> Sequence[int]:
    return BROKERS if plan.workloads and not plan.adversary else FEW_BROKERS


def works_of(seed: int, plan: Plan) -> list[type[Workload]]:
    """Return the workloads of a seed. Runs without brokers have none, and neither have runs with
    adversaries, whose requests would create topics that no administrator knows."""
    if not plan.workloads or plan.adversary or plan.controllers_only:
        return []
    works = workloads_of(seed, plan.always)
    fewest = max(WORKS_OF_A_SWARM, len(plan.always))
    return works if swarm_in(seed, plan) is None else works[:fewest]


def is_combined(seed: int, plan: Plan) -> bool:
    """Return True if the voters of a seed are brokers, too."""
    may_be = plan.workloads and not (plan.adversary or plan.controllers_only)
    return may_be and Random(f"{seed}/combined").random() < COMBINED_SHARE


def is_damaged(seed: int, plan: Plan) -> bool:
    """Return True if disks go bad in a seed. They do not if the quorum is lost for good, because
    that already takes whole disks."""
    if is_combined(seed, plan) or is_lost(Random(f"{seed}/lost quorum")):
        return False
    return plan.damaged or Random(f"{seed}/damaged").random() < DAMAGED_SHARE


def has_one_fault_at_a_time(seed: int, plan: Plan, profile: str) -> bool:
    """Return True if no node crashes, is killed or loses data beside the faults of the profile."""
    kills = any(work.kills for work in works_of(seed, plan))
    hurts = kills or crashes_at_calls(seed, plan) or is_damaged(seed, plan)
    return profile in MILD and not hurts


def has_hints(stage: Simulation) -> bool:
    """Return True if the controller acts on hints of dead brokers.

    Without them, a broker that was started again waits until the session of its last process ends,
    as in Kafka. A new active controller gives that session its whole time again, so each fault of a
    series that changes the controller adds to the wait (seed 4827)."""
    return stage.cluster.shape.overrides["quorate.hints.enable"] == "true"


def crashes_at_calls(seed: int, plan: Plan) -> bool:
    """Return True if processes crash at drawn calls of their disks in a seed."""
    return plan.crashes or Random(f"{seed}/crashes at calls").random() < CRASHES_SHARE


async def _script(stage: Simulation, seed: int, plan: Plan) -> None:
    random = stage.cluster.random("profile")
    swarm = swarm_in(seed, plan)
    profile = random.choice(PROFILES) if swarm is None else swarm.profile
    for machine in stage.cluster.machines.values():
        machine.clock_rate = random.uniform(0.98, 1.02)
        machine.wall_offset_ms = random.randrange(-60_000, 60_000)
    stage.profile = profile.name
    stage.cluster.note(f"seed {seed}: {profile.name}, {stage.cluster.shape}")
    await _start_clients(stage, random, seed, plan)
    stage.invariants.doubts_expected = plan.adversary
    adversaries = await start_adversaries(stage, plan) if plan.adversary else []
    end_s = stage.loop.time() + plan.faults_s
    if plan.schedule is None:
        names = [each.name for each in stage.clients]
        nemesis = Nemesis(stage.cluster, stage.faults, profile, names)
        works = [nemesis.run(end_s)]
        if is_damaged(seed, plan):
            works.append(nemesis.damage(end_s))
        if crashes_at_calls(seed, plan):
            works.append(nemesis.crashes(end_s))
    else:
        works = [replay(stage.faults, stage.cluster, plan.schedule)]
    tasks = [stage.loop.create_task(work) for work in works]
    for task in tasks:
        task.add_done_callback(stage.cluster.faults_done)
    stage.progress = Progress(stage.loop, stage.done)
    await asyncio.sleep(end_s - stage.loop.time())
    stage.progress.stop()
    if has_one_fault_at_a_time(seed, plan, profile.name) and has_hints(stage):
        stage.progress.require()
    for task in tasks:
        task.cancel()
    stage.quorum_admin.stopping = True
    operator = stage.cluster.random("lost quorum")
    for each in adversaries:
        each.stop()
    if is_lost(operator) and not stage.cluster.shape.combined:
        await lose_quorum(stage, operator)
    else:
        some = stage.electorate.majority(random) if random.getrandbits(1) else None
        stage.faults.heal(some)
    stage.coverage["data lost beside other faults"] += stage.faults.limits.together
    stage.coverage["controllers that are brokers"] += len(stage.cluster.combined)
    stage.coverage["links of bytes"] += stage.cluster.shape.streams
    stage.coverage["disk calls that take time"] += stage.cluster.shape.disk_call_s > 0
    if Moves in works_of(seed, plan):
        await directory_fails(stage)
    stopping = stage.cluster.random("clean stop")
    if works_of(seed, plan) and stopping.randrange(0, STOPS_ONE_IN) == 0:
        await stage.stops_in_time(stopping.choice(stage.cluster.brokers))
    stage.healed_s = await stage.reckoning()
    stage.faults.heal()
    await stage.caught_up()


async def start_adversaries(stage: Simulation, plan: Plan) -> list[Mover]:
    """Start the adversaries. Return those that stop when the faults end. In half of the seeds the
    hostile client continues, and the cluster has to become healthy nevertheless. It may elect
    leaders uncleanly for its own topics (seed 3356)."""
    stage.invariants.unclean_topics |= dict.fromkeys(OWN_TOPICS)
    for name in OWN_TOPICS if stage.cluster.brokers else ():
        await stage.admin.spawn(stage.admin.create_surely(name, 1))
    client = HostileClient(stage.cluster, plan.moves)
    node = FaultyNode(stage.cluster, plan.moves)
    stage.adversaries += [client, node]
    stage.invariants.doubts_expected = stage.history.hostile_batches = True
    for each in stage.adversaries:
        each.start()
    return [node] if stage.cluster.random("hostile to the end").getrandbits(1) else [client, node]


async def _reread(stage: Simulation) -> None:
    """Let one more consumer read everything over and over, because no start reads segments that
    were sealed long before."""
    await stage.admin.spawn(stage.admin.configure_surely("data", "internal.segment.bytes", 3000))
    stage.consumer("rereader").start([*PLACES, *LOOSE], 0.05, anew=40)


async def _start_clients(stage: Simulation, random: Random, seed: int, plan: Plan) -> None:
    swarm = swarm_in(seed, plan)
    if stage.cluster.brokers:
        await stage.ready({"data": len(PLACES), "loose": len(LOOSE)})
        pace_s = PACE_S if swarm is None else swarm.pace_s
        stage.producer("p1", PLACES, pace_s=pace_s)
        stage.producer("p2", PLACES[:1], pace_s=pace_s)
        stage.producer("p3", LOOSE, acks=1, idempotent=False)
        consumer = stage.consumer("reader")
        consumer.start([*PLACES, *LOOSE], 0.1)
        if is_damaged(seed, plan):
            await _reread(stage)
    else:
        await stage.ready({})
    for work in works_of(seed, plan):
        await stage.begin(work)
    for admin in stage.admins:
        admin.start(ADMIN_PACE_S if swarm is None else swarm.admin_pace_s)
    if stage.cluster.shape.quorum is not Quorum.STATIC:
        pace_s = random.choice(VOTER_PACES_S) if swarm is None else swarm.voter_pace_s
        stage.quorum_admin.start(pace_s)


def _report(stage: Simulation, seed: int, cpu_s: float) -> Report:
    verdicts = (stage.history.admin.verdicts, stage.voting.verdicts)
    return Report(
        seed=seed,
        profile=stage.profile,
        quorum=stage.cluster.shape.quorum.value,
        brokers=len(stage.cluster.brokers),
        virtual_s=stage.loop.time(),
        healed_s=stage.healed_s,
        cpu_s=cpu_s,
        events=stage.loop.events,
        acknowledged=stage.history.acknowledged,
        consumed=stage.history.consumed,
        stall_s=0.0 if stage.progress is None else stage.progress.stall_s,
        histories=sum(each.checked for each in verdicts),
        undecided=sum(each.undecided for each in verdicts),
        admin_done=stage.history.admin_done,
        voter_changes=stage.quorum_admin.changes,
        metadata_batches=len(stage.invariants.metadata.batches),
        leaders=stage.invariants.raft_epochs,
        trace_hash=_hash_of(stage),
        faults=Counter(each.kind for each in stage.faults.done),
        effects=stage.faults.effects.counts,
        coverage=stage.coverage,
        checks=stage.invariants.checks(),
    )


def _hash_of(stage: Simulation) -> str:
    """Return a hash of the trace, of the committed metadata, and of the state of the network's
    random numbers."""
    digest = hashlib.sha256("\n".join(stage.cluster.trace).encode())
    digest.update(repr(stage.cluster.network.random.random()).encode())
    digest.update(repr(sorted(stage.invariants.metadata.batches.items())).encode())
    return digest.hexdigest()[:16]

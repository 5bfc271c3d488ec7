"""Draws faults from a seed: kind, time, target and duration. `faults.py` carries them out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tests.sim.faults import crashes
from tests.sim.faults.damage import durable_logs
from tests.sim.faults.faults import Fault, Faults
from tests.sim.world.cluster import SimCluster
from tests.sim.world.shape import Quorum

HOUR_MS = 3_600_000
SHORTEST_OUTAGE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The mean time between two faults, their number at one time, their duration, and the frequency
    of each kind."""

    name: str
    pause_s: float
    at_once: int
    min_s: float = 0.05
    max_s: float = 3.0
    weights: dict[str, int] = field(default_factory=dict)


EVERYTHING = {
    "kill": 5,
    "lose_power": 4,
    "wipe": 2,
    "lose_metadata": 2,
    "stop": 2,
    "kill_all": 1,
    "outage": 2,
    "pause": 3,
    "step_clock": 1,
    "slow_disk": 2,
    "slow_calls": 2,
    "sync_fails": 1,
    "io_errors": 1,
    "read_only": 1,
    "full": 1,
    "flip": 1,
    "partition": 3,
    "partition_one_way": 3,
    "isolate": 3,
    "bridge": 1,
    "break_links": 4,
    "refuse": 3,
    "unread": 2,
    "narrow": 2,
    "slow": 2,
    "lossy": 2,
}
DAMAGE = ("flip_data", "lost_writes", "misdirected_writes", "sync_fails")
"""The kinds of damage that are drawn in addition to the others, in some seeds. A disk that lied is
a danger for the rest of the run, so the limits keep other nodes from losing data meanwhile."""
CRASH = "crash_at_call"
"""The kind that is drawn in addition to the others, in some seeds (`crashes.py`)."""
DAMAGE_PAUSE_S = 0.5
DAMAGE_POLLS, DAMAGE_POLL_S = 150, 0.02
PROFILES = (
    Profile(
        name="calm", pause_s=4.0, at_once=1, weights={**EVERYTHING, "kill_all": 0, "outage": 0}
    ),
    Profile(name="mild", pause_s=1.5, at_once=1, weights=EVERYTHING),
    Profile(name="rough", pause_s=0.7, at_once=2, weights=EVERYTHING),
    Profile(name="hell", pause_s=0.25, at_once=4, min_s=0.01, max_s=2.0, weights=EVERYTHING),
)


class Nemesis:
    def __init__(
        self, cluster: SimCluster, faults: Faults, profile: Profile, clients: Iterable[str]
    ) -> None:
        self.profile = profile
        self._cluster = cluster
        self._faults = faults
        self._random: Random = cluster.random("nemesis")
        self._machines = list(cluster.machines)
        self._brokers = [each.name for each in cluster.brokers] or self._machines
        self._controllers = [each.name for each in cluster.controllers]
        self._names = [*cluster.machines, *clients]
        self._draws: dict[str, Callable[[Fault], Fault]] = {
            "kill_all": self._all_running,
            "outage": self._outage,
            "wipe": self._wiped,
            "lose_metadata": self._controller,
            "step_clock": self._clock,
            "slow_disk": self._slow_disk,
            "slow_calls": self._slow_calls,
            "partition": self._halves,
            "partition_one_way": self._halves,
            "isolate": self._isolated,
            "bridge": self._bridge,
            "break_links": self._pair,
            "refuse": self._refuse,
            "unread": self._paths,
            "narrow": self._narrow,
            "slow": self._slow,
            "lossy": self._lossy,
        }

    async def run(self, until_s: float) -> None:
        loop, profile = self._cluster.loop, self.profile
        kinds = [kind for kind, weight in profile.weights.items() for _ in range(weight)]
        while True:
            await asyncio.sleep(self._random.expovariate(1 / profile.pause_s))
            if loop.time() >= until_s:
                return
            if self._faults.under_way >= profile.at_once:
                continue
            fault = self._draw(kinds, self._random)
            fault = self._draws.get(fault.kind, self._one_running)(fault)
            if fault.names:
                self._faults.carry_out(fault)

    async def damage(self, until_s: float) -> None:
        """Draw damage until `until_s`, whatever `at_once` of the profile is. Carry each fault out
        as soon as it is allowed."""
        loop, random = self._cluster.loop, self._cluster.random("damage")
        while True:
            await asyncio.sleep(random.expovariate(1 / DAMAGE_PAUSE_S))
            fault = self._draw(DAMAGE, random)
            names = self._brokers if fault.kind == "flip_data" else self._machines
            name = random.choice(names)
            for _ in range(DAMAGE_POLLS):
                machine = self._cluster.machines[name]
                if self._faults.could_scar(machine) and (
                    fault.kind != "flip_data" or durable_logs(machine)
                ):
                    break
                await asyncio.sleep(DAMAGE_POLL_S)
                name = random.choice(names)
            if loop.time() >= until_s:
                return
            self._faults.carry_out(replace(fault, names=(name,), at_s=loop.time()))

    async def crashes(self, until_s: float) -> None:
        """Draw crashes at disk calls until `until_s`, one after the other."""
        loop, random = self._cluster.loop, self._cluster.random("crashes")
        while True:
            await asyncio.sleep(random.expovariate(1 / crashes.PAUSE_S))
            if loop.time() >= until_s:
                return
            fault = Fault(
                kind=CRASH,
                at_s=loop.time(),
                lasts_s=random.uniform(self.profile.min_s, crashes.LONGEST_S),
                names=(random.choice(self._brokers),),
                values={
                    "call": random.randrange(0, len(crashes.CALLS)),
                    "later": random.choice(crashes.LATER),
                    "power_loss": random.randrange(0, crashes.POWER_LOSS_ONE_IN) == 0,
                },
            )
            self._faults.carry_out(fault)
            await asyncio.sleep(fault.lasts_s)

    def _draw(self, kinds: Sequence[str], random: Random) -> Fault:
        return Fault(
            kind=random.choice(kinds),
            at_s=self._cluster.loop.time(),
            lasts_s=random.uniform(self.profile.min_s, self.profile.max_s),
            seed=random.getrandbits(32),
        )

    # -- targets ---------------------------------------------------------------------------------

    def _running(self) -> list[str]:
        return [
            each.name
            for each in self._cluster.machines.values()
            if each.process is not None and not each.stopping
        ]

    def _one_running(self, fault: Fault) -> Fault:
        running = self._running()
        return replace(fault, names=(self._random.choice(running),)) if running else fault

    def _wiped(self, fault: Fault) -> Fault:
        """Choose a controller only in a dynamic quorum. In any other, an empty directory cannot
        vote again."""
        dynamic = self._cluster.shape.quorum is Quorum.DYNAMIC
        names = self._machines if dynamic else self._brokers
        running = [each for each in self._running() if each in names]
        return replace(fault, names=(self._random.choice(running),)) if running else fault

    def _controller(self, fault: Fault) -> Fault:
        running = [each for each in self._running() if each in self._controllers]
        return replace(fault, names=(self._random.choice(running),)) if running else fault

    def _outage(self, fault: Fault) -> Fault:
        """Choose all running brokers in any order, or all controllers if there are no brokers."""
        names = [each for each in self._running() if each in self._brokers]
        self._random.shuffle(names)
        return replace(fault, names=tuple(names), lasts_s=max(fault.lasts_s, SHORTEST_OUTAGE_S))

    def _all_running(self, fault: Fault) -> Fault:
        return replace(fault, names=tuple(self._running()))

    def _clock(self, fault: Fault) -> Fault:
        """Step the wall clock of a machine forwards or back, by up to an hour."""
        name = self._random.choice(self._machines)
        offset_ms = self._random.randrange(-HOUR_MS, HOUR_MS)
        return replace(fault, names=(name,), values={"offset_ms": offset_ms})

    def _slow_disk(self, fault: Fault) -> Fault:
        name = self._random.choice(self._machines)
        return replace(
            fault, names=(name,), values={"delay_s": self._random.choice((0.005, 0.05, 0.3))}
        )

    def _slow_calls(self, fault: Fault) -> Fault:
        longest_s = self._random.choice((0.0003, 0.002, 0.01))
        return replace(self._one_running(fault), values={"longest_s": longest_s})

    def _shuffled(self) -> list[str]:
        names = list(self._names)
        self._random.shuffle(names)
        return names

    def _halves(self, fault: Fault) -> Fault:
        names = self._shuffled()
        cut = self._random.randrange(1, len(names))
        return replace(fault, names=tuple(names[:cut]), others=tuple(names[cut:]))

    def _bridge(self, fault: Fault) -> Fault:
        """Cut the nodes into two halves that both reach one node, but not each other."""
        _, *names = self._shuffled()
        cut = self._random.randrange(1, len(names))
        return replace(fault, names=tuple(names[:cut]), others=tuple(names[cut:]))

    def _isolated(self, fault: Fault) -> Fault:
        """Cut one node off from all nodes and clients, from the nodes, or from the controllers only
        (a zombie)."""
        name = self._random.choice(self._machines)
        others = (
            self._names,
            self._machines,
            [each.name for each in self._cluster.controllers],
        )[self._random.randrange(0, 3)]
        return replace(fault, names=(name,), others=tuple(o for o in others if o != name))

    def _pair(self, fault: Fault) -> Fault:
        return replace(fault, names=tuple(self._random.sample(self._machines, 2)))

    def _refuse(self, fault: Fault) -> Fault:
        target = self._random.choice(self._machines)
        sources = [name for name in self._machines if name != target]
        if self._random.getrandbits(1):
            sources = [self._random.choice(sources)]
        return replace(fault, names=(target,), others=tuple(sources))

    # -- paths -----------------------------------------------------------------------------------

    def _slow(self, fault: Fault) -> Fault:
        latency_ms = self._random.uniform(5, 200)
        return self._paths(fault, min_latency_ms=latency_ms / 2, max_latency_ms=latency_ms)

    def _narrow(self, fault: Fault) -> Fault:
        return self._paths(fault, kernel_bytes=self._random.choice((16, 100, 700)))

    def _lossy(self, fault: Fault) -> Fault:
        return self._paths(
            fault,
            delay_probability=self._random.uniform(0.01, 0.3),
            break_probability=self._random.uniform(0, 0.02),
        )

    def _paths(self, fault: Fault, **values: float) -> Fault:
        """Choose the paths from one host to all others, or from all others to one host."""
        name = self._random.choice(self._names)
        others = tuple(each for each in self._names if each != name)
        names = ((name,), others)
        forward = self._random.getrandbits(1)
        return replace(fault, names=names[1 - forward], others=names[forward], values=values)


async def replay(faults: Faults, cluster: SimCluster, schedule: Sequence[Fault]) -> None:
    """Carry out the faults of a schedule, or of a part of it, at exactly the same times.

    A sleep for the difference of two times could end later than the fault by a rounding error."""
    for fault in schedule:
        if fault.at_s > cluster.loop.time():
            due = cluster.loop.create_future()
            cluster.loop.call_at(fault.at_s, due.set_result, None)
            await due
        faults.carry_out(fault)

"""Faults drawn from a seed, and undone after a while.

Bounded, so that a failure is a bug. A controller may lose power at any time: what it answered was
synced. Partition data is in page caches, as in Kafka, and promised only while one member of the ISR
keeps it: a broker loses power only when the other members surely do (`_may_lose_power`), and is
killed (`kill -9` keeps what was written) at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.sim.cluster import Cluster, Machine
from tests.sim.electorate import Electorate

Undo = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How bad it gets: the mean time between two faults, how many at once, how long they last,
    and how often each kind is drawn."""

    name: str
    pause_s: float
    at_once: int
    min_s: float = 0.05
    max_s: float = 3.0
    weights: dict[str, int] = field(default_factory=dict)


EVERYTHING = {
    "kill": 5,
    "lose_power": 4,
    "stop": 2,
    "slow_disk": 2,
    "kill_all": 1,
    "partition": 3,
    "partition_one_way": 3,
    "isolate": 3,
    "break_links": 4,
    "refuse": 3,
    "slow": 2,
    "lossy": 2,
    "pause": 3,
    "step_clock": 1,
    "wipe": 2,
}
PROFILES = (
    Profile(name="calm", pause_s=4.0, at_once=1, weights={**EVERYTHING, "kill_all": 0}),
    Profile(name="mild", pause_s=1.5, at_once=1, weights=EVERYTHING),
    Profile(name="rough", pause_s=0.7, at_once=2, weights=EVERYTHING),
    Profile(name="hell", pause_s=0.25, at_once=4, min_s=0.01, max_s=2.0, weights=EVERYTHING),
)


def isr_changes_under_way(cluster: Cluster) -> bool:
    return any(
        hosted.partition.leadership is not None and hosted.partition.leadership.isr.in_flight
        for machine in cluster.brokers
        if machine.process is not None and machine.process.broker is not None
        for hosted in machine.process.broker.replicas.registry
    )


class Nemesis:
    def __init__(
        self,
        cluster: Cluster,
        electorate: Electorate,
        profile: Profile,
        clients: Iterable[str],
        healthy: Callable[[], bool],
    ) -> None:
        self.profile = profile
        self._cluster = cluster
        self._electorate = electorate
        self._healthy = healthy
        self._fragile: Machine | None = None  # the broker that lost power last
        self._random: Random = cluster.random("nemesis")
        self._names = [*cluster.machines, *clients]
        self._undo: dict[Undo, None] = {}
        self._kinds: dict[str, Callable[[], Undo | None]] = {
            name: getattr(self, f"_{name}") for name in EVERYTHING
        }

    async def run(self, until_s: float) -> None:
        loop = self._cluster.loop
        kinds = [kind for kind, weight in self.profile.weights.items() for _ in range(weight)]
        while True:
            await asyncio.sleep(self._random.expovariate(1 / self.profile.pause_s))
            if loop.time() >= until_s:
                return
            if len(self._undo) >= self.profile.at_once or self._is_fragile():
                continue
            undo = self._kinds[self._random.choice(kinds)]()
            if undo is not None:
                self._undo[undo] = None
                lasts_s = self._random.uniform(self.profile.min_s, self.profile.max_s)
                loop.call_at(loop.time() + lasts_s, self._end, undo)

    def heal(self, controllers: Sequence[Machine] | None = None) -> None:
        """Everything as it was before; every machine runs, or these controllers only."""
        self._cluster.note("heal" if controllers is None else "heal some")
        for undo in list(self._undo):
            self._end(undo)
        self._cluster.network.heal()
        for machine in self._cluster.machines.values():
            machine.disk_delay_s = 0.0
            running = machine.process is not None
            if machine.is_broker or controllers is None or machine in controllers:
                if not running:
                    self._cluster.start(machine)
            elif running:
                self._cluster.kill(machine)

    def _end(self, undo: Undo) -> None:
        if undo in self._undo:
            del self._undo[undo]
            undo()

    # -- machines --------------------------------------------------------------------------------

    def _running(self) -> list[Machine]:
        return [each for each in self._cluster.machines.values() if each.process is not None]

    def _restart(self, *machines: Machine) -> Undo:
        def undo() -> None:
            for machine in machines:
                if machine.process is not None and machine.stopping:
                    self._cluster.kill(machine)  # it did not stop in time
                if machine.process is None:
                    self._cluster.start(machine)

        return undo

    def _kill(self) -> Undo | None:
        running = self._running()
        if not running:
            return None
        chosen = self._random.choice(running)
        self._cluster.kill(chosen)
        return self._restart(chosen)

    def _lose_power(self) -> Undo | None:
        brokers_too = self._may_lose_power()
        running = [each for each in self._running() if brokers_too or not each.is_broker]
        if not running:
            return None
        chosen = self._random.choice(running)
        self._cluster.lose_power(chosen)
        if chosen.is_broker:
            self._fragile = chosen
        return self._restart(chosen)

    def _wipe(self) -> Undo | None:
        """The directory of a controller is gone, and it comes back as another replica; or that of
        a broker, which then owns nothing that it had."""
        brokers_too = self._may_lose_power()
        machines = [
            each
            for each in self._running()
            if (brokers_too if each.is_broker else self._electorate.may_wipe(each))
        ]
        if not machines:
            return None
        chosen = self._random.choice(machines)
        self._cluster.kill(chosen)
        if chosen.is_broker:
            self._fragile = chosen
        else:
            self._electorate.wiped(chosen.key)
        self._cluster.wipe(chosen)
        return self._restart(chosen)

    def _is_fragile(self) -> bool:
        broker = self._fragile
        if broker is not None and self._cluster.is_registered(broker):
            self._fragile = None
        return self._fragile is not None

    def _may_lose_power(self) -> bool:
        """Brokers, only of a cluster that is well in every respect; then no other fault comes
        until the broker is back and has left the ISRs."""
        return not self._undo and self._healthy() and not isr_changes_under_way(self._cluster)

    def _stop(self) -> Undo | None:
        """SIGTERM: a controlled shutdown, or the leadership of the quorum handed over."""
        running = [each for each in self._running() if not each.stopping]
        if not running:
            return None
        chosen = self._random.choice(running)
        self._cluster.stop(chosen)
        return self._restart(chosen)

    def _slow_disk(self) -> Undo:
        machine = self._random.choice(list(self._cluster.machines.values()))
        machine.disk_delay_s = self._random.choice((0.005, 0.05, 0.3))
        self._cluster.note(f"disk of {machine.name} takes {machine.disk_delay_s} s")

        def undo() -> None:
            machine.disk_delay_s = 0.0

        return undo

    def _kill_all(self) -> Undo | None:
        running = self._running()
        for machine in running:
            if machine.is_broker or self._random.getrandbits(1):
                self._cluster.kill(machine)
            else:
                self._cluster.lose_power(machine)
        return self._restart(*running)

    def _pause(self) -> Undo | None:
        running = self._running()
        if not running:
            return None
        machine = self._random.choice(running)
        assert machine.process is not None
        host = machine.process.host
        self._cluster.note(f"pause {machine.name}")
        host.pause()

        def undo() -> None:
            self._cluster.note(f"resume {machine.name}")
            host.resume()

        return undo

    def _step_clock(self) -> Undo | None:
        machine = self._random.choice(list(self._cluster.machines.values()))
        machine.wall_offset_ms = self._random.randrange(-3_600_000, 3_600_000)
        self._cluster.note(f"wall clock of {machine.name} steps to {machine.wall_offset_ms}")
        if machine.process is not None:
            machine.process.clock.wall_offset_ms = machine.wall_offset_ms
        return None

    # -- network ---------------------------------------------------------------------------------

    def _partition(self) -> Undo:
        names = list(self._names)
        self._random.shuffle(names)
        cut = self._random.randrange(1, len(names))
        return self._block([(a, b) for a in names[:cut] for b in names[cut:]], both_ways=True)

    def _partition_one_way(self) -> Undo:
        names = list(self._names)
        self._random.shuffle(names)
        cut = self._random.randrange(1, len(names))
        return self._block([(a, b) for a in names[:cut] for b in names[cut:]], both_ways=False)

    def _isolate(self) -> Undo:
        """One node: from all others, from the nodes, or from the controllers only (a zombie)."""
        name = self._random.choice(list(self._cluster.machines))
        others = (
            self._names,
            list(self._cluster.machines),
            [each.name for each in self._cluster.controllers],
        )[self._random.randrange(0, 3)]
        return self._block([(name, other) for other in others if other != name], both_ways=True)

    def _block(self, pairs: list[tuple[str, str]], *, both_ways: bool) -> Undo:
        network = self._cluster.network
        if both_ways:
            pairs = pairs + [(b, a) for a, b in pairs]
        self._cluster.note("block " + " ".join(f"{a}>{b}" for a, b in pairs))
        for source, target in pairs:
            network.block(source, target)

        def undo() -> None:
            self._cluster.note("unblock " + " ".join(f"{a}>{b}" for a, b in pairs))
            for source, target in pairs:
                network.unblock(source, target)

        return undo

    def _pair(self) -> tuple[str, str]:
        source, target = self._random.sample(list(self._cluster.machines), 2)
        return source, target

    def _break_links(self) -> Undo | None:
        """Closed while both ends live: a hint that lies."""
        source, target = self._pair()
        self._cluster.note(f"break links {source} {target}")
        self._cluster.network.break_links(source, target)
        return None

    def _refuse(self) -> Undo:
        """A live peer whose link closed refuses: all the evidence there is, and it is false."""
        network = self._cluster.network
        target = self._random.choice(list(self._cluster.machines))
        sources = [name for name in self._cluster.machines if name != target]
        if self._random.getrandbits(1):
            sources = [self._random.choice(sources)]
        self._cluster.note(f"{target} refuses {' '.join(sources)}")
        for source in sources:
            network.refuse(source, target)
            network.break_links(source, target)

        def undo() -> None:
            self._cluster.note(f"{target} accepts {' '.join(sources)}")
            for source in sources:
                network.path(source, target).refused = False

        return undo

    def _slow(self) -> Undo:
        latency_ms = self._random.uniform(5, 200)
        return self._shape(min_latency_ms=latency_ms / 2, max_latency_ms=latency_ms)

    def _lossy(self) -> Undo:
        return self._shape(
            delay_probability=self._random.uniform(0.01, 0.3),
            break_probability=self._random.uniform(0, 0.02),
        )

    def _shape(self, **changes: float) -> Undo:
        network = self._cluster.network
        name = self._random.choice(self._names)
        pairs = [(name, other) for other in self._names if other != name]
        if self._random.getrandbits(1):
            pairs += [(b, a) for a, b in pairs]
        self._cluster.note(f"paths of {name}: {changes}")
        for source, target in pairs:
            network.shape(source, target, **changes)

        def undo() -> None:
            self._cluster.note(f"paths of {name} are as before")
            for source, target in pairs:
                network.path(source, target).settings = network.settings

        return undo

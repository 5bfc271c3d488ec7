"""Runs many seeds on all cores, and reports their number, their speed and the states that they
reached."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import active_children, get_context

from tests.sim.checks.verdicts import too_many_undecided
from tests.sim.faults.nemesis import CRASH, DAMAGE, EVERYTHING
from tests.sim.seeds import PLAN, Plan, Report, SeedFailed, run_seed

PER_WORKER = 2  # seeds that wait for each process
ALL_FAULTS = 200
"""A campaign of so many seeds must show an effect of each kind of fault."""
OF_BROKERS = {"flip_data"}
OF_STREAMS = {"narrow"}
"""OF_BROKERS has the kinds of faults that have an effect only with brokers, and OF_STREAMS those
that have one only if links are streams."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A SeedFailed in a form that processes can send to each other."""

    seed: int
    text: str
    faults: int


Outcome = Report | Failure


def begin() -> None:
    """Prepare a worker process. It ignores Ctrl-C, which reaches all processes of a terminal,
    because the main process ends the workers. Garbage collections no longer look at the objects
    that exist by now, which saves 30 ms a seed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()


def outcome(plan: Plan, seed: int) -> Outcome:
    logging.getLogger("quorate").setLevel(logging.CRITICAL)
    try:
        return run_seed(seed, plan.of(seed))
    except SeedFailed as failed:
        return Failure(seed, str(failed), len(failed.schedule))


@dataclass(slots=True)
class Tally:
    started_s: float = field(default_factory=time.monotonic)
    seeds: int = 0
    virtual_s: float = 0.0
    events: int = 0
    cpu_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)
    coverage: Counter[str] = field(default_factory=Counter)
    profiles: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    reports: list[Report] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def add(self, found: Outcome) -> None:
        self.seeds += 1
        if isinstance(found, Failure):
            self.failures.append(found)
            return
        self.reports.append(found)
        self.checks += found.checks
        self.virtual_s += found.virtual_s
        self.events += found.events
        self.cpu_s += found.cpu_s
        self.faults += found.faults
        self.effects += found.effects
        self.coverage += found.coverage
        self.profiles[f"{found.quorum} {found.profile}"] += 1

    @property
    def took_s(self) -> float:
        return max(1e-9, time.monotonic() - self.started_s)

    def line(self) -> str:
        return (
            f"{self.seeds} seeds in {self.took_s:.0f} s, {self.virtual_s / 3600:.2f} virtual hours "
            f"({self.virtual_s / 60 / self.took_s:.3f} per real minute), "
            f"{self.events / self.took_s:,.0f} events/s, {self.faults.total()} faults, "
            f"{len(self.coverage)} kinds of states, {len(self.failures)} failing"
        )

    def lines(self) -> Iterator[str]:
        yield self.line()
        yield f"CPU: {self.cpu_s:.0f} s, {self.cpu_s / max(1, self.seeds):.2f} s a seed"
        yield from self._per_seed()
        for title, counts in (("clusters", self.profiles), ("checks", self.checks)):
            yield f"{title}: " + ", ".join(f"{each} {n}" for each, n in counts.most_common())
        yield "faults with an effect, of those drawn: " + ", ".join(
            f"{each} {self.effects[each]}/{n}" for each, n in self.faults.most_common()
        )
        yield f"data lost beside other faults: {self.coverage['data lost beside other faults']}"
        for kind in ("workload", "raft", "record", "cause"):
            seen = {
                each.removeprefix(f"{kind} "): n
                for each, n in self.coverage.most_common()
                if each.startswith(f"{kind} ")
            }
            yield f"{kind} ({len(seen)}): " + ", ".join(f"{each} {n}" for each, n in seen.items())
        for failure in self.failures:
            yield failure.text
        yield from self.problems()

    def _per_seed(self) -> Iterator[str]:
        for what in ("acknowledged", "consumed", "stall_s"):
            found = sorted((getattr(each, what), each.seed) for each in self.reports)
            if found:
                (least, first), (most, last) = found[0], found[-1]
                yield (
                    f"{what} per seed: least {least:.6g} (seed {first}), "
                    f"median {found[len(found) // 2][0]:.6g}, most {most:.6g} (seed {last})"
                )
        yield f"histories: {self.histories}, of these undecided: {self.undecided}"

    @property
    def histories(self) -> int:
        return sum(each.histories for each in self.reports)

    @property
    def undecided(self) -> int:
        return sum(each.undecided for each in self.reports)

    def problems(self) -> list[str]:
        """Return the reasons why the campaign proves less than it claims, apart from failures."""
        found = [too_many_undecided(self.histories, self.undecided)]
        found += [
            f"seed {each.seed}: the clients did nothing: {each.acknowledged} acknowledged, "
            f"{each.consumed} consumed"
            for each in self.reports
            if each.brokers and not (each.acknowledged and each.consumed)
        ]
        return [*filter(None, found), *self._faults_without_effect()]

    def _faults_without_effect(self) -> Iterator[str]:
        """Yield a problem for each kind of fault without an effect, if the campaign is large
        enough."""
        if len(self.reports) < ALL_FAULTS:
            return
        kinds = {*EVERYTHING, *DAMAGE, CRASH}
        if not any(each.brokers for each in self.reports):
            kinds -= OF_BROKERS
        if not self.coverage["links of bytes"]:
            kinds -= OF_STREAMS
        for kind in sorted(kinds - set(+self.effects)):
            yield f"no fault {kind!r} of {self.faults[kind]} had an effect"


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Block Ctrl-C in the caller, and for good in the threads that it starts here. A pool that is
    interrupted while it starts its processes never ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def outcomes(
    seeds: Iterable[int], plan: Plan = PLAN, processes: int | None = None
) -> Generator[Outcome, None, None]:
    """Yield the outcomes as they come. When the caller closes the generator, all processes end."""
    processes = processes or os.cpu_count() or 1
    coming = iter(seeds)
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=begin) as pool:
        run = partial(outcome, plan)

        def submitted(count: int) -> set[Future[Outcome]]:
            with uninterrupted():
                return {pool.submit(run, seed) for seed in islice(coming, count)}

        try:
            waiting = submitted(processes * PER_WORKER)
            while waiting:
                done = next(as_completed(waiting))
                waiting.remove(done)
                waiting |= submitted(1)
                yield done.result()
        except BaseException:
            for worker in active_children():
                worker.terminate()
            raise


def campaign(seeds: Iterable[int], plan: Plan = PLAN) -> Tally:
    tally = Tally()
    for found in outcomes(seeds, plan):
        tally.add(found)
    return tally

"""Runs of a target: with a number of drawn inputs, guided by coverage for a time, or with every
systematic input once.

A crash is attributed to the input after which it showed. Where only the inputs before it explain
it, the seed of the run replays all of them.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from tests.attacks.nodes import memory_bytes
from tests.fuzz.coverage import Coverage
from tests.fuzz.mutations import mutated
from tests.fuzz.target import Crash, Opened, Target

CHECK_EVERY = 2_000
"""Inputs between two checks that the target still serves."""
MAX_INPUT_BYTES = 2 << 20
"""Runs with drawn inputs have no time for larger ones. `swept` feeds the systematic ones of any
size."""
SAY_EVERY_S = 30.0
MAX_CORPUS = 20_000
MAX_CORPUS_BYTES = 128 << 20
WARM_INPUTS = 500
"""Inputs of a sweep after which the growth of memory is measured."""
WARM_SHARE = 0.25
"""The growth of memory is measured after this part of a run."""


@dataclass(slots=True)
class Report:
    target: str
    inputs: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """The processor time of the run, which bounds a guided run. A busy machine makes a run longer,
    but not weaker."""
    lines: int = 0
    corpus: int = 0
    slowest_s: float = 0.0
    slowest: str = ""
    growth_bytes: int = 0
    left_out: int = 0
    """The inputs of a sweep that were not fed, because an honest node obeys them."""

    def __str__(self) -> str:
        return (
            f"{self.target}: {self.inputs} inputs in {self.seconds:.1f} s "
            f"({self.cpu_seconds:.1f} s of processor time), {self.lines} lines, "
            f"corpus {self.corpus}, longest step {self.slowest_s:.3f} s ({self.slowest}), memory "
            f"{self.growth_bytes >> 20:+} MB"
        )


@dataclass(slots=True)
class Run:
    """One run of one target. `seed` determines the inputs that were drawn."""

    name: str
    target: Target
    seed: int
    sweeps: bool = False
    """True if the inputs are the systematic ones in their order, so that no seed matters."""
    report: Report = field(init=False)
    _began_bytes: int = 0
    _began_s: float = field(default_factory=time.monotonic)
    _began_cpu_s: float = field(default_factory=time.process_time)

    def __post_init__(self) -> None:
        self.report = Report(self.name)

    def take(self, data: bytes, *, alone: bool = False) -> None:
        """Feed one input. Raise Crash if the target does not survive it."""
        feed = self.target.feed_alone if alone else self.target.feed
        steps = self.target.steps
        if steps is not None:
            steps.longest_s = 0.0
        began_s = time.thread_time()
        try:
            feed(data)
            self.report.inputs += 1
            if self.report.inputs % CHECK_EVERY == 0:
                self.target.check()
        except Exception as error:
            raise Crash(self.name, data, error, self.replay) from error
        took_s = time.thread_time() - began_s if steps is None else steps.longest_s
        if took_s > self.report.slowest_s and self.report.inputs % CHECK_EVERY:
            self.report.slowest_s = took_s
            self.report.slowest = (
                f"input {self.report.inputs}: {data[:20].hex()}, {len(data)} bytes"
            )

    def is_warm(self) -> None:
        """Measure the growth of memory from now on."""
        if not self._began_bytes:
            self._began_bytes = own_memory_bytes()

    def lasted(self) -> float:
        """Report the time of this run until now. Return its processor time in seconds."""
        self.report.seconds = time.monotonic() - self._began_s
        self.report.cpu_seconds = time.process_time() - self._began_cpu_s
        return self.report.cpu_seconds

    @property
    def replay(self) -> str:
        number = self.report.inputs + 1
        return f"SWEEP {number}" if self.sweeps else f"SEED {self.seed}:{number}"

    def end(self) -> None:
        """Let everything happen that waits for time, and check that the target still serves."""
        try:
            self.target.settle()
            self.target.check()
        except Exception as error:
            raise Crash(self.name, b"", error, self.replay) from error
        if self._began_bytes:
            self.report.growth_bytes = own_memory_bytes() - self._began_bytes


def own_memory_bytes() -> int:
    gc.collect()
    return memory_bytes(os.getpid())


@contextmanager
def silent() -> Iterator[None]:
    """Every refused input logs a line: none is written meanwhile."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def inputs(target: Target, seed: int) -> Iterator[bytes]:
    """Yield inputs without end: a sample of the systematic ones among drawn ones."""
    chance = random.Random(seed)
    systematic = [each for each in target.systematic() if len(each) <= MAX_INPUT_BYTES]
    chance.shuffle(systematic)
    while True:
        if systematic and chance.random() < 0.5:
            yield systematic.pop()
        elif len(data := target.drawn(chance)) <= MAX_INPUT_BYTES:
            yield data


def fixed(name: str, opened: Opened, seed: int, count: int) -> Report:
    """Feed `count` inputs that depend on the seed alone; raise Crash."""
    with silent(), opened() as target:
        run = Run(name, target, seed)
        source = inputs(target, seed)
        for number in range(count):
            if number == int(count * WARM_SHARE):
                run.is_warm()
            run.take(next(source))
        run.end()
        run.lasted()
        return run.report


def swept(
    name: str,
    opened: Opened,
    say: Callable[[str], None] = lambda _: None,
    count: int | None = None,
) -> Report:
    """Feed every systematic input once, in their order, or the first `count`. Raise Crash."""
    with silent(), opened() as target:
        run = Run(name, target, 0, sweeps=True)
        said_s = 0.0
        for number, data in enumerate(islice(target.systematic(), count), 1):
            run.take(data, alone=True)
            if number == WARM_INPUTS:
                run.is_warm()
            if (spent_s := run.lasted()) > said_s + SAY_EVERY_S:
                say(str(run.report))
                said_s = spent_s
        run.end()
        run.report.left_out = target.left_out
        run.lasted()
        return run.report


def guided(
    name: str,
    opened: Opened,
    seed: int,
    seconds: float,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Feed inputs for some seconds of processor time. Inputs that reach new lines are mutated
    further. Raise Crash."""
    chance = random.Random(seed)
    coverage = Coverage()
    corpus: list[bytes] = []
    corpus_bytes = 0
    with silent(), opened() as target:
        run = Run(name, target, seed)
        source = inputs(target, seed)
        said_s = 0.0
        with coverage.watching():
            while (spent_s := run.lasted()) < seconds:
                data = (
                    mutated(chance.choice(corpus), chance)
                    if corpus and chance.random() < 0.5
                    else next(source)
                )
                before = len(coverage)
                run.take(data)
                if spent_s > seconds * WARM_SHARE:
                    run.is_warm()
                room = len(corpus) < MAX_CORPUS and corpus_bytes < MAX_CORPUS_BYTES
                if len(coverage) > before and room:
                    corpus.append(data)
                    corpus_bytes += len(data)
                run.report.lines, run.report.corpus = len(coverage), len(corpus)
                if spent_s > said_s + SAY_EVERY_S:
                    say(str(run.report))
                    said_s = spent_s
        run.end()
        return run.report


def replay(name: str, opened: Opened, kind: str, what: str) -> None:
    """Feed the input of a crash's line, or all inputs of its seed or sweep. Raise Crash again."""
    if kind == "SEED":
        seed, _, count = what.partition(":")
        fixed(name, opened, int(seed), int(count))
        return
    if kind == "SWEEP":
        swept(name, opened, count=int(what))
        return
    with silent(), opened() as target:
        run = Run(name, target, 0)
        run.take(bytes.fromhex(what))
        run.end()

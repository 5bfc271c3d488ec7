"""A minute of fuzzing with fixed seeds, inputs that once crashed a target, and the long runs."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fuzz import engine
from tests.fuzz.coverage import Coverage
from tests.fuzz.engine import fixed, guided, replay
from tests.fuzz.target import Crash, Target
from tests.fuzz.targets import TARGETS

SEED = 10
LONG_S = 600.0
"""Seconds of processor time for each target. QUORATE_FUZZ_SECONDS makes the runs shorter."""
MAX_GROWTH_BYTES = 200 << 20
MAX_STEP_S = 20.0
"""One input may take so long in a long run, which traces every line on Python 3.11."""
REGRESSIONS = [
    line.split()[:3]
    for line in (Path(__file__).parent / "regressions.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", TARGETS)
def test_fixed_seeds_crash_nothing(name: str) -> None:
    report = fixed(name, TARGETS[name].opened, SEED, TARGETS[name].quick_inputs)
    assert report.inputs == TARGETS[name].quick_inputs
    assert report.growth_bytes < MAX_GROWTH_BYTES, str(report)


@pytest.mark.parametrize(("name", "kind", "what"), REGRESSIONS)
def test_inputs_that_once_crashed_a_target(name: str, kind: str, what: str) -> None:
    replay(name, TARGETS[name].opened, kind, what)


@pytest.mark.long
@pytest.mark.timeout(4 * LONG_S)
@pytest.mark.parametrize("name", TARGETS)
def test_minutes_guided_by_coverage(name: str) -> None:
    seed = int(os.environ.get("QUORATE_FUZZ_SEED", time.time_ns() // 1_000_000))
    seconds = float(os.environ.get("QUORATE_FUZZ_SECONDS", LONG_S))
    report = guided(name, TARGETS[name].opened, seed, seconds)
    assert report.growth_bytes < MAX_GROWTH_BYTES, str(report)
    assert report.slowest_s < MAX_STEP_S, str(report)


@pytest.mark.parametrize("count", [4, 400])
def test_a_target_that_keeps_its_inputs_grows(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the run is."""
    kept: list[bytes] = []

    class Keeping(Target):
        def feed(self, data: bytes) -> None:
            kept.append(data)

        def systematic(self) -> Iterator[bytes]:
            yield b"12345678"

        def drawn(self, chance: random.Random) -> bytes:
            return b"12345678"

    @contextmanager
    def opened() -> Iterator[Target]:
        yield Keeping()

    monkeypatch.setattr(engine, "own_memory_bytes", lambda: 1 + sum(map(len, kept)))
    assert fixed("keeping", opened, 1, count).growth_bytes == 8 * count * 3 // 4


def test_the_same_seed_gives_the_same_inputs() -> None:
    from itertools import islice

    from tests.fuzz.engine import inputs

    with TARGETS["record-batches"].opened() as target:
        first, second = (list(islice(inputs(target, 3), 200)) for _ in range(2))
    assert first == second


def test_a_crash_prints_the_line_that_replays_it() -> None:
    crash = Crash("records", b"\x01\x02", ValueError("two\nlines"), "SEED 1:5")
    assert str(crash) == ("python -m tests.fuzz replay records HEX 0102  # ValueError: two lines")
    large = Crash("records", bytes(5000), ValueError("x"), "SEED 1:5")
    assert str(large).startswith("python -m tests.fuzz replay records SEED 1:5 ")


def test_coverage_counts_lines_of_the_program_alone() -> None:
    from quorate.quorum.log.files.names import partition_of

    coverage = Coverage()
    with coverage.watching():
        partition_of("orders-1")
        reached = len(coverage)
        partition_of("orders-2")
    assert 0 < reached == len(coverage)
    assert {Path(code.co_filename).name for code, _ in coverage.seen} == {"names.py"}

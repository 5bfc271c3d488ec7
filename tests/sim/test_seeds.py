"""Many seeds, each with a cluster of its own: from static to dynamic quorums, from calm to hell.
One seed is one run, with every hash seed and version of Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.conftest import TOLD_AT_THE_END
from tests.sim.campaign import OF_BROKERS, Tally, campaign
from tests.sim.faults.nemesis import CRASH, DAMAGE, EVERYTHING, PROFILES
from tests.sim.seeds import Plan, run_seed
from tests.sim.workloads.table import WORKLOADS
from tests.sim.world.shape import Quorum

FIXED_SEEDS = (5, 9, 10, 11, 14, 26, 44, 53, 59, 60, 63, 71, 74, 77, 80, 82, 86, 89, 90)
"""Each kind of fault has an effect in two of these seeds. They have each kind of cluster and each
workload, and reach every state that the seeds 1 to 90 reach."""
MORE_SEEDS = tuple(sorted({*range(1, 91)}.difference(FIXED_SEEDS)))
SMALL_SEEDS = range(1, 47)
CONTROLLER_SEEDS, MORE_CONTROLLER_SEEDS = (*range(3, 48), 86), (1, 2, *range(48, 81))
"""The first reach every state that both reach. Each kind of fault has an effect in two of them."""
LONG_SEEDS = [range(first, first + 100) for first in range(1_000, 2_000, 100)]
"""The seeds are split, so that the timeout of one part names its seeds."""
DETERMINISM_SEED = 4
CHECKS = (
    "persisted vote",
    "votes of a leader",
    "log matching: metadata",
    "log matching: partition",
    "high watermark and ISR",
    "high watermark after a restart",
    "high watermark at the end",
)
"""Each of these compares something in every seed, on average."""
EFFECTS = (
    "compacted: logs whose head was deleted",
    "quotas: changer was refused",
    "quotas: 192.0.2.1 was refused",
)
STATES = (
    "clean stops under load",
    "disk calls that take time",
    "controllers that are brokers",
)
KINDS = {f"{quorum.value} {profile.name}" for quorum in Quorum for profile in PROFILES}
OTHER_PYTHONS = os.environ.get("QUORATE_PYTHONS", "python3.12:python3.13:python3.14").split(":")
"""Interpreters in which Quorate is installed, too."""
ROOT = Path(__file__).parents[2]

Told = Callable[[str, object], None]


def checked(seeds: Iterable[int], plan: Plan, told: Told) -> Tally:
    tally = campaign(seeds, plan)
    told(TOLD_AT_THE_END, tally.line())
    assert not tally.failures, "\n\n".join(each.text for each in tally.failures)
    assert not tally.problems()
    return tally


@pytest.mark.timeout(1200)
def test_fixed_seeds(record_property: Told) -> None:
    tally = checked(FIXED_SEEDS, Plan(), record_property)
    assert set(tally.profiles) >= KINDS
    assert set(tally.effects) == {*EVERYTHING, *DAMAGE, CRASH}
    assert tally.coverage["data lost beside other faults"] > len(FIXED_SEEDS) // 10
    for what in CHECKS:
        assert tally.checks[what] > len(FIXED_SEEDS), what
    assert tally.coverage["elections"] > 100 < tally.coverage["replicas that joined an ISR"]
    assert tally.coverage["quorum lost for good"] > 2
    assert tally.coverage["the order of changes of the voters"] > len(FIXED_SEEDS) // 2
    for work in WORKLOADS:
        assert tally.coverage[f"workload {work.name_of}"] > 0, work
    for what in (*STATES, *(f"workload {each}" for each in EFFECTS)):
        assert tally.coverage[what] > 0, what


@pytest.mark.timeout(1200)
def test_fixed_seeds_of_controllers_only(record_property: Told) -> None:
    tally = checked(CONTROLLER_SEEDS, Plan(controllers_only=True), record_property)
    assert set(tally.profiles) >= KINDS
    assert set(tally.effects) >= {*EVERYTHING, *DAMAGE, CRASH} - OF_BROKERS


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("seeds", "plan"),
    [
        (MORE_SEEDS, Plan()),
        (SMALL_SEEDS, Plan(workloads=False)),
        (MORE_CONTROLLER_SEEDS, Plan(controllers_only=True)),
    ],
    ids=["brokers", "no workloads", "controllers only"],
)
def test_more_fixed_seeds(seeds: Iterable[int], plan: Plan, record_property: Told) -> None:
    checked(seeds, plan, record_property)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seeds", LONG_SEEDS, ids=str)
def test_long_seeds(seeds: range, record_property: Told) -> None:
    checked(seeds, Plan(), record_property)


@pytest.mark.long
def test_a_seed_decides_everything() -> None:
    here = run_seed(DETERMINISM_SEED, verbose=True).trace_hash
    assert here == run_seed(DETERMINISM_SEED, verbose=True).trace_hash
    traces = {trace_of(sys.executable, hash_seed) for hash_seed in ("0", "12345")}
    assert len(traces) == 1
    (trace,) = traces
    assert trace.splitlines()[-1] == here and len(trace) > 10_000
    assert run_seed(DETERMINISM_SEED + 1).trace_hash != here


@pytest.mark.parametrize("python", OTHER_PYTHONS)
def test_a_seed_is_the_same_in_another_python(python: str) -> None:
    executable = shutil.which(python)
    if executable is None or not has_dependencies(executable):
        pytest.skip(f"no {python} with the dependencies installed")
    assert trace_of(executable, "1") == trace_of(sys.executable, "2")


def has_dependencies(executable: str) -> bool:
    code = "import sys, tests.sim.seeds; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([executable, "-c", code], cwd=ROOT, capture_output=True).returncode == 0


def trace_of(executable: str, hash_seed: str) -> str:
    """Return the trace of a run in a process of its own, where sets of strings have another
    order."""
    code = (
        "from tests.sim.seeds import run_seed\n"
        "trace = []\n"
        f"report = run_seed({DETERMINISM_SEED}, trace=trace, verbose=True)\n"
        "print('\\n'.join([*trace, report.trace_hash]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [executable, "-c", code],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout

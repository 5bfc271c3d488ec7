"""The command of `make detect`: in how many random seeds is each removed safeguard found?

`python -m tests.sim.detect [SAFEGUARD...]` removes one safeguard of the whole cluster after another
and runs the seeds from 1 on until one fails. A safeguard that only scripts of pure cores, disks or
tools exercise is left out. SEEDS is the largest number of seeds. CPU_S bounds the CPU seconds of
one safeguard.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from dataclasses import dataclass

from tests.sim.ablations import partitions, quorum
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.table import ABLATIONS
from tests.sim.loop import Deadlock
from tests.sim.seeds import Plan, SeedFailed, run_seed

SEEDS = 2000
CPU_S = 600.0
FAULTS_S = 12.0
LARGEST_MESSAGE = 110
HEAD = "| `SAFEGUARD=` | seeds until found | CPU s | what the seed says |"


@dataclass(frozen=True, slots=True)
class Detection:
    """`seed` is the first seed that failed, or None after `tried` seeds."""

    name: str
    seed: int | None
    tried: int
    cpu_s: float
    said: str

    def row(self) -> str:
        found = f"not in {self.tried}" if self.seed is None else str(self.seed)
        said = self.said.replace("|", "/").replace("\n", " ")[:LARGEST_MESSAGE]
        return f"| {self.name} | {found} | {self.cpu_s:.0f} | {said} |"


def relevant() -> list[Ablation]:
    """Return the safeguards that a running cluster relies on."""
    return [*quorum.ABLATIONS, *partitions.ABLATIONS]


def plan_of(ablation: Ablation) -> Plan:
    """Return brokers only where they matter: a seed without them is five times as fast."""
    return Plan(controllers_only=ablation in quorum.ABLATIONS, faults_s=FAULTS_S)


def detect(ablation: Ablation, seeds: int = SEEDS, cpu_s: float = CPU_S) -> Detection:
    """Run seeds from 1 on without the safeguard, until one fails or a bound is reached.

    A seed counts only if it passes with the safeguard."""
    began_s = time.process_time()
    plan = plan_of(ablation)
    tried = 0
    for seed in range(1, seeds + 1):
        if time.process_time() - began_s > cpu_s:
            break
        tried += 1
        with ablation.in_force():
            said = failure(seed, plan)
        if said and not failure(seed, plan):
            return Detection(ablation.name, seed, tried, time.process_time() - began_s, said)
    return Detection(ablation.name, None, tried, time.process_time() - began_s, "")


def failure(seed: int, plan: Plan) -> str:
    """Return what a seed that fails says, or ""."""
    try:
        run_seed(seed, plan)
    except SeedFailed as failed:
        return str(failed.error) or repr(failed.error)
    except Deadlock as deadlock:
        return str(deadlock)
    return ""


def main(names: list[str]) -> int:
    unknown = [each for each in names if each not in ABLATIONS]
    if unknown:
        sys.stderr.write(f"no safeguard {unknown[0]!r}; `make break` lists them\n")
        return 2
    chosen = [ABLATIONS[each] for each in names] or relevant()
    seeds = int(os.environ.get("SEEDS", str(SEEDS)))
    cpu_s = float(os.environ.get("CPU_S", str(CPU_S)))
    sys.stdout.write(f"{HEAD}\n|---|---|---|---|\n")
    found = 0
    for ablation in chosen:
        detection = detect(ablation, seeds, cpu_s)
        found += detection.seed is not None
        sys.stdout.write(f"{detection.row()}\n")
        sys.stdout.flush()
    sys.stdout.write(f"\n{found} of {len(chosen)} found\n")
    return 0


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(main(sys.argv[1:]))

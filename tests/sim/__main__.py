"""`python -m tests.sim` runs new seeds on all cores until it is stopped, --seeds N of them, or A-B.

`python -m tests.sim SEED` replays one seed with its trace. If the seed fails, the command also
finds the fewest faults with which it fails.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count

from tests.sim.campaign import Failure, Tally, outcomes
from tests.sim.faults.swarm import SHARE
from tests.sim.seeds import FAULTS_S, Plan, SeedFailed, run_seed
from tests.sim.shrink import shrunk

PROGRESS_S = 10.0
ADVERSARY_SHARE = 0.3
DEFAULT_FIRST_SEED_BITS = 0xFFFFFF


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("seeds", nargs="?", help="one SEED to replay, or A-B")
    parser.add_argument("--seeds", dest="number", type=int, help="how many new seeds")
    parser.add_argument("--controllers-only", action="store_true", help="no brokers, no data")
    parser.add_argument("--no-workloads", action="store_true", help="small clusters, few clients")
    parser.add_argument("--seconds", type=float, default=FAULTS_S, help="of faults, virtual")
    parser.add_argument("--swarms", type=float, default=SHARE, help="the share of swarms, 0 to 1")
    parser.add_argument("--always", help="workloads that each seed has: moves,quotas")
    parser.add_argument("--threads", action="store_true", help="calls of disks take time")
    parser.add_argument("--damaged", action="store_true", help="disks lie and rot")
    parser.add_argument("--crashes", action="store_true", help="at drawn calls of disks")
    parser.add_argument("--adversary", action="store_true", help="untrusted peers take part")
    parser.add_argument("--moves", help="of the adversaries, these only: c,n17")
    parser.add_argument("--no-shrink", action="store_true", help="of a seed that fails")
    return parser


def main(arguments: Sequence[str]) -> int:
    logging.getLogger("quorate").setLevel(logging.CRITICAL)
    options = parser().parse_args(arguments)
    plan = Plan(
        controllers_only=options.controllers_only,
        workloads=not options.no_workloads,
        faults_s=options.seconds,
        adversary=options.adversary,
        swarm_share=options.swarms,
        damaged=options.damaged,
        crashes=options.crashes,
        threads=options.threads,
        always=options.always.split(",") if options.always else (),
        moves=None if options.moves is None else options.moves.split(","),
    )
    number = options.number or int(os.environ.get("SEEDS", "0"))
    if options.seeds is None:
        first = int(time.time()) & DEFAULT_FIRST_SEED_BITS
        plan = replace(plan, adversary_share=ADVERSARY_SHARE)
        return run(range(first, first + number) if number else count(first), plan)
    first, dash, last = options.seeds.partition("-")
    if dash:
        return run(range(int(first), int(last) + 1), plan)
    return replay(int(first), plan, shrink=not options.no_shrink)


def run(seeds: Iterable[int], plan: Plan) -> int:
    tally = Tally()
    said_s = tally.started_s
    try:
        with closing(outcomes(seeds, plan)) as coming:
            for found in coming:
                tally.add(found)
                if isinstance(found, Failure):
                    say(found.text)
                if time.monotonic() > said_s + PROGRESS_S:
                    said_s = time.monotonic()
                    say(tally.line())
    except KeyboardInterrupt:
        say("stopped")
    for line in tally.lines():
        say(line)
    return 1 if tally.failures or tally.problems() else 0


def replay(seed: int, plan: Plan, *, shrink: bool) -> int:
    trace: list[str] = []
    try:
        report = run_seed(seed, plan, trace, verbose=True)
    except SeedFailed as failed:
        say("\n".join(trace))
        say(failed)
        if shrink:
            say_fewest(plan, failed)
        return 1
    say("\n".join(trace))
    say(report)
    return 0


def say_fewest(plan: Plan, failed: SeedFailed) -> None:
    """Say the fewest faults with which the seed fails, and then the fewest moves of the
    adversaries."""
    logging.getLogger("quorate").setLevel(logging.CRITICAL)

    def fails(changed: Plan) -> bool:
        try:
            run_seed(failed.seed, changed)
        except SeedFailed:
            return True
        return False

    if not fails(replace(plan, schedule=failed.schedule)):
        say("it does not fail with the same faults at the same times: the moment decides")
        return
    fewest = shrunk(failed.schedule, lambda some: fails(replace(plan, schedule=some)))
    say(f"{len(fewest)} of {len(failed.schedule)} faults are enough:")
    for fault in fewest:
        say(f"  {fault}")
    if plan.adversary:
        plan = replace(plan, schedule=fewest)
        moves = shrunk(failed.moves, lambda some: fails(replace(plan, moves=some)))
        say(f"{len(moves)} of {len(failed.moves)} moves are enough: {' '.join(moves)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

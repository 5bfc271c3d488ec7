"""`python -m tests.sim SEED`: replay a seed with its trace. Without a seed: new ones until one
fails."""

from __future__ import annotations

import logging
import sys
import time
from itertools import count

from tests.sim.seeds import SeedFailed, run_seed


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    logging.getLogger("quorate").setLevel(logging.CRITICAL)
    if arguments and "-" not in arguments[0]:
        return replay(int(arguments[0]))
    first, _, last = arguments[0].partition("-") if arguments else (str(int(time.time())), "", "")
    seeds = range(int(first), int(last) + 1) if last else count(int(first))
    failed = 0
    for seed in seeds:
        started = time.perf_counter()
        try:
            report = run_seed(seed)
        except SeedFailed as error:
            failed += 1
            say(error)
            if not last:
                return 1
        else:
            took_s = time.perf_counter() - started
            say(f"{took_s:5.2f} s {report}")
    return 1 if failed else 0


def replay(seed: int) -> int:
    trace: list[str] = []
    try:
        report = run_seed(seed, trace=trace, verbose=True)
    except SeedFailed as error:
        say("\n".join(trace))
        say(error)
        raise
    say("\n".join(trace))
    say(report)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

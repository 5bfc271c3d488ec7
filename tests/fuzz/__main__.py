"""`python -m tests.fuzz`: fuzz by hand, or replay the line that a crash printed.

python -m tests.fuzz TARGET... --seconds 60 --seed 1     guided by coverage
python -m tests.fuzz TARGET... --inputs 5000 --seed 1    as `make test` does
python -m tests.fuzz TARGET... --sweep                   every systematic input once
python -m tests.fuzz replay TARGET HEX DATA
python -m tests.fuzz replay TARGET SEED SEED:COUNT
python -m tests.fuzz replay TARGET SWEEP COUNT
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.engine import fixed, guided, replay, swept
from tests.fuzz.target import Crash
from tests.fuzz.targets import TARGETS


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    if sys.argv[1:2] == ["replay"]:
        name, kind, what = sys.argv[2:5]
        replay(name, TARGETS[name].opened, kind, what)
        say(f"{name} survives this input")
        return 0
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all without names")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--inputs", type=int, help="that many without coverage, not for a time")
    parser.add_argument("--sweep", action="store_true", help="every systematic input once")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args()
    crashes = 0
    for name in chosen.targets or TARGETS:
        opened = TARGETS[name].opened
        try:
            if chosen.sweep:
                say(swept(name, opened, say))
            elif chosen.inputs is not None:
                say(fixed(name, opened, chosen.seed, chosen.inputs))
            else:
                say(guided(name, opened, chosen.seed, chosen.seconds, say))
        except Crash as crash:
            crashes += 1
            say(f"CRASH {crash}")
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())

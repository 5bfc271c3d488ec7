"""One attack in a process of its own: `python -m tests.attacks.attacker NAME ...`.

It runs at a low priority, because a small machine's processor is not what an attack is to measure.
Its one line on stdout is a JSON object: what happened, and how long it took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from quorate.quorum.seams import Address
from tests.attacks.registry import ATTACK_TIMEOUT_S, attacks
from tests.attacks.security import Files
from tests.attacks.target import NotServed, Target

NICENESS = 10


def addresses(text: str) -> list[Address]:
    pairs = (each.rpartition(":") for each in text.split(",") if each)
    return [Address(host, int(port)) for host, _, port in pairs]


async def run(names: list[str], target: Target) -> list[dict[str, object]]:
    """Run the attacks one after the other; an attack that raises is reported, not raised."""
    await target.prepare()
    done = []
    for name in names:
        target.outcome.clear()
        target.unserved.clear()
        began_s = time.monotonic()
        error = ""
        try:
            async with asyncio.timeout(ATTACK_TIMEOUT_S):
                await attacks()[name].run(target)
        except Exception as failure:
            error = repr(failure)
        seconds = round(time.monotonic() - began_s, 2)
        done.append(
            {
                "name": name,
                "outcome": dict(target.outcome),
                "unserved": [asdict(each) for each in target.unserved],
                "error": error,
                "seconds": seconds,
            }
        )
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--bootstrap-controller", required=True)
    parser.add_argument("--fault-socket", type=Path, action="append", default=[])
    parser.add_argument("--command-config", type=Path)
    parser.add_argument("--controller-config", type=Path)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    os.nice(NICENESS)
    target = Target(
        brokers=addresses(chosen.bootstrap_server),
        controllers=addresses(chosen.bootstrap_controller),
        fault_sockets=chosen.fault_socket,
        quick=chosen.quick,
    )
    Files(chosen.command_config, chosen.controller_config).use(target.controllers)
    try:
        reports = asyncio.run(run(chosen.names, target))
    except (OSError, TimeoutError, NotServed) as error:
        what = f"the cluster does not let the attack begin: {error!r}"
        begun = {"name": chosen.names[0], "outcome": {}, "unserved": [], "seconds": 0.0}
        reports = [{**begun, "error": what}]
    for each in reports:
        sys.stdout.write(json.dumps(each) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

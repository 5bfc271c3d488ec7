"""`python -m tests.attacks`: attack a cluster, and tell whether it and its clients withstand it.

Without --bootstrap-server the attacks run against a cluster of their own. `soak` is another
command: see `python -m tests.attacks soak --help`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.attacks.bystanders import RULE
from tests.attacks.registry import WITHOUT_ATTACK, attacks
from tests.attacks.run import Site, Verdict, as_json, run_fresh, run_on
from tests.attacks.security import Files
from tests.attacks.soak import main as soak


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("names", nargs="*", help="attacks to run; all without names")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    parser.add_argument("--quick", action="store_true", help="small, and without the bound on p99")
    parser.add_argument("--bootstrap-server", help="HOST:PORT,... of a running cluster's brokers")
    parser.add_argument("--bootstrap-controller", help="HOST:PORT,... of its controllers")
    parser.add_argument(
        "--fault-socket", type=Path, action="append", default=[], help="of a node with --faults"
    )
    parser.add_argument("--command-config", type=Path, help="client settings for the brokers")
    parser.add_argument(
        "--controller-config", type=Path, help="the same for the controllers, if they differ"
    )
    parser.add_argument("--secure", action="store_true", help="secure the cluster of its own")
    parser.add_argument("--json", type=Path, help="file for the verdicts")
    parser.add_argument("--keep", action="store_true", help="keep the cluster's directory")
    chosen = parser.parse_args()
    unknown = set(chosen.names) - attacks().keys()
    if unknown:
        parser.error(f"there is no attack {', '.join(sorted(unknown))}; see --list")
    if bool(chosen.bootstrap_server) != bool(chosen.bootstrap_controller):
        parser.error("give both --bootstrap-server and --bootstrap-controller, or neither")
    return chosen


def run(chosen: argparse.Namespace, root: Path) -> list[Verdict]:
    names = chosen.names or list(attacks())
    if chosen.bootstrap_server:
        site = Site(
            chosen.bootstrap_server,
            chosen.bootstrap_controller,
            {},
            root,
            tuple(chosen.fault_socket),
            Files(chosen.command_config, chosen.controller_config),
        )
        return run_on(site, names, say, quick=chosen.quick)
    options = ("--secure",) if chosen.secure else ()
    return run_fresh(root, names, say, *options, quick=chosen.quick)


def main() -> int:
    if sys.argv[1:2] == ["soak"]:
        return soak(sys.argv[2:])
    chosen = parsed()
    if chosen.list:
        for each in attacks().values():
            say(f"{each.item}  {each.name:36}  {each.about}")
        for item, reason in WITHOUT_ATTACK.items():
            say(f"{item}  {'(no attack)':36}  {reason}")
        return 0
    root = Path(tempfile.mkdtemp(prefix="quorate-attacks-"))
    try:
        verdicts = run(chosen, root)
    finally:
        if chosen.keep:
            say(f"kept: {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)
    if chosen.json:
        chosen.json.write_text(as_json(verdicts))
    if not chosen.quick:
        say(f"rule: {RULE}")
    failed = [each.name for each in verdicts if each.wrong]
    say(f"{len(verdicts) - len(failed)} of {len(verdicts)} attacks withstood")
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

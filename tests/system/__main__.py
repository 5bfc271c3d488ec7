"""`python -m tests.system`: runs by hand, one seed after the other; what failed is kept."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.system.faulty_nodes import FaultyCluster
from tests.system.nodes import HurtCluster
from tests.system.run import run, say_on_stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--runs", type=int, default=1, help="of this seed and those after it")
    parser.add_argument("--disks-and-links", action="store_true", help="hurt these, too")
    parser.add_argument("--in-flight", type=int, default=1, help="requests of each writer")
    parser.add_argument("--quiet", action="store_true", help="only the reports")
    chosen = parser.parse_args()
    say = (lambda _: None) if chosen.quiet else say_on_stdout
    failed = 0
    for seed in range(chosen.seed, chosen.seed + chosen.runs):
        root = Path(tempfile.mkdtemp(prefix=f"quorate-system-{seed}-"))
        kind = FaultyCluster if chosen.disks_and_links else HurtCluster
        cluster = kind(root / "cluster")
        try:
            report = run(seed, chosen.seconds, say, cluster, chosen.in_flight)
        except Exception:
            failed += 1
            traceback.print_exc()
            say_on_stdout(f"seed {seed} FAILED; its nodes' directories: {root}")
            cluster.stop()
            continue
        finally:
            cluster.stop()
        say_on_stdout(report)
        shutil.rmtree(root)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

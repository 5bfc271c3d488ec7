"""The command of `make detect`: the number of random seeds until a removed safeguard is found.

`python -m tests.sim.detect [SAFEGUARD...]` removes one safeguard of the whole cluster after another
and runs the seeds from 1 on until one fails. A safeguard that only scripts of pure cores, disks or
tools exercise is left out (NOT_SIMULATED). All seeds are swarms (`swarm.py`), because these find
more in the same time. SEEDS is the largest number of seeds. CPU_S bounds the CPU seconds of one
safeguard. With RESUME=FILE, the results are also kept in FILE. A later command with the same file
continues where the earlier one ended, so CPU_S is the bound of all of them together.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random

from tests.sim.ablations import compaction, directories, lost_quorum, quorum, quotas
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.table import ABLATIONS
from tests.sim.faults.lost_quorum import is_lost
from tests.sim.seeds import Plan, SeedFailed, is_damaged, run_seed
from tests.sim.world.loop import Deadlock

SEEDS = 2000
CPU_S = 600.0
FAULTS_S = 12.0
LARGEST_MESSAGE = 110
WITHOUT_BROKERS = (
    "answer-when-committed",
    "vote-fsync",
    "log-fsync",
    "torn-tail",
    "durable-truncation",
    "lowered-marker",
    "flushed-marker",
    "write-again",
    "snapshot-fsync",
    "snapshot-before-cut",
    "plausible-epoch",
    "observer-led",
)
"""Safeguards outside of the tables of the quorum that controllers alone exercise. A seed without
brokers takes a tenth of the time."""
UNTRUSTED = ("batch-payload", "plausible-epoch", "observer-led")
"""Safeguards for which a hostile client and a faulty node take part."""
DAMAGED = (
    "checked-reads",
    "distrusted-log",
    "keys-of-an-unreadable-batch",
    "flushed-marker",
    "cleaner-checkpoint",
)
"""Safeguards against disks that lie and rot."""
CRASHED = ("lowered-recovery-point",)
"""Safeguards of two disk calls that belong together, outside of the tables of the cleaner and of
log directories. Processes crash at drawn disk calls in each seed."""
NOT_SIMULATED = {
    "snapshot-verification": "the replacement reads snapshots in memory, which only the core has",
    "permissions-of-a-session": "no workload denies the reader of a fetch session",
    "node-identity": "the nodes of seeds have no identities",
    "ids-of-the-sender": "the nodes of seeds have no identities",
    "flush-messages": "no workload sets flush.messages",
    "trimmed-segment": "no workload sets preallocate",
    "last-batch-of-a-producer": "no idempotent producer writes to the compacted topic",
    "quota-longest-pause": "the client with quotas has one request in flight, so no times overlap",
    "features-of-controllers": "all nodes of a seed are of one version",
    "feature-dependencies": "all nodes of a seed are of one version",
    "features-of-brokers": "all nodes of a seed are of one version",
    "request-boundary": "no handler has a bug; the scene patches one in",
    "rule-boundary": "no rule has a bug; the scene patches one in",
    "signature-of-tokens": "no client of a seed shows tokens",
    "audience-of-tokens": "no client of a seed shows tokens",
    "end-of-tokens": "no client of a seed shows tokens",
}
"""Safeguards that no seed exercises, with the reason."""
ALWAYS = {compaction: ("compacted",), directories: ("moves",), quotas: ("quotas",)}
"""The workload that each seed has for the safeguards of a table."""
ALWAYS_FOR = {"elr-leaders-min-isr": ("min isr",), "elr-cleared": ("min isr",)}
"""The workload that each seed has for one safeguard."""
NEEDS: dict[str, Callable[[int, Plan], bool]] = {
    "greatest-end": lambda seed, plan: is_lost(Random(f"{seed}/lost quorum")),
    "cleaner-checkpoint": is_damaged,
    "distrusted-log": is_damaged,
    "flushed-marker": is_damaged,
}
"""The draws without which a seed cannot exercise a safeguard. Seeds with other draws are passed
over, and count as tried."""
SAVE_EVERY_S = 20.0
"""The CPU seconds between two saves of a search that is still running."""
HEAD = "| `SAFEGUARD=` | seeds until found | CPU s | message of the failure |"


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
    return [each for each in ABLATIONS.values() if each.name not in NOT_SIMULATED]


def plan_of(ablation: Ablation) -> Plan:
    """Return a plan with brokers only where they matter, and with the workload that matters."""
    of_quorum = (*quorum.ABLATIONS, *lost_quorum.ABLATIONS)
    always = [works for table, works in ALWAYS.items() if ablation in table.ABLATIONS]
    of_the_disk = (
        any(ablation in table.ABLATIONS for table in (compaction, directories))
        or ablation.name in CRASHED
    )
    return Plan(
        controllers_only=ablation in of_quorum or ablation.name in WITHOUT_BROKERS,
        adversary=ablation.name in UNTRUSTED,
        faults_s=FAULTS_S,
        swarm_share=1.0,
        always=ALWAYS_FOR.get(ablation.name) or (always[0] if always else ()),
        damaged=ablation.name in DAMAGED,
        crashes=of_the_disk,
        threads=any(ablation in table.ABLATIONS for table in (compaction, directories)),
    )


def detect(
    ablation: Ablation,
    seeds: int = SEEDS,
    cpu_s: float = CPU_S,
    before: Detection | None = None,
    save: Callable[[Detection], None] = lambda found: None,
) -> Detection:
    """Run seeds without the safeguard, until one fails or a bound is reached.

    A seed counts only if it passes with the safeguard. The search continues after `before`, or
    begins with seed 1. `save` is called with the state of the search from time to time."""
    name, plan = ablation.name, plan_of(ablation)
    needs = NEEDS.get(name, always)
    found = before or Detection(name, None, 0, 0.0, "")
    began_s = saved_s = time.process_time() - found.cpu_s
    while found.seed is None and found.tried < seeds and found.cpu_s < cpu_s:
        seed = found.tried + 1
        if not needs(seed, plan):
            found = replace(found, tried=seed)
            continue
        with ablation.in_force():
            said = failure(seed, plan)
        detected = bool(said) and not failure(seed, plan)
        now_s = time.process_time()
        found = Detection(
            name, seed if detected else None, seed, now_s - began_s, said if detected else ""
        )
        if now_s > saved_s + SAVE_EVERY_S:
            saved_s = now_s
            save(found)
    save(found)
    return found


def always(seed: int, plan: Plan) -> bool:
    """Return True: each seed may exercise the safeguard."""
    return True


def failure(seed: int, plan: Plan) -> str:
    """Return the message of a seed that fails, or ""."""
    try:
        run_seed(seed, plan)
    except SeedFailed as failed:
        return innermost(str(failed.error) or repr(failed.error))
    except Deadlock as deadlock:
        return str(deadlock)
    return ""


def innermost(said: str) -> str:
    """Return the message of the check, without the error of the node in which it was raised."""
    return said.rpartition("Violation(")[2].lstrip("\\'\"").rstrip("\\'\")")


class Results:
    """The results of earlier commands, in a file with one JSON object per safeguard."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._found: dict[str, Detection] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                found = Detection(**json.loads(line))
                self._found[found.name] = found

    def of(self, ablation: Ablation) -> Detection | None:
        """Return the earlier result of a safeguard, or None."""
        return self._found.get(ablation.name)

    def save(self, found: Detection) -> None:
        """Keep a result. The file is replaced as a whole."""
        self._found[found.name] = found
        if self._path is not None:
            lines = [json.dumps(asdict(each)) for each in self._found.values()]
            written = self._path.with_suffix(".new")
            written.write_text("\n".join([*lines, ""]))
            written.replace(self._path)


def main(names: list[str]) -> int:
    unknown = [each for each in names if each not in ABLATIONS]
    if unknown:
        sys.stderr.write(f"no safeguard {unknown[0]!r}; `make break` lists them\n")
        return 2
    chosen = [ABLATIONS[each] for each in names] or relevant()
    seeds = int(os.environ.get("SEEDS", str(SEEDS)))
    cpu_s = float(os.environ.get("CPU_S", str(CPU_S)))
    resume = os.environ.get("RESUME")
    results = Results(Path(resume) if resume else None)
    sys.stdout.write(f"{HEAD}\n|---|---|---|---|\n")
    found = 0
    for ablation in chosen:
        detection = detect(ablation, seeds, cpu_s, results.of(ablation), results.save)
        found += detection.seed is not None
        sys.stdout.write(f"{detection.row()}\n")
        sys.stdout.flush()
    sys.stdout.write(f"\n{found} of {len(chosen)} found\n")
    return 0


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(main(sys.argv[1:]))

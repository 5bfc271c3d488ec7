"""Attacks one after the other, with well-behaved clients beside them, and the verdict on each."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from quorate.cli.nodes.secured_up import client_file_of, controllers_file_of, is_secured
from tests.attacks.attacker import addresses
from tests.attacks.bystanders import MAX_LATENCY_RATIO, RULE, Bystanders, Window, bystanders
from tests.attacks.nodes import (
    MAX_GROWTH_BYTES,
    Standing,
    dead,
    memories,
    settled_growth,
    standing,
)
from tests.attacks.registry import ATTACK_TIMEOUT_S, attacks
from tests.attacks.security import Files
from tests.attacks.target import NotServed, Target, reached
from tests.clients.cluster import ProcessCluster

QUIET_S, QUICK_QUIET_S = 12.0, 3.0
LEAST_S = 8.0
"""A full attack is repeated until it has lasted this long, so that its p99 means something."""
LEAST_SHARE, QUICK_LEAST_SHARE = 0.8, 0.25
"""The part of the due records that the bystanders have to handle, before and during an attack."""
MAX_REPEATS = 20
MAX_MEASURED = 3
AFTER_S = 0.5
GRACE_S = 30.0
MB = 1 << 20

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster that can be attacked. `pids` is empty if its processes are not ours to watch."""

    bootstrap: str
    controllers: str
    pids: dict[int, int]
    directory: Path
    fault_sockets: tuple[Path, ...] = ()
    files: Files = Files()

    @classmethod
    def of(cls, cluster: ProcessCluster, directory: Path) -> Site:
        entry = cluster.entry()
        controllers = ",".join(f"{each['host']}:{each['port']}" for each in entry["controllers"])
        pids = {node["id"]: node["pid"] for node in cluster.nodes() if node["pid"] is not None}
        found = (cluster.directory.faults_socket(node_id) for node_id in pids)
        sockets = tuple(each for each in found if each.exists())
        root = cluster.directory.root
        secured = is_secured(root)
        files = Files(client_file_of(root), controllers_file_of(root)) if secured else Files()
        return cls(entry["bootstrap"], controllers, pids, directory, sockets, files)

    def target(self) -> Target:
        """Return the cluster as this process asks it."""
        controllers = addresses(self.controllers)
        self.files.use(controllers)
        return Target(brokers=addresses(self.bootstrap), controllers=controllers)


@dataclass(slots=True)
class Verdict:
    name: str
    item: int
    seconds: float
    outcome: dict[str, int]
    quiet: Window
    beside: Window
    growth_mb: dict[int, int]
    wrong: list[str] = field(default_factory=list)
    """Why the attack counts as successful; empty if the cluster withstood it."""
    only_slow: bool = False
    """True if the latency is the only thing wrong. It is measured again, because other work on the
    machine has the same effect."""

    @property
    def ratio(self) -> float:
        return self.beside.p99_ratio(self.quiet)

    def line(self) -> str:
        ok = "FAILED" if self.wrong else "ok"
        happened = " ".join(f"{name} {count}" for name, count in sorted(self.outcome.items()))
        return (
            f"{ok:6} {self.item} {self.name:36} {self.seconds:6.1f} s  p99 ms produce "
            f"{self.quiet.produce_p99_ms:.1f} -> {self.beside.produce_p99_ms:.1f}, consume "
            f"{self.quiet.consume_p99_ms:.1f} -> {self.beside.consume_p99_ms:.1f} "
            f"({self.ratio:.1f}x), memory +{max(self.growth_mb.values(), default=0)} MB, {happened}"
            + "".join(f"\n         {each}" for each in self.wrong)
        )


def attacker(names: Sequence[str], site: Site, *, quick: bool) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.attacks.attacker", *names]
    command += ["--bootstrap-server", site.bootstrap, "--bootstrap-controller", site.controllers]
    command += site.files.arguments()
    for each in site.fault_sockets:
        command += ["--fault-socket", str(each)]
    return subprocess.Popen(command + ["--quick"] * quick, stdout=subprocess.PIPE)


def struck(names: Sequence[str], site: Site, *, quick: bool) -> list[dict[str, Any]]:
    """Run attacks in a process of their own; return what each one reported."""
    process = attacker(names, site, quick=quick)
    try:
        out, _ = process.communicate(timeout=(ATTACK_TIMEOUT_S + GRACE_S) * len(names))
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
    return [json.loads(line) for line in out.decode().splitlines()]


def now_standing(site: Site, topic: str) -> Standing | None:
    try:
        return asyncio.run(standing(site.target(), topic))
    except (OSError, TimeoutError, NotServed):
        return None


def judged(name: str, site: Site, clients: Bystanders, *, quick: bool) -> Verdict:
    """Run one attack; compare what clients and nodes did with the quiet seconds before it."""
    quiet_s = QUICK_QUIET_S if quick else QUIET_S
    began_s = time.monotonic()
    time.sleep(quiet_s)
    quiet = clients.window(began_s, time.monotonic())
    before, before_bytes = now_standing(site, clients.topic), memories(site.pids)
    reports: list[dict[str, Any]] = []
    began_s = time.monotonic()
    for _ in range(1 if quick else MAX_REPEATS):
        reports += struck([name], site, quick=quick)
        if time.monotonic() - began_s > LEAST_S or dead(site.pids):
            break
    time.sleep(AFTER_S)
    ended_s = time.monotonic()
    outcome: dict[str, int] = {}
    for report in reports:
        for what, count in report["outcome"].items():
            outcome[what] = outcome.get(what, 0) + count
    verdict = Verdict(
        name=name,
        item=attacks()[name].item,
        seconds=ended_s - began_s,
        outcome=outcome,
        quiet=quiet,
        beside=clients.window(began_s, ended_s),
        growth_mb={n: size // MB for n, size in settled_growth(site.pids, before_bytes).items()},
    )
    after = now_standing(site, clients.topic)
    verdict.wrong += [f"node {node_id} is dead" for node_id in dead(site.pids)]
    if not reports:
        verdict.wrong.append("the attacker did not get to report: is the cluster there?")
    verdict.wrong += [f"the attack failed: {each['error']}" for each in reports if each["error"]]
    if not reached(outcome):
        verdict.wrong.append(f"the attack reached no node: {outcome}")
    least_share = QUICK_LEAST_SHARE if quick else LEAST_SHARE
    verdict.wrong += [f"before the attack {each}" for each in quiet.silent(least_share)]
    verdict.wrong += verdict.beside.silent(least_share)
    if before is None or after != before:
        verdict.wrong.append(f"leadership changed: {before} -> {after}")
    verdict.wrong += list(verdict.beside.errors[:5])
    verdict.wrong += [
        f"node {node_id} keeps {growth} MB"
        for node_id, growth in verdict.growth_mb.items()
        if growth > MAX_GROWTH_BYTES // MB
    ]
    if not quick and verdict.ratio > MAX_LATENCY_RATIO:
        verdict.only_slow = not verdict.wrong
        verdict.wrong.append(f"p99 is {verdict.ratio:.1f} times its quiet value. Rule: {RULE}")
    return verdict


@contextmanager
def fresh(root: Path, *options: str) -> Iterator[Site]:
    """Start a cluster of three controllers and three brokers; end it afterwards. `options` are
    those of `quorate up`."""
    cluster = ProcessCluster(root / "cluster")
    try:
        cluster.start(*options)
        yield Site.of(cluster, root)
    finally:
        cluster.stop()


def run_on(site: Site, names: Sequence[str], say: Say, *, quick: bool) -> list[Verdict]:
    """Run attacks until one kills a node; return a verdict on each that ran."""
    verdicts: list[Verdict] = []
    topic = f"bystanders-{time.time_ns()}"
    with bystanders(site.bootstrap, site.directory, topic, site.files.librdkafka()) as clients:
        for name in names:
            verdict = judged(name, site, clients, quick=quick)
            for _ in range(MAX_MEASURED - 1):
                if verdict.only_slow:
                    say(f"again: {verdict.line()}")
                    verdict = judged(name, site, clients, quick=quick)
            verdicts.append(verdict)
            say(verdicts[-1].line())
            if dead(site.pids):
                return verdicts
        if verdicts:
            verdicts[-1].wrong += [each for each in clients.stop() if each not in seen(verdicts)]
    return verdicts


def seen(verdicts: Sequence[Verdict]) -> set[str]:
    return {text.partition(": ")[2] for each in verdicts for text in each.wrong}


def run_fresh(
    root: Path, names: Sequence[str], say: Say, *options: str, quick: bool
) -> list[Verdict]:
    """Run attacks; after one that kills a node, the next one gets a cluster of its own.

    `options` are those of `quorate up`. Nodes run with `--faults` only for the attacks that need
    it, because faults wrap each link."""
    verdicts: list[Verdict] = []
    for faults in (False, True):
        left = [each for each in names if attacks()[each].needs_faults is faults]
        while left:
            place = root / str(len(verdicts))
            place.mkdir(parents=True)
            with fresh(place, *options, *["--faults"] * faults) as site:
                done = run_on(site, left, say, quick=quick)
            verdicts += done
            left = left[len(done) :]
    return verdicts


def as_json(verdicts: Sequence[Verdict]) -> str:
    rows = [{**asdict(each), "ratio": round(each.ratio, 2)} for each in verdicts]
    return json.dumps(rows, indent=1)

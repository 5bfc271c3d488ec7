"""`python -m tests.attacks soak`: attacks, load and kills on real processes for as long as wanted.

Producers, a reader, a group's member and an administrator work all the time. First the attacks run
alone (the warm-up), then together with kill -9, stops and pauses of nodes. In between and at the
end is a calm, in which each node's memory level is measured under the same load. At the end
everything that was acknowledged is compared with what the cluster has.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from quorate.broker.replication.fetches.fetch_session_cache import EVICTION_MS
from tests.attacks.newcomers import Disturbances, Unserved, told
from tests.attacks.registry import ATTACK_TIMEOUT_S, attacks
from tests.attacks.run import Site, attacker
from tests.attacks.soak_nodes import Level, Memory, SoakCluster, sampled
from tests.clients.librdkafka import admin, create_topic
from tests.system import disks
from tests.system.admin_load import Admin
from tests.system.faults import ENDS, Action
from tests.system.load import ROUND_S, Client, Reader, Worker, Writer, working
from tests.system.run import GROUP, OPTIONS, TOPICS, compare_commits, read_to_end

PARTITIONS, REPLICAS = 3, 3
WRITERS = 2
PACE_S = 0.04
"""Each writer sends one record to each of six partitions, then rests so long."""
WARM_SHARE, MAX_WARM_SHARE, CALM_SHARE = 0.17, 0.45, 0.06
WARM_ROUNDS = 2
"""The warm-up is so many rounds of all attacks, if they last between the first two shares of the
run. In each round every other attack is a quick one, so two rounds have every attack in full."""
MAX_CALM_S, MIN_CALM_S = EVICTION_MS / 1000 * 1.7, 8.0
"""In an hour, a calm lasts until a broker has ended the fetch sessions that attackers left behind
(after EVICTION_MS and at most a quarter of it), and long enough to measure the level then."""
SETTLED_SHARE = 0.2
"""Of a calm, the part in which the level is measured: its end."""
PROGRESS_S = 30.0
HEAL_S = 180.0
CATCH_UP_S = 180.0
POLL_S = 0.2
LONG_RUN_S = 600.0
INTERVALS_S = {True: (12.0, 40.0), False: (4.0, 9.0)}
"""Between two faults, in a long run and in a short one."""
DURATIONS_S = ((0.0, 0.5), (1.0, 3.0), (5.0, 12.0))
HURTS, WEIGHTS = (Action.KILL, Action.PAUSE, Action.STOP), (6, 3, 2)
MAX_DEATHS = 20
AFTER_REFUSAL_S = 1.0
LEVELS_FROM_S = 900.0
"""In a shorter run, the warm-up is no round of all attacks: levels are reported, not bounded."""

Say = Callable[[str], None]
Window = tuple[float, float]
"""Two moments of the monotonic clock."""


class Aborted(Exception):
    """The run was asked to end: its processes are ended, too."""


@dataclass(slots=True)
class Result:
    seconds: float = 0.0
    acknowledged: int = 0
    read: int = 0
    admin_done: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    attacks: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    attackers_failed: Counter[str] = field(default_factory=Counter)
    levels: list[Level] = field(default_factory=list)
    excused: int = 0
    """Newcomers that were not served by a node that the run itself had stopped or paused."""
    wrong: list[str] = field(default_factory=list)


class PacedWriter(Writer):
    def work(self) -> None:
        """Send at a steady pace; at the end, wait until everything is acknowledged."""
        next_s = time.monotonic()
        while not self.stopping.is_set():
            for place in self._places:
                self._send(place)
            next_s = max(next_s + PACE_S, time.monotonic())
            while time.monotonic() < next_s or len(self._producer) > 3000:
                self._producer.poll(ROUND_S)
                if self.stopping.is_set():
                    break
        left = self._producer.flush(CATCH_UP_S)
        assert left == 0, f"{self.name}: {left} records are not acknowledged"


class Attackers(threading.Thread):
    """One attack after the other, each in a process of its own, until told to pause or stop."""

    def __init__(self, site: Site, result: Result, seed: int, disturbances: Disturbances) -> None:
        super().__init__(daemon=True)
        self._disturbances = disturbances
        self.rounds = 0
        self.current = ""
        self._site = site
        self._result = result
        self._random = random.Random(seed)
        self._resumed = threading.Event()
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        while not self._stopping.is_set():
            names = list(attacks())
            self._random.shuffle(names)
            for name in names:
                self._idle.set()
                self._resumed.wait()
                self._idle.clear()
                if self._stopping.is_set():
                    return
                if not self._resumed.is_set():
                    continue  # `pause` came in between, and may have seen that none runs
                self._strike(name, quick=(self.rounds + len(name)) % 2 == 1)
            self.rounds += 1

    def resume(self) -> None:
        self._resumed.set()

    def pause(self) -> None:
        """Return when no attack runs; the one that does is killed if it takes too long."""
        self._resumed.clear()
        if not self._idle.wait(ATTACK_TIMEOUT_S / 20):
            self._kill()
            self._idle.wait(ATTACK_TIMEOUT_S / 20)

    def stop(self) -> None:
        self._stopping.set()
        self._resumed.set()
        self._kill()
        self.join(10)

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _strike(self, name: str, *, quick: bool) -> None:
        self.current = name
        self._process = attacker([name], self._site, quick=quick)
        try:
            out, _ = self._process.communicate(timeout=ATTACK_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            out, _ = self._process.communicate()
        result = self._result
        result.attacks[name] += 1
        reports = [json.loads(line) for line in out.decode().splitlines()]
        if not reports:
            result.outcomes["not reported"] += 1
        for report in reports:
            result.outcomes.update(report["outcome"])
            self._require_served(name, [Unserved(**each) for each in report["unserved"]])
            if report["error"]:
                self._stopping.wait(AFTER_REFUSAL_S)
                result.attackers_failed[f"{name}: {report['error'][:120]}"] += 1
        self.current = ""

    def _require_served(self, name: str, unserved: Sequence[Unserved]) -> None:
        starved = self._disturbances.starved(unserved)
        self._result.excused += len(unserved) - len(starved)
        if starved:
            self._result.wrong.append(f"{name}: {told(starved)}")


@dataclass(slots=True)
class Soak:
    cluster: SoakCluster
    seconds: float
    seed: int
    say: Say
    result: Result = field(default_factory=Result)
    began_s: float = field(default_factory=time.monotonic)
    said_s: float = 0.0

    @property
    def calm_s(self) -> float:
        return min(MAX_CALM_S, max(MIN_CALM_S, self.seconds * CALM_SHARE))

    def run(self) -> Result:
        cluster, result = self.cluster, self.result
        cluster.start(*(f"--override={key}={value}" for key, value in OPTIONS.items()))
        bootstrap = cluster.bootstrap
        for topic in TOPICS:
            create_topic(admin(bootstrap), topic, PARTITIONS, REPLICAS)
        places = [(topic, index) for topic in TOPICS for index in range(PARTITIONS)]
        writers = [PacedWriter(f"writer{number}", bootstrap, places) for number in range(WRITERS)]
        reader = Reader("reader", bootstrap, places)
        worker = Worker("worker", bootstrap, TOPICS[0], GROUP)
        operator = Admin("operator", bootstrap, self.seed)
        clients: list[Client] = [*writers, reader, worker, operator]
        with ExitStack() as stack:
            memory = stack.enter_context(sampled(cluster))
            site = Site.of(cluster, cluster.directory.root)
            hostile = stack.enter_context(attacking(site, result, self.seed, cluster.disturbances))
            with working([reader, worker]):
                with working([*writers, operator]):
                    self._phases(hostile, memory, clients)
                self.say("the writers have ended: everything is acknowledged")
                self._heal()
                result.acknowledged = sum(writer.history.acknowledged for writer in writers)
                self._catch_up(reader, writers)
            result.read = sum(map(len, reader.read.values()))
            result.admin_done = operator.done
            self._verify(bootstrap, writers, reader, worker, operator)
            end = cluster.metadata_end()
        cluster.stop()
        self._attempt("the disks", lambda: disks.check(cluster, end))
        result.wrong += [f"a log says: {line}" for line in cluster.broken_lines()]
        result.seconds = time.monotonic() - self.began_s
        return result

    def _phases(self, hostile: Attackers, memory: Memory, clients: Sequence[Client]) -> None:
        warm_s = time.monotonic()
        hostile.resume()
        self._pass(self.seconds * WARM_SHARE, hostile, memory, clients)
        last_s = warm_s + self.seconds * MAX_WARM_SHARE
        while hostile.rounds < WARM_ROUNDS and time.monotonic() < last_s:
            self._pass(POLL_S, hostile, memory, clients)
        warm_s = time.monotonic() - warm_s
        main_s = max(10.0, self.seconds - warm_s - 2 * self.calm_s)
        start = self._calm(hostile, memory, clients)
        hostile.resume()
        self._faults(main_s, hostile, memory, clients)
        self._heal()
        end = self._calm(hostile, memory, clients)
        entry = self.cluster.entry()
        for kind in (entry["controllers"], entry["brokers"]):
            ids = [node["id"] for node in kind]
            self._compare_levels(ids, memory, start, end)

    def _compare_levels(
        self, ids: Sequence[int], memory: Memory, start: Window, end: Window
    ) -> None:
        """Compare the memory levels of the nodes of one kind."""
        starts_mb = {node_id: memory.level_mb(node_id, *start) for node_id in ids}
        for node_id in ids:
            level = Level(
                node_id=node_id,
                start_mb=starts_mb[node_id],
                kind_start_mb=max(starts_mb.values()),
                end_mb=memory.level_mb(node_id, *end),
                peak_mb=memory.peak_mb(node_id),
                starts=self.cluster.starts.get(node_id, 0),
                age_s=memory.age_s(node_id),
            )
            self.result.levels.append(level)
            if level.grew and self.seconds >= LEVELS_FROM_S:
                self.result.wrong.append(f"memory: {level.line()}")

    def _calm(self, hostile: Attackers, memory: Memory, clients: Sequence[Client]) -> Window:
        """Let only the load run; return the moments between which the level counts."""
        hostile.pause()
        self._pass(self.calm_s, hostile, memory, clients)
        now_s = time.monotonic()
        return now_s - self.calm_s * SETTLED_SHARE, now_s

    def _pass(
        self, seconds: float, hostile: Attackers, memory: Memory, clients: Sequence[Client]
    ) -> None:
        end_s = time.monotonic() + seconds
        while (now_s := time.monotonic()) < end_s:
            time.sleep(min(POLL_S, end_s - now_s))
            self._look(hostile, clients)
            if now_s > self.said_s + PROGRESS_S:
                self.said_s = now_s
                self._progress(hostile, memory, clients)

    def _look(self, hostile: Attackers, clients: Sequence[Client]) -> None:
        for node_id in self.cluster.ended_by_themselves():
            what = (
                f"node {node_id} ended by itself at {time.monotonic() - self.began_s:.0f} s, "
                f"during {hostile.current or 'no attack'}: {self.cluster.last_lines(node_id)}"
            )
            self.say(f"WRONG {what}")
            self.result.wrong.append(what)
            assert len(self.result.wrong) < MAX_DEATHS, "too many nodes ended by themselves"
            self.cluster.revive(node_id)
        self.result.wrong += self.cluster.disturbances.look()
        for client in clients:
            client.check()

    def _progress(self, hostile: Attackers, memory: Memory, clients: Sequence[Client]) -> None:
        acknowledged = sum(
            each.history.acknowledged for each in clients if isinstance(each, PacedWriter)
        )
        self.say(
            f"{time.monotonic() - self.began_s:6.0f} s  {acknowledged:,} acknowledged, "
            f"{sum(self.result.faults.values())} faults, {sum(self.result.attacks.values())} "
            f"attacks ({hostile.current or 'none now'}), MB {memory.latest_mb()}, "
            f"{len(self.result.wrong)} wrong"
        )

    def _faults(
        self, seconds: float, hostile: Attackers, memory: Memory, clients: Sequence[Client]
    ) -> None:
        chance = random.Random(self.seed)
        entry = self.cluster.entry()
        controllers = [node["id"] for node in entry["controllers"]]
        brokers = [node["id"] for node in entry["brokers"]]
        spared = {controllers[0], brokers[0]}  # most attacks meet these: their memory tells most
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            self._pass(
                chance.uniform(*INTERVALS_S[self.seconds > LONG_RUN_S]), hostile, memory, clients
            )
            group = chance.choice((controllers, brokers))
            victims = [chance.choice(group)]
            if chance.random() < 0.15:
                victims.append(chance.choice(brokers if group is controllers else controllers))
            action = chance.choices(HURTS, WEIGHTS)[0]
            if not spared.isdisjoint(victims):
                action = Action.PAUSE
            lasts_s = chance.uniform(*chance.choice(DURATIONS_S))
            self._look(hostile, clients)
            for node_id in victims:
                self.cluster.act(action, node_id)
                self.result.faults[action.value] += 1
            self._pass(lasts_s, hostile, memory, clients)
            for node_id in victims:
                self.cluster.act(ENDS[action], node_id)

    # -- afterwards ------------------------------------------------------------------------------

    def _attempt(self, what: str, check: Callable[[], object]) -> None:
        try:
            check()
        except Exception as error:
            self.result.wrong.append(f"{what}: {type(error).__name__}: {str(error)[:500]}")

    def _until(self, condition: Callable[[], bool], what: str, timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            with suppress(subprocess.TimeoutExpired):  # of a command that asks the cluster
                if condition():
                    return
            time.sleep(POLL_S)
        self.result.wrong.append(f"not within {timeout_s:.0f} s: {what}")

    def _heal(self) -> None:
        self._until(
            lambda: self.cluster.is_whole() and bool(self.cluster.metadata_end()),
            "all replicas are in sync",
            HEAL_S,
        )

    def _catch_up(self, reader: Reader, writers: Sequence[Writer]) -> None:
        def caught_up() -> bool:
            return all(
                len(values) >= sum(writer.history.of(writer.name, place).sent for writer in writers)
                for place, values in reader.read.items()
            )

        self._until(caught_up, "the reader reads every record", CATCH_UP_S)

    def _verify(
        self,
        bootstrap: str,
        writers: Sequence[Writer],
        reader: Reader,
        worker: Worker,
        operator: Admin,
    ) -> None:
        for place in reader.read:
            self._attempt(f"{place}", partial(same, bootstrap, place, writers, reader, worker))
        self._attempt("the group's commits", lambda: compare_commits(bootstrap, worker))
        self._attempt("the administrator's topics", operator.compare)


def same(
    bootstrap: str, place: Any, writers: Sequence[Writer], reader: Reader, worker: Worker
) -> None:
    """Compare one partition with what its writers, its reader and its group were told."""
    values = read_to_end(bootstrap, [place])[place]
    for writer in writers:
        promises = writer.history.of(writer.name, place)
        assert len(promises.acknowledged) == promises.sent, f"{writer.name}: not all acknowledged"
        writer.history.check(place, enumerate(values))
    sent = sum(writer.history.of(writer.name, place).sent for writer in writers)
    assert len(values) == sent, f"{len(values)} records, {sent} were sent"
    assert reader.read[place] == values[: len(reader.read[place])], "the reader read others"
    for offset, value in worker.read.get(place, {}).items():
        assert values[offset] == value, f"offset {offset} was {value!r} to the group"


@contextmanager
def attacking(
    site: Site, result: Result, seed: int, disturbances: Disturbances
) -> Iterator[Attackers]:
    hostile = Attackers(site, result, seed, disturbances)
    hostile.start()
    try:
        yield hostile
    finally:
        hostile.stop()


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def as_json(result: Result) -> str:
    levels = [{**asdict(each), "change": round(each.change, 3)} for each in result.levels]
    shown = {each.name: getattr(result, each.name) for each in fields(result)}
    return json.dumps({**shown, "levels": levels}, indent=1)


def report(result: Result) -> None:
    for level in result.levels:
        say(level.line())
    say(f"attacks: {sum(result.attacks.values())}, {dict(result.outcomes)}")
    for what, count in result.attackers_failed.most_common(20):
        say(f"  attacker failed {count} times: {what}")
    say(f"faults: {dict(result.faults)}, {result.excused} newcomers met a node during one")
    say(
        f"{result.acknowledged:,} records acknowledged, {result.read:,} read along, "
        f"{result.admin_done} changes by the administrator, {result.seconds:.0f} s"
    )
    for each in result.wrong:
        say(f"WRONG {each}")
    say("FAILED" if result.wrong else "ok: nothing lost, twice or out of order; no node ended")


def abort(number: int, _: object) -> None:
    raise Aborted(f"signal {number}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", type=Path, help="file for the result")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, abort)
    attacks()
    root = Path(tempfile.mkdtemp(prefix="quorate-soak-"))
    say(f"seed {chosen.seed}, directories in {root}")
    cluster = SoakCluster(root / "cluster")
    soak = Soak(cluster, chosen.minutes * 60, chosen.seed, say)
    try:
        soak.run()
    except (Exception, KeyboardInterrupt) as error:
        traceback.print_exc()
        soak.result.wrong.append(f"the run ended early: {type(error).__name__}: {error}")
    finally:
        cluster.stop()
    report(soak.result)
    if chosen.json:
        chosen.json.write_text(as_json(soak.result))
    if soak.result.wrong:
        say(f"kept: {root}")
        return 1
    shutil.rmtree(root, ignore_errors=True)
    return 0

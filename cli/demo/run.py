"""The demo from start to verdict."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from quorate.cli.chaos.control.process_cluster import ProcessCluster
from quorate.cli.chaos.run.ending import reason
from quorate.cli.chaos.timeline.outage import longest_around, outage_text
from quorate.cli.chaos.workload.comparison import Comparison, Verdict
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.demo.workload import Writer, read_back, standard_library_lines

TOPIC = "demo"
PARTITIONS = 12
REPLICAS = 3
# The share of lines after which each step is carried out.
KILL_LEADER, KILL_CONTROLLER, RESTART = 0.25, 0.5, 0.7
KILLED = ("a leader", "the active controller")
"""The nodes that the demo kills, in this order."""


def say(what: str, text: str) -> None:
    """Print a line with a label."""
    print(f"{what:<10}{text}", flush=True)


@dataclass(slots=True)
class Kill:
    """A killed node and the moment of its death, in s on the monotonic clock."""

    what: str
    at_s: float


@dataclass(slots=True)
class Script:
    """The failures of the demo, which run while the client writes.

    Each step runs in a thread of its own, one at a time. The main thread calls `progress` and
    `finish`. A step runs only if `progress` is called when the step is due and the previous one has
    ended. If the client ends earlier, the remaining kills are left out (`left_out`), and `finish`
    restarts the nodes. A step that fails does not prevent the next one (`failure`)."""

    cluster: ProcessCluster
    total: int
    kills: list[Kill] = field(default_factory=list)
    dead: list[int] = field(default_factory=list)
    failure: Exception | None = None
    _next: int = 0
    _thread: threading.Thread | None = None

    def progress(self, done: int) -> None:
        """Start the next step if it is due and the previous one has ended.

        `done` counts the lines sent."""
        steps: tuple[tuple[float, Callable[[], None]], ...] = (
            (KILL_LEADER, self.kill_leader),
            (KILL_CONTROLLER, self.kill_controller),
            (RESTART, self.restart),
        )
        if self._thread is not None and self._thread.is_alive():
            return
        if self._next < len(steps) and done >= steps[self._next][0] * self.total:
            self._thread = threading.Thread(target=self._guarded, args=(steps[self._next][1],))
            self._next += 1
            self._thread.start()

    def finish(self) -> None:
        """Wait for the last step that was started, and restart the nodes that are still down."""
        if self._thread is not None:
            self._thread.join()
        if self.dead:
            self._guarded(self.restart)

    def left_out(self) -> list[str]:
        """Return the kills that the client's writes left no time for, and the last failure, as
        texts."""
        found = [
            f"{what} was not killed while the client wrote" for what in KILLED[len(self.kills) :]
        ]
        if self.failure is not None:
            found.append(f"a step failed: {reason(self.failure)}")
        return found

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # a part of the verdict
            self.failure = error

    def kill_leader(self) -> None:
        """Kill the broker that leads the most partitions."""
        leaders = self.cluster.leaders(TOPIC)
        ((broker, _),) = Counter(leaders.values()).most_common(1)
        led = [partition for partition, leader in leaders.items() if leader == broker]
        self.kills.append(Kill(f"broker {broker}", self.cluster.kill(broker)))
        self.dead.append(broker)
        say("killed", f"broker {broker} (kill -9), the leader of partitions {sorted(led)}")

    def kill_controller(self) -> None:
        """Kill the active controller, and measure the time until metadata can be written again."""
        controller = self.cluster.active_controller()
        at_s = self.cluster.kill(controller)
        self.kills.append(Kill(f"controller {controller}", at_s))
        self.dead.append(controller)
        say("killed", f"controller {controller} (kill -9), the active one")
        self.cluster.change_a_config(TOPIC, "604800001")
        took_ms = (time.monotonic() - at_s) * 1000
        say("", f"metadata could be written again after {took_ms:.0f} ms")

    def restart(self) -> None:
        """Restart the nodes that were killed."""
        dead, self.dead = self.dead, []
        for node_id in dead:
            self.cluster.restart(node_id)
        say("restarted", " and ".join(f"node {node_id}" for node_id in dead))


def run(root: Path, *, seconds: float, max_lines: int | None, spark: bool) -> int:
    """Run the demo, and return 0 if the comparison is good, else 1.

    It is good if a line was acknowledged, and none was lost, duplicated, reordered or changed. Both
    nodes must have been killed while the client wrote, every ISR must be full at the end, and all
    records must be readable. A cluster in `root` is replaced. Raise Refused or NotReachable if the
    cluster does not start, or does not create the topic."""
    begin_s = time.monotonic()
    lines = standard_library_lines()[:max_lines]
    cluster = ProcessCluster(root / "cluster")
    took_s = cluster.start()
    try:
        say("cluster", f"3 controllers and 3 brokers, ready after {took_s:.1f} s")
        verdict, missing, waited_ms = write_and_compare(cluster, lines, seconds)
        for number, line in enumerate(verdict.lines()):
            say("compared" if number == 0 else "", line)
        if spark:
            from quorate.cli.demo.history import tell_history

            tell_history(cluster.directory.root, TOPIC, root, say, waited_ms)
    finally:
        cluster.stop()
    good = verdict.good and not missing
    word = "GOOD: nothing acknowledged was lost" if good else f"BAD{bad_text(missing)}"
    say("verdict", f"{word} ({time.monotonic() - begin_s:.0f} s in all)")
    return 0 if good else 1


def bad_text(missing: list[str]) -> str:
    """Return what a bad verdict misses, as text."""
    return f": {'; '.join(missing)}" if missing else ""


def write_and_compare(
    cluster: ProcessCluster, lines: list[bytes], seconds: float
) -> tuple[Verdict, list[str], int]:
    """Write the lines while nodes are killed, read everything back, and return the comparison.

    Also return what did not happen although the verdict needs it, as texts, and the longest wait
    of a client after a kill, in ms."""
    cluster.create_topic(TOPIC, PARTITIONS, REPLICAS)
    bootstrap = cluster.entry["bootstrap"]
    writer = Writer(bootstrap, TOPIC, lines, PARTITIONS)
    script = Script(cluster, len(lines))
    meter = Meter(len(lines))

    def progress(done: int) -> None:
        script.progress(done)
        meter.show(done, writer.done)

    say("writing", f"{len(lines):,} lines into {PARTITIONS} partitions x {REPLICAS}, acks=all")
    writer.run(seconds, progress)
    meter.end()
    script.finish()
    waited_ms = 0
    for kill in script.kills:
        longest = longest_around(writer.gaps.found, kill.at_s)
        waited_ms = max(waited_ms, *longest.values(), 0)
        say("outage", f"{kill.what}: {outage_text(longest)}")
    if writer.failures:
        say("", f"{len(writer.failures)} not acknowledged: {writer.failures[0]}")
    healed = is_healed(cluster)
    missing = script.left_out() + ([] if healed else ["an ISR still lacks a replica"])
    say("healed", "every ISR is full again" if healed else "no: an ISR still lacks a replica")
    say("reading", "everything back")
    comparison = Comparison(lines, writer.acknowledged, PARTITIONS)
    verdict, unread = compared(comparison, read_back(bootstrap, TOPIC, PARTITIONS))
    return verdict, missing + unread, waited_ms


def is_healed(cluster: ProcessCluster) -> bool:
    """Return True when every ISR is full. Return False if that takes too long, or if no broker
    answers."""
    try:
        return cluster.wait_healed(TOPIC, REPLICAS)
    except (Refused, NotReachable):
        return False


def compared(
    comparison: Comparison, records: Iterable[tuple[int, int, bytes, bytes]]
) -> tuple[Verdict, list[str]]:
    """Compare the records (partition, offset, key, value), and return the verdict.

    If the reading ends with a TimeoutError, the remaining lines are unverified. The list then
    contains the reason."""
    unread = dict.fromkeys(range(PARTITIONS), 0)
    try:
        for partition, offset, key, value in records:
            comparison.read(partition, offset, key, value)
            unread[partition] = offset + 1
    except TimeoutError as error:
        return comparison.verdict(unread), [f"not every record could be read back: {error}"]
    return comparison.verdict(), []


class Meter:
    """The progress of the client: a line that is redrawn on a terminal, or a line every 5 s."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._terminal = sys.stderr.isatty()
        self._next_s = 0.0
        self._start_s = time.monotonic()

    def show(self, sent: int, acknowledged: int) -> None:
        """Print the progress if the interval has passed."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + (0.2 if self._terminal else 5.0)
        rate = acknowledged / max(0.001, now_s - self._start_s)
        share = 100 * sent // max(1, self._total)
        text = f"{share:3d} %  {acknowledged:,} acknowledged, {rate:,.0f}/s"
        print(f"{'':<10}{text}", end="\r" if self._terminal else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        """End the redrawn line."""
        if self._terminal:
            print(file=sys.stderr)

"""Everything that a rehearsal has at hand while its steps are carried out: the cluster, the
clients, the clock of the rehearsal, and what is known so far.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from quorate.cli.chaos.brokers import Brokers
from quorate.cli.chaos.cluster import LocalCluster
from quorate.cli.chaos.fault_sockets import FaultSockets
from quorate.cli.chaos.ledger import Ledger
from quorate.cli.chaos.metadata_tail import Logged, MetadataTail, log_end
from quorate.cli.chaos.reader import Reader
from quorate.cli.chaos.scenario import Scenario
from quorate.cli.chaos.timeline import DEAD, SERVING, STANDBY, Event, Spell, Story, Track
from quorate.cli.chaos.verdict import Expiry, Pinned
from quorate.cli.chaos.writer import PinnedWriter, Writer
from quorate.cli.cluster_dir import alive

POLL_S = 0.02
POLLS_PER_LOOK = 25
"""Whether a node died is looked at more seldom."""


class Unmet(Exception):
    """A step did not come to its end; the rehearsal is bad, and still healed and verified."""


@dataclass(slots=True)
class Watch:
    """The rehearsal's clock: ms since it began, for our own deeds and for the log's records."""

    start_s: float = field(default_factory=time.monotonic)
    start_wall_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    def now_ms(self) -> int:
        return self.ms(time.monotonic())

    def ms(self, now_s: float) -> int:
        return max(0, round((now_s - self.start_s) * 1000))

    def of_wall(self, wall_ms: int) -> int:
        return wall_ms - self.start_wall_ms


@dataclass(slots=True, kw_only=True)
class Stage:
    scenario: Scenario
    cluster: LocalCluster
    faults: FaultSockets
    watch: Watch
    brokers: Brokers
    make_brokers: Callable[[], Brokers]
    ledger: Ledger
    writer: Writer
    reader: Reader
    tails: list[MetadataTail]
    story: Story
    session_timeout_ms: int
    since: int
    """Where the metadata log ended before the topic was created."""
    serving: frozenset[int]
    """Brokers that served when it began."""
    first_active: int
    say: Callable[[Event], None]
    timeline: list[Event] = field(default_factory=list)
    hurt: Track = field(default_factory=Track)
    """Nodes that are dead, muted or cut off."""
    victim: int | None = None
    pinned_writer: PinnedWriter | None = None
    pinned: list[Pinned] = field(default_factory=list)
    expiries: list[Expiry] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)
    _told: int = 0

    # --- what happens

    def note(self, what: str, node: int | None = None, cause: str = "", kind: str = "step") -> None:
        self._add(Event(self.watch.now_ms(), what, node, cause, kind))

    def poll_log(self) -> None:
        """Whoever has more of the metadata log tells it."""
        for tail in self.tails:
            new = [each for each in tail.read() if each.offset >= self._told]
            if new:
                self._told = new[-1].offset + 1
                for event in self.story.tell(new):
                    self._add(event)

    async def watch_log(self) -> None:
        while True:
            self.poll_log()
            await asyncio.sleep(POLL_S)

    def _add(self, event: Event) -> None:
        self.timeline.append(event)
        self.say(event)

    # --- who is who

    def node_named(self, value: int | str) -> int:
        """`leader`, `controller`, `victim` or an id; whoever it is, is the victim from now on."""
        if value == "leader":
            counts = {broker: len(self.story.led_by(broker)) for broker in sorted(self.serving)}
            self.victim = max(counts, key=lambda broker: (counts[broker], -broker))
        elif value == "controller":
            self.victim = self.story.active
        elif isinstance(value, int):
            self.victim = self.cluster.node(value)["id"]
        if self.victim is None:
            raise Unmet("victim: no step has named a node yet")
        return self.victim

    def log_dir(self, node_id: int) -> Path:
        return Path(self.cluster.node(node_id)["log_dir"])

    @property
    def controllers(self) -> list[int]:
        return [node["id"] for node in self.cluster.entry["controllers"]]

    @property
    def broker_ids(self) -> list[int]:
        return [node["id"] for node in self.cluster.entry["brokers"]]

    # --- how it stands

    def in_sync(self) -> bool:
        replicas = self.scenario.workload.replication_factor
        whole = all(len(isr) == replicas for isr in self.story.isr.values())
        return whole and all(self.story.state(broker) == SERVING for broker in self.serving)

    def died(self) -> list[int]:
        """Nodes that are gone and that no step stopped."""
        stopped = {spell.subject for spell in self.hurt.spells if spell.what == DEAD}
        stopped |= {node for node, what in self.hurt.open().items() if what == DEAD}
        nodes = (*self.cluster.entry["controllers"], *self.cluster.entry["brokers"])
        gone = [node["id"] for node in nodes if not alive(node["pid"])]
        return [node for node in gone if node not in stopped]

    async def until(self, condition: Callable[[], bool], within_ms: int, what: str) -> int:
        """How long it took; Unmet when it takes too long."""
        begin_s = time.monotonic()
        for polls in itertools.count(1):
            if condition():
                break
            waited_ms = round((time.monotonic() - begin_s) * 1000)
            if waited_ms > within_ms:
                raise Unmet(f"not within {within_ms:,} ms: {what}")
            if polls % POLLS_PER_LOOK == 0 and (died := self.died()):
                raise Unmet(f"node {died[0]} died by itself, so not: {what}")
            await asyncio.sleep(POLL_S)
        return round((time.monotonic() - begin_s) * 1000)

    def final_story(self) -> tuple[list[Event], Story]:
        """Told again from the longest log: what was live may have shown what was replaced."""
        nodes = [*self.controllers, *self.broker_ids]
        longest = max((self.log_dir(node) for node in nodes), key=log_end)
        told = Story(self.story.topic_id, self.watch.start_wall_ms)
        told.begin(self.serving, self.first_active)
        records: list[Logged] = list(MetadataTail(longest, self.since).read())
        return list(told.tell(records)), told

    def spells(self, story: Story, end_ms: int) -> tuple[Spell, ...]:
        """Of nodes: what the log says, and over it what was done to them."""
        return (
            *(Spell(node, STANDBY, 0, end_ms) for node in self.controllers),
            *story.brokers.close(end_ms),
            *story.controllers.close(end_ms),
            *self.hurt.close(end_ms),
        )

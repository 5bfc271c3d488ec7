"""The state of a scenario run, which its steps share.

It holds the cluster, the clients, the clock of the run, and the events so far."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorate.cli.chaos.actions.fault_log import FaultLog, OpenFault
from quorate.cli.chaos.actions.run_clock import RunClock
from quorate.cli.chaos.actions.targets import TARGETS, Candidates, of
from quorate.cli.chaos.checks.fault_checks import FENCING
from quorate.cli.chaos.checks.faults import DISK_FAULTS, role_of
from quorate.cli.chaos.checks.observations import (
    Expiry,
    MetadataAnswer,
    Reassignment,
    Resignation,
)
from quorate.cli.chaos.checks.pinned_client import Pinned
from quorate.cli.chaos.control.cluster import Cluster
from quorate.cli.chaos.control.local_cluster import LocalCluster
from quorate.cli.chaos.control.node_control import NodeControl
from quorate.cli.chaos.scenario.keys import OF_PARTITION
from quorate.cli.chaos.scenario.scenario import Scenario
from quorate.cli.chaos.timeline.cluster_states import ClusterStates
from quorate.cli.chaos.timeline.facts import Facts
from quorate.cli.chaos.timeline.timeline import (
    DEAD,
    SERVING,
    STANDBY,
    Event,
    StateInterval,
    StateTracker,
)
from quorate.cli.chaos.workload.admin_load import AdminLoad
from quorate.cli.chaos.workload.brokers import Brokers
from quorate.cli.chaos.workload.group import Group
from quorate.cli.chaos.workload.ledger import Ledger
from quorate.cli.chaos.workload.metadata_probe import MetadataProbe
from quorate.cli.chaos.workload.reader import Reader
from quorate.cli.chaos.workload.writer import PinnedWriter, Writer
from quorate.cli.client.errors import Refused

POLL_S = 0.02
"""Time, in s, between two polls of a condition or of the metadata logs."""
POLLS_PER_LOOK = 25
"""The number of polls of a condition after which `until` looks for dead nodes."""


MAX_PROBLEMS = 20
"""The most problems that a run records."""
Values = Mapping[str, Any]
"""The values of a step by key, such as `node` and `within_ms`. Times are in ms."""


class StepFailed(Exception):
    """A step did not reach its end.

    The verdict is bad. The run still ends all faults and compares the records."""


@dataclass(slots=True, kw_only=True)
class ScenarioRun:
    """The state of one run, owned by its event loop.

    `facts` is the source of what happens in the cluster, and `states` holds the state that it
    describes. Events are appended to `timeline` and passed to `say`."""

    scenario: Scenario
    cluster: Cluster
    control: NodeControl
    facts: Facts
    clock: RunClock
    brokers: Brokers
    make_brokers: Callable[[], Brokers]
    ledger: Ledger
    writer: Writer
    reader: Reader
    probe: MetadataProbe
    group: Group | None = None
    """The consumer group of the run, if the workload has one."""
    admin: AdminLoad | None = None
    """The admin client of the run, if the workload has one."""
    states: ClusterStates
    session_timeout_ms: int
    serving: frozenset[int]
    """The brokers that were unfenced at the start of the run."""
    first_active: int
    """The active controller at the start of the run."""
    say: Callable[[Event], None]
    racks: Mapping[int, str] = field(default_factory=dict)
    """The racks of the brokers that have one."""
    chance: random.Random
    """The random numbers of the run, from its seed. They choose the nodes of drawn roles."""
    timeline: list[Event] = field(default_factory=list)
    fault_states: StateTracker = field(default_factory=StateTracker)
    """The intervals in which nodes were dead, paused, muted or cut off."""
    faults: FaultLog = field(default_factory=FaultLog)
    """The faults of nodes with their effects."""
    victim: int | None = None
    """The node that a step named last."""
    pinned_writer: PinnedWriter | None = None
    """The producer that writes to one broker only, if it runs."""
    pinned: list[Pinned] = field(default_factory=list)
    """The results of all such producers, in the order in which they were started."""
    expiries: list[Expiry] = field(default_factory=list)
    """The expired sessions of muted or cut off brokers."""
    failed_steps: list[str] = field(default_factory=list)
    """The failed steps with their reasons, as texts."""
    problems: list[str] = field(default_factory=list)
    """The parts of the run outside of its steps that failed, with their reasons, as texts."""
    reassignment: Reassignment | None = None
    """The reassignment that a step has started last."""
    resignations: list[Resignation] = field(default_factory=list)
    """The answers of isolated controllers to the question if they are active."""
    asked: list[MetadataAnswer] = field(default_factory=list)
    """The answers of controllers that a step has asked directly to change or read metadata."""

    # --- events

    def note(self, what: str, node: int | None = None, cause: str = "", kind: str = "step") -> None:
        """Record an event of the run."""
        self._add(Event(self.clock.now_ms(), what, node, cause, kind))

    def poll_facts(self) -> None:
        """Record the events since the last call."""
        for event in self.facts.new_events(self.states):
            self._add(event)

    async def follow_facts(self) -> None:
        """Poll the facts until cancelled. An error is a problem of the run."""
        while True:
            try:
                self.poll_facts()
            except Exception as error:  # a log that cannot be read must not end the run
                self.problem(f"the metadata cannot be followed: {error!r}")
            await asyncio.sleep(POLL_S)

    def problem(self, what: str) -> None:
        """Record a problem, once. Only the first MAX_PROBLEMS are kept."""
        if what not in self.problems and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(what)
            self.note(what, kind="fault")

    def _add(self, event: Event) -> None:
        self.timeline.append(event)
        self.say(event)

    # --- nodes

    def node_named(self, value: int | str) -> int:
        """Return the id of a node, or of the node in a role of TARGETS.

        The node becomes the victim of the next steps. Raise StepFailed if no node has the role now,
        and Refused if there is no such node."""
        if isinstance(value, int):
            self.cluster.require(value)
            self.victim = value
            return value
        of_partition = OF_PARTITION.fullmatch(value)
        among = Candidates(
            self.states,
            self.serving,
            self.controllers,
            tuple(self.faults.open),
            self.victim,
            self.chance.choice,
        )
        if of_partition is not None:
            found = of(among, of_partition[1], int(of_partition[2]))
        else:
            found = TARGETS[value](among)
        if found is None:
            raise StepFailed(f"{value}: no node without a fault has this role now")
        self.victim = found
        return found

    def new_fault(self, kind: str, node: int) -> OpenFault:
        """Return a fault of the node that begins now, which is not recorded yet.

        Raise StepFailed if the node has a fault."""
        if node in self.faults.open:
            raise StepFailed(f"node {node} has a fault already: {self.faults.open[node].kind}")
        is_broker, is_controller = node in self.broker_ids, node in self.controllers
        role = role_of(is_broker, is_controller, node == self.states.active)
        led = tuple(self.states.led_by(node))
        return OpenFault(kind=kind, node=node, role=role, start_ms=self.clock.now_ms(), led=led)

    def begin_fault(self, fault: OpenFault, state: str, cause: str) -> None:
        """Record the begin of a fault, and the state of the node in the timeline."""
        self.faults.begin(fault)
        self.fault_states.begin(fault.node, state, self.clock.now_ms(), cause)

    def end_fault(self, node: int) -> None:
        """Record the end of the node's fault, if it has one."""
        self.faults.end(node, self.clock.now_ms())
        self.fault_states.end(node, self.clock.now_ms())

    def down(self) -> list[int]:
        """Return the nodes that a step has killed or stopped and none has started."""
        return sorted(node for node, what in self.fault_states.open().items() if what == DEAD)

    @property
    def local(self) -> LocalCluster:
        """Return the cluster, whose directory is on this machine. Raise Refused if it has none."""
        if not isinstance(self.cluster, LocalCluster):
            raise Refused("this step needs a cluster of `quorate up`")
        return self.cluster

    def log_dir(self, node_id: int) -> Path:
        """Return the data directory of a node. Raise Refused if it is not on this machine."""
        return self.local.log_dir(node_id)

    @property
    def controllers(self) -> Sequence[int]:
        """Return the ids of all controllers."""
        return self.cluster.controllers

    @property
    def broker_ids(self) -> Sequence[int]:
        """Return the ids of all brokers."""
        return self.cluster.brokers

    @property
    def node_ids(self) -> list[int]:
        """Return the ids of all nodes, each once."""
        return list(dict.fromkeys((*self.controllers, *self.broker_ids)))

    # --- state

    def in_sync(self) -> bool:
        """Return True if every ISR is full, and all brokers of `serving` have returned."""
        replicas = self.scenario.workload.replication_factor
        whole = all(len(isr) == replicas for isr in self.states.isr.values())
        known = len(self.states.isr) == self.ledger.partitions
        return known and whole and all(map(self.returned, self.serving))

    def returned(self, broker: int) -> bool:
        """Return True if the broker is unfenced, and was unfenced after its last kill or stop.

        The log shows a broker as unfenced that was killed and is not missed yet."""
        now = self.states.brokers.now(broker)
        faults = self.faults.all(self.clock.now_ms())
        downs = [each.start_ms for each in faults if each.node == broker and each.kind in FENCING]
        return now is not None and now.what == SERVING and now.start_ms >= max(downs, default=0)

    def died(self) -> list[int]:
        """Return the nodes that do not run although no step has killed or stopped them.

        A node on a bad disk may end."""
        bad = [node for node, fault in self.faults.open.items() if fault.kind in DISK_FAULTS]
        expected = {*self.down(), *bad}
        return [
            each for each in self.node_ids if each not in expected and not self.control.runs(each)
        ]

    async def until(self, condition: Callable[[], bool], within_ms: int, what: str) -> int:
        """Wait until the condition is true, and return the ms that it took.

        `what` names the condition. Raise StepFailed if it takes longer than `within_ms`, or if a
        node dies meanwhile that no step has stopped (`died`)."""
        begin_s = time.monotonic()
        for polls in itertools.count(1):
            if condition():
                break
            waited_ms = round((time.monotonic() - begin_s) * 1000)
            if waited_ms > within_ms:
                raise StepFailed(f"not within {within_ms:,} ms: {what}")
            if polls % POLLS_PER_LOOK == 0 and (died := self.died()):
                raise StepFailed(
                    f"node {died[0]} ended although no step stopped it, while waiting until {what}"
                )
            await asyncio.sleep(POLL_S)
        return round((time.monotonic() - begin_s) * 1000)

    def final_states(self) -> tuple[list[Event], ClusterStates] | None:
        """Return the events and states of the whole run, as known at its end.

        Return None if those that the run has recorded are final."""
        final = ClusterStates(self.states.topic_id, self.clock.start_wall_ms, self.clock.offsets_ms)
        final.begin(self.serving, self.first_active)
        events = self.facts.replay(final)
        return None if events is None else (events, final)

    def intervals(self, states: ClusterStates, end_ms: int) -> tuple[StateInterval, ...]:
        """Return the states of all nodes over time: those in the log, and the faults over them.

        States that have not ended, also those in `states` and `fault_states`, end at `end_ms`."""
        return (
            *(StateInterval(node, STANDBY, 0, end_ms) for node in self.controllers),
            *states.brokers.close(end_ms),
            *states.controllers.close(end_ms),
            *self.fault_states.close(end_ms),
        )

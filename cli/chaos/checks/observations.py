"""The observations of a run, from which the checks compute the verdict. The module is pure.

Times are in ms since the start of the run, unless a name says otherwise. A run that ends early
leaves observations out; each check says what it then lacks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.cli.chaos.timeline.timeline import StateInterval
from quorate.cli.chaos.workload.comparison import Verdict
from quorate.cli.chaos.workload.latencies import KINDS, Latencies, Summary, summary

GRACE_MS = 250
"""Time, in ms after a change of leader, in which the old leader may still acknowledge writes.

A follower that does not know the new leader yet may confirm such a write. The new leader then has
it, too."""
KILL, STOP, PAUSE, MUTE, ISOLATE = "kill", "stop", "pause", "mute", "isolate"
ONE_WAY, SLOW_LINK, LOSS = "one-way cut", "slow link", "loss of messages"
SLOW_CLIENTS, CUT_CLIENTS = "slow link of clients", "cut of clients"
SLOW_DISK, FULL_DISK, BAD_FLUSH = "slow disk", "full disk", "failing flush"
WRONG_CLOCK = "wrong clock"
"""The kinds of faults."""
DISK_FAULTS = frozenset({FULL_DISK, BAD_FLUSH})
"""The faults with which a node stops by itself."""
GONE = frozenset({KILL, STOP, PAUSE, ISOLATE, ONE_WAY, *DISK_FAULTS})
"""The faults during which a controller cannot be active, or take part in a majority."""
BROKER, CONTROLLER, ACTIVE_CONTROLLER = "broker", "controller", "active controller"
BOTH, BOTH_ACTIVE = "broker and controller", "broker and active controller"
"""The roles of a node when its fault began."""
BROKERS, ACTIVES = (
    frozenset({BROKER, BOTH, BOTH_ACTIVE}),
    frozenset({ACTIVE_CONTROLLER, BOTH_ACTIVE}),
)
"""The roles of nodes that are brokers, and of those that are the active controller."""


def role_of(is_broker: bool, is_controller: bool, is_active: bool) -> str:
    """Return the role of a node. Only a controller can be active."""
    if not is_controller:
        return BROKER
    if is_broker:
        return BOTH_ACTIVE if is_active else BOTH
    return ACTIVE_CONTROLLER if is_active else CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of one node, with the effect that the node or the kernel reported."""

    kind: str
    node: int
    role: str
    start_ms: int
    end_ms: int
    affected: int
    """The number of things that the fault affected: an ended or stopped process, or messages."""
    effect: str
    """The effect as text, with the number."""
    led: tuple[int, ...] = ()
    """The partitions that the node led when the fault began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """The end of the session of a broker whose heartbeats do not reach the controllers."""

    node: int
    timeout_ms: int
    """The value of broker.session.timeout.ms."""
    last_heartbeat_ms: int
    """The time at which the last heartbeat left the broker."""
    fenced_ms: int
    cause: str
    """The cause in the record that fenced the broker."""

    @property
    def after_ms(self) -> int:
        """Return the time from the last heartbeat to the fencing, in ms."""
        return self.fenced_ms - self.last_heartbeat_ms


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error that a pinned client received for a batch, and the time at which it was sent."""

    partition: int
    ms: int
    error: str


@dataclass(slots=True, kw_only=True)
class Pinned:
    """The results of the client that wrote to one broker only."""

    node: int
    from_ms: int
    until_ms: int = 0
    acknowledged: int = 0
    """The number of acknowledged records."""
    refused: Counter[str] = field(default_factory=Counter)
    """The number of errors by name."""
    refusals: list[Refusal] = field(default_factory=list)
    """The first MAX_REFUSALS errors (`writer.py`)."""
    successes: list[tuple[int, int]] = field(default_factory=list)
    """(partition, time at which the batch was sent) of each acknowledged batch."""
    diverged: int = 0
    """The records in the broker's log that the new leaders did not have when the fault ended."""

    def late(self, leadership: Sequence[StateInterval]) -> list[tuple[int, int]]:
        """Return (partition, time) of the acknowledged batches sent while another broker led.

        Batches sent within GRACE_MS after the change of the leader do not count."""
        return [
            (partition, ms)
            for partition, ms in self.successes
            if not_led(self.node, partition, ms, leadership, GRACE_MS)
        ]

    def refusals_without_lead(self, leadership: Sequence[StateInterval]) -> list[Refusal]:
        """Return the errors for batches that were sent while another broker led."""
        return [
            each
            for each in self.refusals
            if not_led(self.node, each.partition, each.ms, leadership, 0)
        ]


def not_led(
    node: int, partition: int, ms: int, leadership: Sequence[StateInterval], grace_ms: int
) -> bool:
    """Return True if another node, or none, led the partition for `grace_ms` before `ms`."""
    return any(
        interval.subject == partition
        and interval.start_ms + grace_ms < ms <= interval.end_ms
        and interval.leader != node
        for interval in leadership
    )


@dataclass(frozen=True, slots=True)
class Outage:
    """An interval, in ms since the start, in which a partition was not available."""

    partition: int
    start_ms: int
    end_ms: int

    @property
    def duration_ms(self) -> int:
        """Return the length of the interval."""
        return self.end_ms - self.start_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """The batches of one workload that were served, and the times at which it waited."""

    done: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The times of the served batches by partition, in ascending order."""
    outages: Sequence[Outage] = ()

    def longest_ms(self) -> int:
        """Return the length of the longest outage, or 0."""
        return max((each.duration_ms for each in self.outages), default=0)

    def count(self, start_ms: int, end_ms: int) -> int:
        """Return the number of batches from `start_ms` on and before `end_ms`."""
        return sum(
            bisect_left(times, end_ms) - bisect_left(times, start_ms)
            for times in self.done.values()
        )

    def idle(self, start_ms: int, end_ms: int) -> list[int]:
        """Return the partitions without a batch in the interval, which includes both ends."""
        return [
            partition
            for partition, times in sorted(self.done.items())
            if bisect_right(times, end_ms) == bisect_left(times, start_ms)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataWrites:
    """The changes of metadata that a client of the run requested all the time."""

    availability: Availability = field(default_factory=Availability)
    """The committed changes, as those of partition 0, and the times at which a change waited."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """The number of errors by name. NETWORK_EXCEPTION means that no answer came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resignation:
    """The answers of an isolated controller to a client that asked it for the active controller."""

    node: int
    isolated_ms: int
    resigned_ms: int | None
    """The time of its first answer that it is not the active one. None: it never said so."""
    answers: int = 0
    """The number of its answers."""


class Rebalance(NamedTuple):
    """The kill of a group member, and the time at which every partition had a member again, or
    None."""

    killed_ms: int
    complete_ms: int | None

    def lasted_ms(self, end_ms: int) -> int:
        """Return the length. A rebalance that has not ended lasts until the end of the run."""
        return (end_ms if self.complete_ms is None else self.complete_ms) - self.killed_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReads:
    """The observations of the consumer group of a run."""

    records: int
    """The offsets below the ends that members have read."""
    missing: Mapping[int, int] = field(default_factory=dict)
    """The first offset below its end that no member has read, by partition."""
    went_back: Sequence[str] = ()
    """The committed offsets that were lower than one before, as texts."""
    commits: int = 0
    joins: int = 0
    kills_members: bool = False
    """True if the workload says that members are killed."""
    rebalances: Sequence[Rebalance] = ()


class AdminWait(NamedTuple):
    """One request of the admin client, and the time of its success, or None."""

    operation: str
    sent_ms: int
    done_ms: int | None

    def waited_ms(self, end_ms: int) -> int:
        """Return the wait. A request without a success waited until the end of the run."""
        return (end_ms if self.done_ms is None else self.done_ms) - self.sent_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminWaits:
    """The requests of the admin client of a run, which sends those of `operations` in turn."""

    operations: Sequence[str]
    requests: Sequence[AdminWait] = ()

    def by_operation(self) -> dict[str, list[AdminWait]]:
        """Return the requests by their operation."""
        found: dict[str, list[AdminWait]] = {}
        for each in self.requests:
            found.setdefault(each.operation, []).append(each)
        return found


@dataclass(slots=True, kw_only=True)
class Reassignment:
    """The move of the topic's replicas: the new replicas by partition, and its begin and end."""

    targets: Mapping[int, Sequence[int]]
    start_ms: int
    end_ms: int | None = None
    """The time at which every partition had exactly its new replicas. None: that was not seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that the checks use."""

    compared: Verdict
    """The comparison of the written records with those in the partitions at the end."""
    unread: Mapping[int, str] = field(default_factory=dict)
    """The partitions that could not be read back, with the reasons."""
    acks_one: bool = False
    """True if the producers used acks=1."""
    sent: int
    read_along: int
    """The number of records read during the run."""
    unread_along: int = 0
    """The number of acknowledged records that the consumer had not read when it ended."""
    taken_back: int
    """The number of records read during the run that changed or were missing later."""
    different_replicas: Sequence[int]
    """The partitions whose replicas differ at the end."""
    replicas_compared: bool = True
    failures: Sequence[str]
    """The fatal errors of producers."""
    failed_steps: Sequence[str]
    problems: Sequence[str] = ()
    """The parts of the run after the steps that failed, with the reasons."""
    faults: Sequence[Fault] = ()
    fault_steps: int = 0
    """The number of steps of the run that cause a fault."""
    expiries: Sequence[Expiry]
    pinned: Sequence[Pinned]
    resignations: Sequence[Resignation] = ()
    reassignment: Reassignment | None = None
    isr_shrinks: int = 0
    """The times that the ISR of a partition lost a replica."""
    writes: Availability
    reads: Availability
    metadata: MetadataWrites
    group: GroupReads | None = None
    """The observations of the consumer group, or None for a run without one."""
    admin: AdminWaits | None = None
    """The requests of the admin client, or None for a run without one."""
    latencies: Mapping[str, Latencies] = field(default_factory=dict)
    """The latencies of clients by their kind, of KINDS in `latencies.py`."""
    leadership: Sequence[StateInterval]
    brokers: Sequence[StateInterval] = ()
    """The intervals in which brokers were serving or fenced."""
    controllers: Sequence[StateInterval] = ()
    """The intervals in which controllers were active, one for each term."""
    voters: Sequence[int] = ()
    """The ids of all controllers."""
    end_ms: int = 0
    """The time at which the clients ended."""
    not_judged: Mapping[str, str] = field(default_factory=dict)
    """The checks that have no evidence on this cluster, with the reasons."""

    def phases(self) -> tuple[tuple[str, int, int], ...]:
        """Return the names and intervals of the times before, during and after the faults.

        Without faults the whole run is the time before them."""
        if not self.faults:
            return (("before", 0, self.end_ms),)
        start_ms = min(each.start_ms for each in self.faults)
        end_ms = max(each.end_ms for each in self.faults)
        return (
            ("before", 0, start_ms),
            ("during", start_ms, end_ms),
            ("after", end_ms, self.end_ms),
        )

    def leader_moves(self) -> int:
        """Return how often a partition got another leader, or none, after its first one."""
        return len(self.leadership) - len({each.subject for each in self.leadership})

    def latency_summaries(self) -> dict[str, dict[str, Summary]]:
        """Return the summaries of the latencies by kind and phase."""
        return {
            kind: {
                name: summary(self.latencies.get(kind, Latencies()).between(start_ms, end_ms))
                for name, start_ms, end_ms in self.phases()
            }
            for kind in KINDS
        }

"""The events of a run by time, and the states of nodes and partitions over time.

The module is pure. It has two sources: the actions of the run (fault, kill, restart), and the
records of the metadata log (fencing, leaders, the active controller, causes). Times are ms since
the start of the run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from quorate.cli.chaos.timeline.metadata_tail import LoggedRecord
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from quorate.quorum.raft.control_records import LeaderChangeMessage

# The states of nodes in the metadata log: a broker is serving (unfenced) or fenced, a controller is
# standby or active.
SERVING, FENCED, STANDBY, ACTIVE = "serving", "fenced", "standby", "active"
# The states of nodes that a step causes: killed or stopped, without some messages such as
# heartbeats, cut off from others, paused (SIGSTOP), slow, on a bad disk, and with a wrong clock.
DEAD, MUTED, CUT, PAUSED = "dead", "muted", "cut", "paused"
SLOW, BAD_DISK, SKEWED = "slow", "bad-disk", "skewed"


@dataclass(frozen=True, slots=True)
class Event:
    """An event at one moment, of one node or of the whole cluster."""

    ms: int
    what: str
    """A phrase for people. If `node` is set, the node is its subject."""
    node: int | None = None
    cause: str = ""
    """The recorded cause, empty if there is none."""
    kind: str = "step"
    """The kind: step, fault, fenced, unfenced, leaders, controller or isr."""


@dataclass(frozen=True, slots=True)
class StateInterval:
    """An interval in which a node or a partition was in one state.

    `subject` is the id of the node or partition, and `what` names the state. `leader` and `epoch`
    are set only for partitions."""

    subject: int
    what: str
    start_ms: int
    end_ms: int
    cause: str = ""
    leader: int = NO_LEADER
    epoch: int = -1


@dataclass(slots=True)
class CurrentState:
    """A state that has not ended yet."""

    what: str
    start_ms: int
    cause: str
    leader: int = NO_LEADER
    epoch: int = -1


@dataclass(slots=True)
class StateTracker:
    """The states of many nodes or partitions (subjects) over time.

    A subject has at most one state at a time: a new state ends the one before."""

    intervals: list[StateInterval] = field(default_factory=list)
    """The states that have ended."""
    _open: dict[int, CurrentState] = field(default_factory=dict)

    def now(self, subject: int) -> CurrentState | None:
        """Return the present state of the subject, or None."""
        return self._open.get(subject)

    def open(self) -> dict[int, str]:
        """Return the names of all present states by subject."""
        return {subject: each.what for subject, each in self._open.items()}

    def current_states(self) -> dict[int, CurrentState]:
        """Return all present states by subject."""
        return dict(self._open)

    def begin(
        self,
        subject: int,
        what: str,
        ms: int,
        cause: str = "",
        *,
        leader: int = NO_LEADER,
        epoch: int = -1,
    ) -> None:
        """End the subject's present state and begin a new one."""
        self.end(subject, ms)
        self._open[subject] = CurrentState(what, ms, cause, leader, epoch)

    def end(self, subject: int, ms: int) -> None:
        """End the subject's present state, if there is one."""
        was = self._open.pop(subject, None)
        if was is not None:
            self.intervals.append(
                StateInterval(
                    subject,
                    was.what,
                    was.start_ms,
                    max(ms, was.start_ms),
                    was.cause,
                    was.leader,
                    was.epoch,
                )
            )

    def close(self, ms: int) -> tuple[StateInterval, ...]:
        """End all states, and return all intervals, sorted by subject and start."""
        for subject in list(self._open):
            self.end(subject, ms)
        return tuple(
            sorted(self.intervals, key=lambda interval: (interval.subject, interval.start_ms))
        )


@dataclass(slots=True)
class ClusterStates:
    """The states of one topic and of all nodes, as the metadata log describes them.

    Records must be passed to `apply` in the order of their offsets."""

    topic_id: Uuid
    start_wall_ms: int
    """The start of the run, in ms since 1970."""
    offsets_ms: Collection[int] = (0,)
    """The offsets that the clock of a record's writer may have."""
    leadership: StateTracker = field(default_factory=StateTracker)
    """The states of the topic's partitions, led or leaderless."""
    brokers: StateTracker = field(default_factory=StateTracker)
    controllers: StateTracker = field(default_factory=StateTracker)
    """The states of the active controllers. Standby controllers are not in it."""
    isr: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The present ISR of each partition."""
    isr_shrinks: int = 0
    """The changes after which the ISR of a partition lacked a broker that it had before."""
    active: int | None = None
    """The id of the active controller."""
    fences: list[Event] = field(default_factory=list)
    """The fencings of registered brokers, in the order of the log."""
    _epochs: dict[int, int] = field(default_factory=dict)

    def begin(self, serving: Iterable[int], active: int) -> None:
        """Set the states at the start of the run."""
        for broker in serving:
            self.brokers.begin(broker, SERVING, 0)
        self.active = active
        self.controllers.begin(active, ACTIVE, 0)

    def state(self, broker: int) -> str:
        """Return the state of a broker, SERVING or FENCED. An unknown broker is FENCED."""
        now = self.brokers.now(broker)
        return FENCED if now is None else now.what

    def led_by(self, broker: int) -> list[int]:
        """Return the partitions that the broker leads."""
        return [
            partition
            for partition in sorted(self.isr)
            if (now := self.leadership.now(partition)) is not None and now.leader == broker
        ]

    def apply(self, logged: Sequence[LoggedRecord]) -> Iterator[Event]:
        """Apply records and yield their events. Records are applied only as events are taken.

        Changes of leaders or ISRs with the same time and cause are one event of the call. They are
        yielded last, so the events are not in the order of time."""
        moved: dict[tuple[int, str], list[tuple[int, int]]] = {}
        shrunk: dict[tuple[int, str, str], list[int]] = {}
        for each in logged:
            ms = since_start(each.wall_ms, self.start_wall_ms, self.offsets_ms)
            match each.record:
                case LeaderChangeMessage(leader_id=leader):
                    yield from self._controller(ms, leader, each.epoch)
                case BrokerRegistrationChangeRecord() as change if change.fenced:
                    yield self._fence(ms, change.broker_id, change.fenced > 0, change.cause)
                case RegisterBrokerRecord() as registered:
                    yield self._fence(ms, registered.broker_id, True, registered.cause, new=True)
                case PartitionRecord() as created if created.topic_id == self.topic_id:
                    self._create(ms, created)
                case PartitionChangeRecord() as change if change.topic_id == self.topic_id:
                    key = change.partition_id
                    if change.isr is not None:
                        self.isr_shrinks += not set(self.isr.get(key, ())) <= set(change.isr)
                        self.isr[key] = change.isr
                    if change.leader != NO_LEADER_CHANGE:
                        self._lead(ms, key, change.leader, change.cause)
                        moved.setdefault((ms, change.cause), []).append((key, change.leader))
                    elif change.isr is not None:
                        isr = ", ".join(map(str, sorted(change.isr)))
                        shrunk.setdefault((ms, change.cause, isr), []).append(key)
        for (ms, cause), changes in moved.items():
            yield Event(ms, f"new leaders: {leaders_text(changes)}", None, cause, "leaders")
        for (ms, cause, isr), partitions in shrunk.items():
            what = f"ISR of {partitions_text(partitions)} is {isr}"
            yield Event(ms, what, None, cause, "isr")

    def _controller(self, ms: int, leader: int, epoch: int) -> Iterator[Event]:
        if self.active is not None:
            self.controllers.end(self.active, ms)
        self.active = leader
        self.controllers.begin(leader, ACTIVE, ms)
        yield Event(ms, f"is the active controller, epoch {epoch}", leader, "", "controller")

    def _fence(self, ms: int, broker: int, fenced: bool, cause: str, *, new: bool = False) -> Event:
        self.brokers.begin(broker, FENCED if fenced else SERVING, ms, cause)
        if new:
            return Event(ms, "registers", broker, cause, "step")
        kind = "fenced" if fenced else "unfenced"
        event = Event(ms, "is fenced" if fenced else "is unfenced", broker, cause, kind)
        if fenced:
            self.fences.append(event)
        return event

    def _create(self, ms: int, created: PartitionRecord) -> None:
        key = created.partition_id
        self.isr[key] = created.isr
        self._epochs[key] = created.leader_epoch
        self.leadership.begin(
            key, "led", ms, created.cause, leader=created.leader, epoch=created.leader_epoch
        )

    def _lead(self, ms: int, partition: int, leader: int, cause: str) -> None:
        epoch = self._epochs.get(partition, -1) + 1
        self._epochs[partition] = epoch
        what = "leaderless" if leader == NO_LEADER else "led"
        self.leadership.begin(partition, what, ms, cause, leader=leader, epoch=epoch)


def since_start(wall_ms: int, start_wall_ms: int, offsets_ms: Collection[int]) -> int:
    """Return a time of the metadata log as ms since the start of the run, at least 0.

    If steps have set clocks, the writer's clock is the one that gives the time nearest to the
    start. The offsets differ by more than the length of a run."""
    return max(0, min((wall_ms - start_wall_ms - each for each in offsets_ms), key=abs))


def leaders_text(changes: Sequence[tuple[int, int]]) -> str:
    """Return new leaders as text, by leader."""
    by_leader: dict[int, list[int]] = {}
    for partition, leader in changes:
        by_leader.setdefault(leader, []).append(partition)
    return "; ".join(
        f"{'no leader' if leader == NO_LEADER else f'broker {leader}'} for "
        f"{partitions_text(partitions)}"
        for leader, partitions in sorted(by_leader.items())
    )


def partitions_text(partitions: Sequence[int], shown: int = 8) -> str:
    """Return partitions as text, of which the first few are listed."""
    listed = ", ".join(map(str, sorted(partitions)[:shown]))
    rest = len(partitions) - shown
    word = "partition" if len(partitions) == 1 else "partitions"
    return f"{word} {listed}" + (f" and {rest} more" if rest > 0 else "")

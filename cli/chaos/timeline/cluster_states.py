"""The states of the nodes and of one topic, as metadata records or answers of brokers tell them.

The module is pure. `apply` takes the records of the metadata log. `cluster_views.py` reports the
differences between answers to the methods that `apply` uses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from quorate.cli.chaos.timeline.metadata_tail import LoggedRecord
from quorate.cli.chaos.timeline.timeline import (
    ACTIVE,
    FENCED,
    SERVING,
    Event,
    StateTracker,
    partitions_text,
)
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
    epochs: dict[int, int] = field(default_factory=dict)
    """The present leader epoch of each partition."""

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
        moves = Moves()
        for each in logged:
            ms = since_start(each.wall_ms, self.start_wall_ms, self.offsets_ms)
            match each.record:
                case LeaderChangeMessage(leader_id=leader):
                    yield self.activate(ms, leader, each.epoch)
                case BrokerRegistrationChangeRecord() as change if change.fenced:
                    yield self.fence(ms, change.broker_id, change.fenced > 0, change.cause)
                case RegisterBrokerRecord() as registered:
                    self.brokers.begin(registered.broker_id, FENCED, ms, registered.cause)
                    yield Event(ms, "registers", registered.broker_id, registered.cause, "step")
                case PartitionRecord() as made if made.topic_id == self.topic_id:
                    self.isr[made.partition_id] = made.isr
                    self.lead(ms, made.partition_id, made.leader, made.leader_epoch, made.cause)
                case PartitionChangeRecord() as change if change.topic_id == self.topic_id:
                    self._change(ms, change, moves)
        yield from moves.events()

    def _change(self, ms: int, change: PartitionChangeRecord, moves: Moves) -> None:
        key = change.partition_id
        if change.isr is not None:
            self.shrink_or_expand(key, change.isr)
        if change.leader != NO_LEADER_CHANGE:
            self.lead(ms, key, change.leader, self.epochs.get(key, -1) + 1, change.cause)
            moves.leader(ms, change.cause, key, change.leader)
        elif change.isr is not None:
            moves.isr(ms, change.cause, key, change.isr)

    def activate(self, ms: int, leader: int, epoch: int) -> Event:
        """Let the controller be the active one, in the epoch, and return the event."""
        if self.active is not None:
            self.controllers.end(self.active, ms)
        self.active = leader
        self.controllers.begin(leader, ACTIVE, ms)
        return Event(ms, f"is the active controller, epoch {epoch}", leader, "", "controller")

    def fence(self, ms: int, broker: int, fenced: bool, cause: str) -> Event:
        """Let the broker be fenced or unfenced, and return the event."""
        self.brokers.begin(broker, FENCED if fenced else SERVING, ms, cause)
        kind = "fenced" if fenced else "unfenced"
        event = Event(ms, f"is {kind}", broker, cause, kind)
        if fenced:
            self.fences.append(event)
        return event

    def shrink_or_expand(self, partition: int, isr: tuple[int, ...]) -> None:
        """Set the ISR of a partition, and count it if it lost a replica."""
        self.isr_shrinks += not set(self.isr.get(partition, ())) <= set(isr)
        self.isr[partition] = isr

    def lead(self, ms: int, partition: int, leader: int, epoch: int, cause: str) -> None:
        """Let a partition have the leader, or none (NO_LEADER), in the leader epoch."""
        self.epochs[partition] = epoch
        what = "leaderless" if leader == NO_LEADER else "led"
        self.leadership.begin(partition, what, ms, cause, leader=leader, epoch=epoch)


@dataclass(slots=True)
class Moves:
    """Changes of leaders and ISRs. Those with the same time and cause are one event."""

    _led: dict[tuple[int, str], list[tuple[int, int]]] = field(default_factory=dict)
    _isrs: dict[tuple[int, str, str], list[int]] = field(default_factory=dict)

    def leader(self, ms: int, cause: str, partition: int, leader: int) -> None:
        """Add a new leader of a partition."""
        self._led.setdefault((ms, cause), []).append((partition, leader))

    def isr(self, ms: int, cause: str, partition: int, isr: Sequence[int]) -> None:
        """Add a new ISR of a partition."""
        members = ", ".join(map(str, sorted(isr)))
        self._isrs.setdefault((ms, cause, members), []).append(partition)

    def events(self) -> Iterator[Event]:
        """Yield one event for each group."""
        for (ms, cause), changes in self._led.items():
            yield Event(ms, f"new leaders: {leaders_text(changes)}", None, cause, "leaders")
        for (ms, cause, isr), partitions in self._isrs.items():
            what = f"ISR of {partitions_text(partitions)} is {isr}"
            yield Event(ms, what, None, cause, "isr")


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

"""The history of one partition as sentences: the events, their times and their causes.

If a record carries a cause (Quorate's do), the event has this cause. If not (Apache Kafka's do
not), the event has the cause that the records prove, marked as inferred. Otherwise the event says
that the log does not name the cause. Two kinds of events have a fixed reason, which is not marked:
the deletion of a topic, and a partition that a snapshot holds. Spark is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from quorate.quorum.analytics.log.damage import Found, refuse
from quorate.quorum.analytics.log.errors import OutOfHistory
from quorate.quorum.analytics.log.text import span
from quorate.quorum.analytics.log.walk import Logged, walk
from quorate.quorum.analytics.replay.inference import (
    Step,
    Together,
    broker_names,
    listed,
    why,
    why_created,
)
from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.metadata.causes import describe
from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.quorum.metadata.replay import merge, partition_of

NOT_SAID = "The log does not say why."
CLEARED = PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=())
"""The change that a ClearElrRecord makes to a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change of a partition.

    `what` and `why` are sentences. `inferred` is true if `why` was concluded from other records."""

    offset: int
    timestamp_ms: int
    what: str
    why: str
    cause: str | None
    """The stored cause, or None if the record carries none."""
    inferred: bool
    partition: Partition | None
    """The state after the event, or None if the partition was deleted."""


@dataclass(slots=True, kw_only=True)
class Story:
    """The events of one partition during the life of one topic id."""

    topic: str
    topic_id: str
    partition: int
    events: list[Event] = field(default_factory=list)
    without_leader_ms: int = 0
    """The sum of the completed times without a leader, in ms. `leaderless_ms` returns the time that
    still lasts."""
    _lost_ms: int | None = None

    @property
    def state(self) -> Partition | None:
        """Return the state after the last event, or None if there is no event or the partition was
        deleted."""
        return self.events[-1].partition if self.events else None

    def add(self, event: Event) -> None:
        """Append an event. Events must be added in the order of the log."""
        self.events.append(event)
        lost = event.partition is not None and event.partition.leader == NO_LEADER
        if self._lost_ms is None and lost:
            self._lost_ms = event.timestamp_ms
        elif self._lost_ms is not None and not lost:
            self.without_leader_ms += self.leaderless_ms(event.timestamp_ms)
            self._lost_ms = None

    def leaderless_ms(self, now_ms: int) -> int:
        """Return for how many ms the partition has been without a leader at `now_ms`, since it lost
        the last one. Return 0 if it has a leader or was deleted."""
        return 0 if self._lost_ms is None else max(now_ms - self._lost_ms, 0)


@dataclass(slots=True)
class Stories:
    """The result of `explain`, with the offset and time of the log's last record that took
    effect."""

    told: list[Story]
    """One story per partition and per life of a topic of the given name, in the order of their
    first events."""
    end_offset: int
    end_ms: int


def explain(
    directory: Path | str, topic: str, partition: int | None = None, *, found: Found = refuse
) -> Stories:
    """Return the stories of a topic, or of one of its partitions.

    Deleted topics of this name are included. The call blocks while it reads the log. Raise
    OutOfHistory if the log holds no such partition. Raise NoMetadataLog or DamagedLog if the log
    cannot be read. Raise MalformedRecord, DecodeError or CorruptBatch for a record that cannot be
    decoded (`walk.py`). If `found` is given, it takes the damage in place of these last errors."""
    teller = _Teller(topic, partition)
    last: Logged | None = None
    for _, batch in groupby(
        walk(directory, found=found), key=lambda each: (each.of_snapshot, each.batch_offset)
    ):
        together = list(batch)
        teller.tell(together)
        last = together[-1]
    told = list(teller.stories.values())
    if last is None or not told:
        which = topic if partition is None else f"{topic}-{partition}"
        raise OutOfHistory(f"{directory}: this history knows no {which}")
    told.sort(key=lambda story: (story.events[0].offset, story.partition))
    return Stories(told, last.offset, last.timestamp_ms)


class _Teller:
    """Collects the stories of one topic, batch by batch."""

    def __init__(self, topic: str, partition: int | None) -> None:
        self._topic = topic
        self._partition = partition
        self._living: set[Uuid] = set()
        self.stories: dict[tuple[Uuid, int], Story] = {}

    def tell(self, batch: list[Logged]) -> None:
        """Add the events of one batch to the stories."""
        together = Together.of(each.message for each in batch)
        for logged in batch:
            for event, story in self._events(logged, together):
                story.add(event)

    def _events(self, logged: Logged, together: Together) -> Iterator[tuple[Event, Story]]:
        """Yield the events of one record, with the stories that they belong to."""
        match logged.message:
            case TopicRecord(name=self._topic, topic_id=topic_id):
                self._living.add(topic_id)
            case PartitionRecord(topic_id=topic_id) as record if self._asked(record):
                yield self._created(logged, record, together)
            case PartitionChangeRecord(topic_id=topic_id) as record if self._asked(record):
                key = (topic_id, record.partition_id)
                if key in self.stories:
                    yield self._changed(logged, record, self.stories[key], together)
            case RemoveTopicRecord(topic_id=topic_id) if topic_id in self._living:
                self._living.discard(topic_id)
                for story in self._of((topic_id,)):
                    text = "The topic was deleted."
                    yield _event(logged, text, "An administrator deleted it.", None), story
            case ClearElrRecord(topic_name=name) if name in ("", self._topic):
                for story in self._of(self._living):
                    state = story.state
                    if state is not None and (state.elr or state.last_known_elr):
                        yield self._changed(logged, CLEARED, story, together)

    def _asked(self, record: PartitionRecord | PartitionChangeRecord) -> bool:
        wanted = self._partition is None or record.partition_id == self._partition
        return wanted and record.topic_id in self._living

    def _of(self, topic_ids: Iterable[Uuid]) -> list[Story]:
        wanted = set(topic_ids)
        return [story for (topic_id, _), story in self.stories.items() if topic_id in wanted]

    def _created(
        self, logged: Logged, record: PartitionRecord, together: Together
    ) -> tuple[Event, Story]:
        state = partition_of(record)
        story = Story(
            topic=self._topic,
            topic_id=uuid_to_text(record.topic_id),
            partition=record.partition_id,
        )
        self.stories[record.topic_id, record.partition_id] = story
        text = f"{created(state)} {'As the snapshot says.' if logged.of_snapshot else ''}".strip()
        if logged.of_snapshot:
            reason = "Its history before is gone: the log begins with a snapshot."
            return _event(logged, text, reason, state), story
        inferred = why_created(record.topic_id, together)
        return _event(logged, text, inferred, state, cause=record.cause, inferred=True), story

    def _changed(
        self, logged: Logged, record: PartitionChangeRecord, story: Story, together: Together
    ) -> tuple[Event, Story]:
        old = story.state
        assert old is not None
        new = merge(old, record)
        named = record.leader != NO_LEADER_CHANGE
        text = " ".join(changes(old, new, named, story.leaderless_ms(logged.timestamp_ms)))
        reason = why(Step(old, new, together))
        if record is CLEARED:
            reason = "The eligible leader replicas were cleared: their feature or a config changed."
        event = _event(
            logged,
            text or "Nothing that shows changed.",
            reason or NOT_SAID,
            new,
            cause=record.cause,
            inferred=reason is not None,
        )
        return event, story


def _event(
    logged: Logged,
    what: str,
    reason: str,
    partition: Partition | None,
    *,
    cause: str = "",
    inferred: bool = False,
) -> Event:
    """Return an event. A stored cause takes precedence over the inferred reason."""
    return Event(
        offset=logged.offset,
        timestamp_ms=logged.timestamp_ms,
        what=what,
        why=describe(cause) if cause else reason,
        cause=cause or None,
        inferred=inferred and not cause,
        partition=partition,
    )


def created(state: Partition) -> str:
    """Return the state of a new partition as sentences."""
    replicas = f"Created on {broker_names(state.replicas)}; in sync: {listed(state.isr)}."
    if state.leader == NO_LEADER:
        return f"{replicas} Nobody leads it."
    return f"{replicas} Broker {state.leader} leads, leader epoch {state.leader_epoch}."


def changes(old: Partition, new: Partition, named: bool, leaderless_ms: int) -> Iterator[str]:
    """Yield one sentence for each aspect of the partition that changed."""
    if named:
        yield _leadership(old, new, leaderless_ms)
    if set(old.isr) != set(new.isr):
        yield _isr(old, new)
    if (old.replicas, old.adding, old.removing) != (new.replicas, new.adding, new.removing):
        yield _replicas(new)
    if set(old.elr) != set(new.elr):
        able = f"{broker_names(new.elr)} may lead" if new.elr else "nobody may lead"
        yield f"Outside of the ISR, {able} without loss (ELR)."
    if old.leader_recovery_state != new.leader_recovery_state:
        yield "It is recovering." if new.leader_recovery_state else "It has recovered."
    if old.directories != new.directories and old.replicas == new.replicas:
        yield "A replica has its log directory."


def _leadership(old: Partition, new: Partition, leaderless_ms: int) -> str:
    epoch = f"leader epoch {new.leader_epoch}"
    if new.leader == NO_LEADER:
        return f"Nobody leads it any more, {epoch}: it cannot be written or read."
    if new.leader == old.leader:
        return f"Broker {new.leader} leads on, with {epoch}."
    if old.leader == NO_LEADER:
        return f"Broker {new.leader} leads after {span(leaderless_ms)} without a leader, {epoch}."
    return f"Broker {new.leader} leads instead of broker {old.leader}, {epoch}."


def _isr(old: Partition, new: Partition) -> str:
    left = [each for each in old.isr if each not in new.isr]
    joined = [each for each in new.isr if each not in old.isr]
    parts = []
    if left:
        parts.append(f"{broker_names(left)} left the ISR")
    if joined:
        parts.append(f"{broker_names(joined)} joined {'it' if left else 'the ISR'}")
    text = " and ".join(parts)
    now = f"in sync: {listed(new.isr)}" if new.isr else "nobody is in sync"
    return f"{text[0].upper()}{text[1:]}; {now}."


def _replicas(new: Partition) -> str:
    moving = []
    if new.adding:
        moving.append(f"{listed(new.adding)} being added")
    if new.removing:
        moving.append(f"{listed(new.removing)} being removed")
    return f"Its replicas are {'; '.join([listed(new.replicas), *moving])}."

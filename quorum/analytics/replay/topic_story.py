"""The story of a topic as a whole: its size, its configs, and how its partitions fared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from quorate.quorum.analytics.log.damage import Found, refuse
from quorate.quorum.analytics.replay.chronicle import (
    Batch,
    Chronicle,
    Move,
    chronicles,
    counted,
    named,
)
from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.metadata.image import TOPIC_RESOURCE, Partition
from quorate.quorum.metadata.records import (
    NO_LEADER,
    ConfigRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.quorum.metadata.redaction import redacted

BY_ADMINISTRATOR = "An administrator changed it."


def explain_topic(directory: Path | str, topic: str, *, found: Found = refuse) -> list[Chronicle]:
    """Return the stories of all topics of this name, one after the other: a topic that was deleted
    and created again has two. Raise OutOfHistory if there is none; other errors are those of
    `story.explain`."""
    return chronicles(directory, TopicTeller(topic), topic, found)


class TopicTeller:
    """Collects the happenings of the topics of one name."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._living: Uuid | None = None
        self._states: dict[int, Partition] = {}
        self._chronicles: list[Chronicle] = []

    def tell(self, batch: Batch) -> None:
        """Add the happening of the batch, if it concerns the topic."""
        sentences, reason, begins = [], "", False
        for each in batch.records:
            match each.message:
                case TopicRecord(name=self._topic, topic_id=topic_id):
                    self._begin(topic_id)
                    begins = True
                case ConfigRecord(resource_type=kind, resource_name=self._topic) as record:
                    if kind == TOPIC_RESOURCE and self._living is not None:
                        shown = redacted(record).value
                        value = "unset" if shown is None else f"set to {shown}"
                        sentences.append(f"{record.name} was {value}.")
        moves = [move for move in batch.moves if move.topic_id == self._living]
        if sentences and not moves:
            reason = BY_ADMINISTRATOR
        grown = self._follow(moves)
        if batch.of_snapshot and grown:
            sentences.append(f"It had {counted(len(self._states), 'partition')} or more.")
            reason, moves = "The log begins with a snapshot.", []
        elif begins and grown:
            sentences.insert(0, f"It was created with {counted(grown, 'partition')}.")
        elif grown:
            sentences.append(f"It got {counted(grown, 'partition')} and has {len(self._states):,}.")
        sentences += _aspects(moves)
        removed = any(
            isinstance(each.message, RemoveTopicRecord) and each.message.topic_id == self._living
            for each in batch.records
        )
        if removed:
            sentences, reason = ["The topic was deleted."], "An administrator deleted it."
        if sentences and self._chronicles:
            made = batch.happening(" ".join(sentences), reason=reason, moves=moves)
            self._chronicles[-1].happenings.append(made)
        if removed:
            self._end("it is deleted")

    def told(self) -> list[Chronicle]:
        """Return the stories, in the order in which the topics were created."""
        if self._living is not None:
            alone = sum(each.leader == NO_LEADER for each in self._states.values())
            self._end(
                f"it has {counted(len(self._states), 'partition')}, {alone:,} without a leader"
            )
        return self._chronicles

    def _begin(self, topic_id: Uuid) -> None:
        subject = f"topic {self._topic} (topic id {uuid_to_text(topic_id)})"
        self._living, self._states = topic_id, {}
        self._chronicles.append(Chronicle(subject=subject))

    def _end(self, ending: str) -> None:
        self._chronicles[-1].ending = ending
        self._living = None

    def _follow(self, moves: list[Move]) -> int:
        """Keep the states of the partitions. Return the number of new ones."""
        for move in moves:
            if move.new is None:
                self._states.pop(move.partition_id, None)
            else:
                self._states[move.partition_id] = move.new
        return sum(move.old is None for move in moves)


Changed = Callable[[Partition, Partition], bool]

ASPECTS: tuple[tuple[Changed, str], ...] = (
    (
        lambda old, new: old.leader != NO_LEADER != new.leader != old.leader,
        "has another leader",
    ),
    (lambda old, new: old.leader != NO_LEADER == new.leader, "has no leader any more"),
    (lambda old, new: old.leader == NO_LEADER != new.leader, "has a leader again"),
    (lambda old, new: bool(set(old.isr) - set(new.isr)), "lost members of the ISR"),
    (lambda old, new: bool(set(new.isr) - set(old.isr)), "got members of the ISR"),
    (lambda old, new: new.reassigning and not old.reassigning, "began a reassignment"),
    (lambda old, new: old.reassigning and not new.reassigning, "ended a reassignment"),
)
"""The changes of a partition that a sentence counts."""


def _aspects(moves: list[Move]) -> Iterator[str]:
    for changed, text in ASPECTS:
        found = [
            move
            for move in moves
            if move.old is not None and move.new is not None and changed(move.old, move.new)
        ]
        if found:
            verb = text if len(found) == 1 else text.replace("has ", "have ", 1)
            yield f"{counted(len(found), 'partition')} {verb} {named(found)}."

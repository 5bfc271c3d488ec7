"""The history of a broker, a topic or the quorum as sentences, with times and causes.

One happening is everything that one batch of the log changed for the subject, because a controller
writes one decision as one batch. Causes are those of `story.py`: the stored one, or one that the
records prove, which is marked as inferred. Nothing needs Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Protocol

from quorate.quorum.analytics.log.damage import Found, refuse
from quorate.quorum.analytics.log.errors import OutOfHistory
from quorate.quorum.analytics.log.walk import Logged, walk
from quorate.quorum.analytics.replay.inference import Step, Together, why, why_created
from quorate.quorum.analytics.replay.story import CLEARED, NOT_SAID
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import describe
from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.quorum.metadata.replay import merge, partition_of

DELETED = "An administrator deleted the topic."
NAMED = 3
"""The number of partitions that a sentence names. It counts the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Everything that one batch changed for the subject.

    `what` and `why` are sentences. `cause` is the stored cause, or None if the log has none, or
    several. `inferred` is true if `why` was concluded from other records."""

    offset: int
    timestamp_ms: int
    what: str
    why: str
    cause: str | None = None
    inferred: bool = False


@dataclass(slots=True, kw_only=True)
class Chronicle:
    """The happenings of one subject, and a sentence about its state at the end of the log."""

    subject: str
    happenings: list[Happening] = field(default_factory=list)
    ending: str = ""
    end_offset: int = -1
    end_ms: int = 0


class Move(NamedTuple):
    """One change of a partition. `old` is None if it was created, and `new` if it was deleted."""

    topic_id: Uuid
    partition_id: int
    name: str
    old: Partition | None
    new: Partition | None
    cause: str


@dataclass(slots=True)
class Batch:
    """The records of one batch that took effect, and the changes of partitions in it."""

    records: list[Logged]
    moves: list[Move]
    together: Together

    @property
    def of_snapshot(self) -> bool:
        """Return True if the batch is from the snapshot that the log starts from."""
        return self.records[0].of_snapshot

    def happening(
        self, what: str, *, reason: str = "", cause: str = "", moves: Sequence[Move] = ()
    ) -> Happening:
        """Return a happening. Its reason is the stored `cause`, or `reason`, or else the one that
        all of `moves` share."""
        inferred = False
        if not cause and not reason:
            reason, cause, inferred = self._common(moves)
        first = self.records[0]
        return Happening(
            offset=first.offset,
            timestamp_ms=first.timestamp_ms,
            what=what,
            why=describe(cause) if cause else reason,
            cause=cause or None,
            inferred=inferred,
        )

    def _common(self, moves: Sequence[Move]) -> tuple[str, str, bool]:
        """Return the reason, the stored cause and True if inferred, if all moves have the same."""
        if moves and all(move.new is None for move in moves):
            return DELETED, "", False
        stored = {move.cause for move in moves}
        if len(stored) == 1 and stored != {""}:
            return "", stored.pop(), False
        found = {self._reason(move) for move in moves}
        if len(found) == 1 and (only := found.pop()) is not None:
            return only, "", True
        some = sorted(each for each in found if each is not None)
        return (" ".join(some), "", True) if 1 < len(some) == len(found) <= NAMED else (
            NOT_SAID, "", False,
        )  # fmt: skip

    def _reason(self, move: Move) -> str | None:
        if move.cause:
            return describe(move.cause)
        if move.old is None:
            return why_created(move.topic_id, self.together)
        return None if move.new is None else why(Step(move.old, move.new, self.together))


class Teller(Protocol):
    """Collects the happenings of one or several subjects."""

    def tell(self, batch: Batch) -> None:
        """Take the next batch of the log."""

    def told(self) -> Iterable[Chronicle]:
        """Return the chronicles after the last batch. It is empty if the log has no subject."""


def chronicles(
    directory: Path | str, teller: Teller, subject: str, found: Found = refuse
) -> list[Chronicle]:
    """Return the chronicles of a teller after it has taken the whole log. Block. `found` takes
    damage, as in `walk`.

    Raise OutOfHistory with `subject` if there is none. Other errors are those of `explain`
    (`story.py`)."""
    states, last = _Partitions(), None
    for _, together in groupby(
        walk(directory, found=found), key=lambda each: (each.of_snapshot, each.batch_offset)
    ):
        records = list(together)
        last = records[-1]
        said = Together.of(each.message for each in records)
        teller.tell(Batch(records, states.moves(records), said))
    told = list(teller.told())
    if last is None or not told:
        raise OutOfHistory(f"{directory}: this history knows no {subject}")
    for each in told:
        each.end_offset, each.end_ms = last.offset, last.timestamp_ms
    return told


class _Partitions:
    """The states of all partitions while the log is read."""

    def __init__(self) -> None:
        self._names: dict[Uuid, str] = {}
        self._states: dict[Uuid, dict[int, Partition]] = {}

    def moves(self, records: Iterable[Logged]) -> list[Move]:
        """Return the changes that the records make, one for each partition.

        If a batch changes a partition several times, the change is from its first state to its last
        one, with the last cause."""
        found: list[Move] = []
        for each in records:
            match each.message:
                case TopicRecord(name=name, topic_id=topic_id):
                    self._names[topic_id] = name
                    self._states[topic_id] = {}
                case PartitionRecord(topic_id=topic_id) as record:
                    new = partition_of(record)
                    found += self._set(topic_id, record.partition_id, new, record.cause)
                case PartitionChangeRecord(topic_id=topic_id) as record:
                    old = self._states.get(topic_id, {}).get(record.partition_id)
                    if old is not None:
                        new = merge(old, record)
                        found += self._set(topic_id, record.partition_id, new, record.cause)
                case RemoveTopicRecord(topic_id=topic_id):
                    for partition_id in sorted(self._states.get(topic_id, {})):
                        found += self._set(topic_id, partition_id, None, "")
                    self._states.pop(topic_id, None)
                case ClearElrRecord(topic_name=name):
                    found += self._cleared(name)
        return _net(found)

    def _set(
        self, topic_id: Uuid, partition_id: int, new: Partition | None, cause: str
    ) -> list[Move]:
        of_topic = self._states.setdefault(topic_id, {})
        old = of_topic.pop(partition_id, None)
        if new is not None:
            of_topic[partition_id] = new
        name = f"{self._names.get(topic_id, 'unknown')}-{partition_id}"
        return [Move(topic_id, partition_id, name, old, new, cause)]

    def _cleared(self, name: str) -> list[Move]:
        found: list[Move] = []
        for topic_id, of_topic in self._states.items():
            if name in ("", self._names.get(topic_id)):
                for partition_id, old in sorted(of_topic.items()):
                    if old.elr or old.last_known_elr:
                        found += self._set(topic_id, partition_id, merge(old, CLEARED), "")
        return found


def _net(moves: Iterable[Move]) -> list[Move]:
    net: dict[tuple[Uuid, int], Move] = {}
    for move in moves:
        key = (move.topic_id, move.partition_id)
        net[key] = move._replace(old=net[key].old) if key in net else move
    return [move for move in net.values() if move.old is not None or move.new is not None]


def named(moves: Sequence[Move]) -> str:
    """Return the names of the first partitions in parentheses, with the number of the others."""
    names = [move.name for move in moves[:NAMED]]
    more = len(moves) - len(names)
    return f"({', '.join(names)}{f' and {more} more' if more else ''})"


def counted(count: int, noun: str) -> str:
    """Return the number with the noun, such as "1 partition" or "2 partitions"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"

"""The story of one broker: its registrations and sessions, and what it gained and lost."""

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
from quorate.quorum.metadata.image import BROKER_RESOURCE, Partition
from quorate.quorum.metadata.records import (
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from quorate.quorum.metadata.redaction import redacted

CAUGHT_UP = "It had caught up with the metadata log."
STARTED = "A process of the broker started."
LEFT = "Its controlled shutdown was complete."


def explain_broker(directory: Path | str, broker_id: int, *, found: Found = refuse) -> Chronicle:
    """Return the story of a broker. Raise OutOfHistory if the log does not know it; other errors
    are those of `story.explain`."""
    (story,) = chronicles(directory, BrokerTeller(broker_id), f"broker {broker_id}", found)
    return story


class BrokerTeller:
    """Collects the happenings of one broker."""

    def __init__(self, broker_id: int) -> None:
        self._id = broker_id
        self._chronicle = Chronicle(subject=f"broker {broker_id}")
        self._state = ""
        self._leaving = False
        self._leads: set[tuple[object, int]] = set()
        self._in_sync: set[tuple[object, int]] = set()

    def tell(self, batch: Batch) -> None:
        """Add the happening of the batch, if it concerns the broker."""
        sentences, reason, cause = [], "", ""
        for each in batch.records:
            for what, why, stored in self._of_record(each.message, batch.of_snapshot):
                sentences.append(what)
                reason, cause = why or reason, stored or cause
        moves = [move for move in batch.moves if self._concerns(move)]
        self._hold(moves)
        if batch.of_snapshot:
            moves = []
        sentences += _effects(moves, self._id)
        if sentences:
            text = " ".join(sentences)
            made = batch.happening(text, reason=reason, cause=cause, moves=moves)
            self._chronicle.happenings.append(made)

    def told(self) -> list[Chronicle]:
        """Return the story, or nothing if no record names the broker."""
        if not self._chronicle.happenings:
            return []
        state = self._state or "not registered"
        leads, isrs = counted(len(self._leads), "partition"), counted(len(self._in_sync), "ISR")
        self._chronicle.ending = f"it is {state}, leads {leads}, in {isrs}"
        return [self._chronicle]

    def _of_record(self, message: object, of_snapshot: bool) -> Iterator[tuple[str, str, str]]:
        """Yield sentences about a record of the broker, each with a certain reason and the stored
        cause. Both may be empty."""
        match message:
            case RegisterBrokerRecord(broker_id=self._id) as record:
                self._state, self._leaving = "fenced" if record.fenced else "active", False
                rack = f" in rack {record.rack}" if record.rack else ""
                reason = "The log begins with a snapshot." if of_snapshot else STARTED
                text = f"It registered with broker epoch {record.broker_epoch}{rack}."
                yield text, reason, record.cause
            case UnregisterBrokerRecord(broker_id=self._id) as record:
                self._state = ""
                yield "It was unregistered.", "An administrator removed it.", record.cause
            case BrokerRegistrationChangeRecord(broker_id=self._id) as record:
                yield from self._of_change(record)
            case FenceBrokerRecord(id=self._id):
                yield self._fenced("")
            case UnfenceBrokerRecord(id=self._id):
                yield self._unfenced("")
            case ConfigRecord(resource_type=kind, resource_name=name) as record:
                if kind == BROKER_RESOURCE and name == str(self._id):
                    shown = redacted(record).value
                    value = "unset" if shown is None else f"set to {shown}"
                    yield f"{record.name} was {value}.", "An administrator changed it.", ""

    def _of_change(self, record: BrokerRegistrationChangeRecord) -> Iterator[tuple[str, str, str]]:
        if record.in_controlled_shutdown == 1:
            self._state, self._leaving = "shutting down", True
            yield "It began a controlled shutdown.", "It asked for it.", record.cause
        if record.fenced == 1:
            yield self._fenced(record.cause)
        if record.fenced == -1:
            yield self._unfenced(record.cause)

    def _fenced(self, cause: str) -> tuple[str, str, str]:
        reason, self._state = LEFT if self._leaving else "", "fenced"
        self._leaving = False
        return "It was fenced.", reason or "The log does not say why.", cause

    def _unfenced(self, cause: str) -> tuple[str, str, str]:
        self._state = "active"
        return "It was unfenced, so that it may lead and join ISRs.", CAUGHT_UP, cause

    def _concerns(self, move: Move) -> bool:
        states = (move.old, move.new)
        return any(
            each is not None and self._id in (*each.replicas, *each.isr, each.leader)
            for each in states
        )

    def _hold(self, moves: list[Move]) -> None:
        """Keep the partitions that the broker leads, and those in whose ISR it is."""
        for move in moves:
            key = (move.topic_id, move.partition_id)
            for held, has in ((self._leads, _leads), (self._in_sync, _in_sync)):
                held.discard(key)
                if has(move.new, self._id):
                    held.add(key)


def _leads(state: Partition | None, broker: int) -> bool:
    return state is not None and state.leader == broker


def _in_sync(state: Partition | None, broker: int) -> bool:
    return state is not None and broker in state.isr


def _has_replica(state: Partition | None, broker: int) -> bool:
    return state is not None and broker in state.replicas


ASPECTS: tuple[tuple[Callable[[Partition | None, int], bool], str, str], ...] = (
    (_leads, "It leads {} more {}.", "It lost the leadership of {} {}."),
    (_in_sync, "It joined the ISR of {} {}.", "It left the ISR of {} {}."),
    (_has_replica, "It got a replica of {} {}.", "It has no replica any more of {} {}."),
)
"""The relations of a broker to a partition, with the sentences about their beginning and end."""


def _effects(moves: list[Move], broker: int) -> Iterator[str]:
    """Yield sentences about the partitions that the broker gained and lost."""
    for has, began, ended in ASPECTS:
        gained = [each for each in moves if has(each.new, broker) and not has(each.old, broker)]
        lost = [each for each in moves if has(each.old, broker) and not has(each.new, broker)]
        for changed, text in ((gained, began), (lost, ended)):
            if changed:
                noun = "partition" if len(changed) == 1 else "partitions"
                yield text.format(f"{len(changed):,}", f"{noun} {named(changed)}")
        if has is _leads:
            alone = [each for each in lost if each.new and each.new.leader == NO_LEADER]
            if alone:
                yield f"{len(alone):,} of them got no other leader."

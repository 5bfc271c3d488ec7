"""The events of a history, as readable lines and as the data of a sequence diagram."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from quorate.quorum.ids import ZERO_UUID, EpochOffset, ReplicaKey
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.effects import RoleChanged

SKIPPED = (
    *("cluster_id", "candidate", "voter", "replica", "leader", "leader_address", "pinned"),
    *("max_wait_ms", "max_bytes", "topic_id", "token"),
)


AT_ONCE = -1
SOON = 24
MOST_LETTERS = 170


class Kind(enum.Enum):
    SENT = "sent"
    ARRIVED = "arrived"
    LOST = "lost"
    EFFECT = "effect"
    FAULT = "fault"
    BROKEN = "broken"


@dataclass(slots=True)
class Event:
    time_ms: float
    lane: str
    kind: Kind
    text: str
    other: str = ""
    """The other end of a message."""
    sent_at: int = AT_ONCE
    """The position of the sending, for an arrival or a loss."""

    def repeats(self, earlier: Event) -> bool:
        """Return True for a repeated retry, or a repeated fetch without records. Each is shown
        once."""
        at_once = self.kind is Kind.EFFECT or (self.kind is Kind.ARRIVED and self.sent_at < 0)
        return at_once and (self.kind, self.lane, self.other, self.text, self.sent_at) == (
            earlier.kind,
            earlier.lane,
            earlier.other,
            earlier.text,
            earlier.sent_at,
        )

    def line(self) -> str:
        if self.kind is Kind.ARRIVED and self.sent_at < 0:
            return f"{self.time_ms:9.1f}  {self.other} => {self.lane}  {self.text}"
        what = {
            Kind.SENT: f"{self.lane} -> {self.other}  ",
            Kind.ARRIVED: f"{self.lane} <- {self.other}  ",
            Kind.LOST: f"{self.lane} -x {self.other}  ",
            Kind.FAULT: f"{self.lane} !! ",
            Kind.BROKEN: "BROKEN: ",
        }.get(self.kind, f"{self.lane}  ")
        return f"{self.time_ms:9.1f}  {what}{self.text}"


@dataclass(slots=True)
class Trace:
    lanes: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    left_out: int = 0
    """The number of events before these."""
    _sent: dict[object, int] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        for lane in (event.lane, event.other):
            if lane and lane not in self.lanes:
                self.lanes.append(lane)
        self.events.append(event)

    def sent(self, time_ms: float, key: object, source: str, target: str, text: str) -> None:
        self._sent[key] = len(self.events)
        self.add(Event(time_ms, source, Kind.SENT, text, target))

    def ended(self, time_ms: float, key: object, *, lost: bool = False) -> None:
        """Add the arrival or the loss of a message. A message that is repeated arrives more than
        once."""
        at = self._sent.get(key)
        if at is None:
            return
        sent = self.events[at]
        if lost:
            self.add(Event(time_ms, sent.lane, Kind.LOST, sent.text, sent.other, at))
        else:
            self.add(Event(time_ms, sent.other, Kind.ARRIVED, sent.text, sent.lane, at))

    def readable(self, most: int) -> Trace:
        """Return the last `most` events. A message that arrives immediately is one event. A message
        that is still in flight at the end is left out."""
        kept = Trace()
        known = {each.sent_at for each in self.events}
        place: dict[int, int] = {}
        for position, event in enumerate(self.events):
            if event.kind is Kind.SENT and position not in known:
                continue
            before = len(kept.events) - 1
            if event.kind is Kind.ARRIVED and place.get(event.sent_at) == before:
                kept.events[-1] = dataclasses.replace(event, sent_at=AT_ONCE)
            else:
                place[position] = len(kept.events)
                sent_at = place.get(event.sent_at, event.sent_at)
                kept.events.append(dataclasses.replace(event, sent_at=sent_at))
            if any(kept.events[-1].repeats(each) for each in kept.events[-SOON:-1]):
                kept.events.pop()
        first = max(0, len(kept.events) - most)
        kept.left_out = first
        del kept.events[:first]
        for event in kept.events:
            if event.sent_at >= 0:
                event.sent_at = max(AT_ONCE, event.sent_at - first)
        used = {lane for each in kept.events for lane in (each.lane, each.other) if lane}
        kept.lanes = sorted(used, key=_lane_order)
        return kept

    def lines(self) -> Iterable[str]:
        return (event.line() for event in self.events)


def _lane_order(lane: str) -> tuple[str, int, str]:
    head = lane.rstrip("0123456789")
    return head, int(lane[len(head) :] or 0), lane


def describe(value: Any) -> str:
    """Return a message, effect or record in few words."""
    if isinstance(value, RoleChanged):
        return f"is {value.role.value} in epoch {value.epoch}"
    name = type(value).__name__.removesuffix("Request").removesuffix("Record")
    if name.endswith("Response"):
        name = name.removesuffix("Response") + " answered"
    if not dataclasses.is_dataclass(value):
        return str(value)
    said = [
        f"{each.name.replace('_', ' ')} {text}"
        for each in dataclasses.fields(value)
        if each.name not in SKIPPED
        and (each.name, getattr(value, each.name)) != ("error", 0)
        and (text := _short(getattr(value, each.name)))
    ]
    text = f"{name} {', '.join(said)}".strip()
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}..."


def _short(value: Any) -> str:
    match value:
        case None | False | "" | b"" | () | [] | -1:
            return ""
        case True:
            return "yes"
        case EpochOffset():
            return f"{value.offset} of epoch {value.epoch}"
        case ReplicaKey():
            return str(value.id)
        case Voter():
            return str(value.voter_id)
        case bytes() | bytearray() | memoryview():
            return "" if bytes(value) == ZERO_UUID else f"{len(value)} bytes"
        case int() if value >= 1 << 40:
            return ""  # never
        case tuple() | list():
            return "[" + ", ".join(filter(None, map(_short, value))) + "]"
        case _ if dataclasses.is_dataclass(value):
            return "(" + describe(value) + ")"
        case _:
            return str(value)

"""The requests that wait for the active controller, and the batch in which their records leave."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from quorate.quorum.controller.state.context import Caller
from quorate.quorum.controller.state.decision_steps import Outcome
from quorate.quorum.histogram import US_PER_MS
from quorate.quorum.node.controller.controller_decision import (
    MAX_BATCH_BYTES,
    MAX_BATCH_RECORDS,
    Part,
)
from quorate.quorum.watch.recent_changes import DecidedChanges


class Refusal(enum.Enum):
    """The reason why a request has no response of the rules. The values are texts for clients.

    After UNKNOWN the request may have been carried out. After all others nothing was changed."""

    NOT_CONTROLLER = "not the active controller"
    UNKNOWN = "leadership was lost before the outcome was known"
    TOO_LARGE = "the request changes more at once than one batch of the metadata log can hold"
    EXPIRED = "the request waited for longer than its timeout; nothing was changed"
    FAILED = "the controller could not carry out the request; nothing was changed"


Answer = Callable[[object], None]
"""A callback that receives the encoded response of the rules, or a Refusal. It must not raise."""
Encode = Callable[[object], object]
"""Turns the response of the rules into what `Answer` gets. It may raise; see `submit`."""


Rule = Callable[[int, int], Outcome]
"""A rule of the controller with its request or event. It gets the monotonic time in ms, and the
offset that its first record will have."""


class MetadataLog(Protocol):
    """The metadata log, as far as the active controller uses it."""

    @property
    def end_offset(self) -> int:
        """Return the log end offset."""

    def append(self, values: list[bytes]) -> int:
        """Append one batch and return the offset of its last record. Raise NotLeader, or
        BatchTooLarge, which the bounds of `controller_decision.py` must prevent."""


def discard(_: object) -> None:
    """Discard the answer to a tick, a probe or an activation, which no node asked for."""


def unencoded(response: object) -> object:
    """Return the response as it is, for a node of this process."""
    return response


# Neither class is frozen: one of each is made for every request, and a frozen one takes three times
# as long to make.
@dataclass(slots=True)
class WaitingAnswer:
    """The answer to a request that has been decided. `changes` is True if it has records."""

    offset: int  # The answer leaves when the high watermark has passed this offset.
    response: object
    answer: Answer
    changes: bool
    size_bytes: int = 0

    def leadership_lost(self, *, appended: bool = True) -> None:
        """Answer that leadership was lost before the commit. `appended` is False if the log refused
        the records.

        A request without appended records can be repeated on the next controller, so its answer is
        NOT_CONTROLLER."""
        is_unknown = appended and self.changes
        self.answer(Refusal.UNKNOWN if is_unknown else Refusal.NOT_CONTROLLER)


@dataclass(slots=True)
class WaitingRequest:
    """A request that waits to be decided. The fields are arguments of `ControllerShell.submit`."""

    request: object
    answer: Answer
    encode: Encode
    linearizable: bool
    caller: Caller | None
    deadline_ms: int
    asked_us: int  # the monotonic time of `submit`
    size_bytes: int = 0

    @property
    def asked_ms(self) -> int:
        """Return the monotonic time of `submit` in ms."""
        return self.asked_us // US_PER_MS


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of requests that wait for their decision, the age of the oldest of them in ms, and
    the number of answers that wait for a commit."""

    queued: int
    oldest_ms: int
    uncommitted: int


@dataclass(slots=True)
class Batch:
    """The records that are appended next, as one batch, and the answers that wait for that.
    `changes` has those parts of it that change partitions."""

    values: list[bytes] = field(default_factory=list)
    answers: list[WaitingAnswer] = field(default_factory=list)
    changes: list[DecidedChanges] = field(default_factory=list)
    size_bytes: int = 0

    def has_room_for(self, part: Part) -> bool:
        """Return True if `part` fits into the batch: at most MAX_BATCH_RECORDS records and
        MAX_BATCH_BYTES. The caller may add a larger part to an empty batch."""
        return (
            len(self.values) + len(part.values) <= MAX_BATCH_RECORDS
            and self.size_bytes + part.size_bytes <= MAX_BATCH_BYTES
        )

    def add(self, part: Part) -> None:
        """Add the encoded records of `part`."""
        self.values.extend(part.values)
        self.size_bytes += part.size_bytes

"""The states of a leader's ISR (KIP-497): committed, or one change proposed and not yet answered.

Safety decisions (high watermark, acks=all) use `maximal`: every replica that the controller may
count as in sync now. Admission (min.insync.replicas) uses `committed`: what it surely counts.

Invariants: `maximal` holds `committed`; a proposal whose outcome is unknown stays pending until a
result or newer metadata settles it, because the controller may have applied it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from quorate.quorum.protocol.errors import ErrorCode

Isr = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    committed: Isr

    @property
    def maximal(self) -> Isr:
        return self.committed

    in_flight = False


@dataclass(frozen=True, slots=True)
class PendingExpand:
    """A joining replica counts at once: that is stricter, so safe if the change is refused."""

    committed: Isr
    joining: int

    @property
    def maximal(self) -> Isr:
        return (*self.committed, self.joining)

    @property
    def proposed(self) -> Isr:
        return (*self.committed, self.joining)

    in_flight = True


@dataclass(frozen=True, slots=True)
class PendingShrink:
    """A leaving replica counts until the controller agrees: it may still be elected."""

    committed: Isr
    leaving: Isr

    @property
    def maximal(self) -> Isr:
        return self.committed

    @property
    def proposed(self) -> Isr:
        return tuple(each for each in self.committed if each not in self.leaving)

    in_flight = True


Pending = PendingExpand | PendingShrink
IsrState = Committed | Pending


TRANSITIONS: dict[tuple[type[IsrState], type[IsrState]], str] = {
    (Committed, PendingExpand): "a follower has caught up",
    (Committed, PendingShrink): "a member lags",
    (PendingExpand, Committed): "answer that settles the proposal, or newer metadata",
    (PendingShrink, Committed): "answer that settles the proposal, or newer metadata",
    (Committed, Committed): "newer metadata",
}
"""The allowed transitions, each with its reasons. `Leadership` checks each of its transitions
against the table, from which `make docs` draws the diagram in docs/protocol/isr.md. Invariant: a
proposal never replaces another one."""


def check_transition(current: IsrState, following: IsrState) -> None:
    """Raise AssertionError if a leader's ISR must not change from `current` to `following`."""
    allowed = (type(current), type(following)) in TRANSITIONS
    assert allowed, f"an ISR must not change from {current} to {following}"


class Outcome(enum.Enum):
    """What the leader does with the controller's answer about one partition."""

    COMMIT = "take over the ISR and partition epoch answered"
    REVERT = "provably not applied: back to the committed ISR"
    AWAIT_METADATA = "stay pending until the metadata log overrides it"
    PROPOSE_AGAIN = "unknown outcome: stay pending and ask again"


OUTCOMES: dict[int, Outcome] = {
    ErrorCode.NONE: Outcome.COMMIT,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Outcome.REVERT,
    ErrorCode.INELIGIBLE_REPLICA: Outcome.REVERT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Outcome.AWAIT_METADATA,
    ErrorCode.UNKNOWN_TOPIC_ID: Outcome.AWAIT_METADATA,
    ErrorCode.FENCED_LEADER_EPOCH: Outcome.AWAIT_METADATA,
    ErrorCode.INVALID_UPDATE_VERSION: Outcome.AWAIT_METADATA,
    ErrorCode.INVALID_REQUEST: Outcome.AWAIT_METADATA,
    ErrorCode.NEW_LEADER_ELECTED: Outcome.AWAIT_METADATA,
}
"""The outcome of each error code. Every other code proves nothing: PROPOSE_AGAIN."""


def outcome_of(error: int) -> Outcome:
    return OUTCOMES.get(error, Outcome.PROPOSE_AGAIN)

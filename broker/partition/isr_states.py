"""The states of a leader's ISR (KIP-497): committed, or with one proposed change that has no answer
yet.

Two sets of replicas follow from a state:

- `maximal`: every replica that the controller may count as in sync now. The high watermark waits
  for all of them, and thus also an append with acks=all.
- `committed`: the ISR of the controller's last answer or of the metadata. It is compared with
  min.insync.replicas before an append and before the high watermark advances. The check of an
  acks=all append that is complete counts `maximal` instead, as in Kafka.

`isr_membership.py` decides which change to propose. `leadership.py` proposes it.

Invariants: `maximal` contains `committed`. A proposal with an unknown outcome stays pending until
an answer or newer metadata settles it, because the controller may have applied it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from quorate.quorum.protocol.errors import ErrorCode

Isr = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """An ISR without a proposed change."""

    committed: Isr

    @property
    def maximal(self) -> Isr:
        """Return the committed ISR."""
        return self.committed

    in_flight = False


@dataclass(frozen=True, slots=True)
class PendingExpand:
    """A proposal to add a replica.

    The joining replica counts as in sync immediately. This is the stricter choice, and it stays
    safe if the controller refuses the change."""

    committed: Isr
    joining: int

    @property
    def maximal(self) -> Isr:
        """Return the committed ISR and the joining replica."""
        return (*self.committed, self.joining)

    @property
    def proposed(self) -> Isr:
        """Return the ISR that the leader proposes."""
        return (*self.committed, self.joining)

    in_flight = True


@dataclass(frozen=True, slots=True)
class PendingShrink:
    """A proposal to remove replicas.

    A leaving replica counts as in sync until the controller has agreed, because the controller may
    still elect it."""

    committed: Isr
    leaving: Isr

    @property
    def maximal(self) -> Isr:
        """Return the committed ISR, which still has the leaving replicas."""
        return self.committed

    @property
    def proposed(self) -> Isr:
        """Return the ISR that the leader proposes."""
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
"""The allowed transitions, each with its reason. `Leadership` checks each of its transitions
against the table, from which `make docs` draws the diagram in docs/protocol/isr.md. Invariant: a
proposal never replaces another one."""


def check_transition(current: IsrState, following: IsrState) -> None:
    """Raise AssertionError if a leader's ISR must not change from `current` to `following`."""
    allowed = (type(current), type(following)) in TRANSITIONS
    assert allowed, f"an ISR must not change from {current} to {following}"


class Outcome(enum.Enum):
    """The reaction of a leader to the controller's answer about one proposal."""

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
"""The outcome of each error code. Any other code does not show if the controller applied the
change: PROPOSE_AGAIN."""


def outcome_of(error: int) -> Outcome:
    """Return the outcome of an error code in an AlterPartition response."""
    return OUTCOMES.get(error, Outcome.PROPOSE_AGAIN)

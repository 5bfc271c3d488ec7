"""The states of a partition in the metadata log, and the changes of leadership between them.

`partition_change.py` checks each record that it returns against TRANSITIONS, from which `make docs`
draws the diagram in docs/protocol/isr.md.
"""

from __future__ import annotations

import enum
import itertools
from typing import NamedTuple

from quorate.quorum.metadata.records import NO_LEADER, RECOVERING


class PartitionState(enum.Enum):
    """The state of a partition's leadership."""

    LED = "led"
    RECOVERING = "recovering"
    """An unclean election chose the leader, which has not reported its recovery yet (KIP-704)."""
    LEADERLESS = "leaderless"


class LeaderEpoch(enum.Enum):
    """The effect of a change record on the leader epoch."""

    SAME = "same"
    NEXT = "next"
    SAME_OR_NEXT = "same or next"


class Transition(NamedTuple):
    """One allowed change of a partition, with its reasons."""

    epoch: LeaderEpoch
    when: str


TRANSITIONS: dict[tuple[PartitionState, PartitionState], Transition] = {
    (PartitionState.LED, PartitionState.LED): Transition(
        LeaderEpoch.SAME_OR_NEXT,
        "the ISR, the assignment or the leader changes",
    ),
    (PartitionState.LED, PartitionState.LEADERLESS): Transition(
        LeaderEpoch.NEXT, "no member of the ISR is active"
    ),
    (PartitionState.LED, PartitionState.RECOVERING): Transition(
        LeaderEpoch.NEXT, "unclean election"
    ),
    (PartitionState.RECOVERING, PartitionState.RECOVERING): Transition(
        LeaderEpoch.SAME_OR_NEXT,
        "the assignment or the leader changes",
    ),
    (PartitionState.RECOVERING, PartitionState.LED): Transition(
        LeaderEpoch.SAME_OR_NEXT, "the leader reports its recovery with an ISR"
    ),
    (PartitionState.RECOVERING, PartitionState.LEADERLESS): Transition(
        LeaderEpoch.NEXT, "no member of the ISR is active"
    ),
    (PartitionState.LEADERLESS, PartitionState.LEADERLESS): Transition(
        LeaderEpoch.SAME_OR_NEXT, "the assignment changes"
    ),
    (PartitionState.LEADERLESS, PartitionState.LED): Transition(
        LeaderEpoch.NEXT, "a member of the ISR is active again"
    ),
    (PartitionState.LEADERLESS, PartitionState.RECOVERING): Transition(
        LeaderEpoch.NEXT, "unclean election, or its leader is active again"
    ),
}
"""The allowed changes of a partition: a leader never changes within a leader epoch, and only an
unclean election makes a partition RECOVERING. A partition that loses such a leader keeps its leader
recovery state, and is RECOVERING again when a member of its ISR leads."""


def state_of(*, leaderless: bool, recovering: bool) -> PartitionState:
    """Return the state of a partition. `recovering` is True if its leader recovery state is
    RECOVERING."""
    if leaderless:
        return PartitionState.LEADERLESS
    return PartitionState.RECOVERING if recovering else PartitionState.LED


def _allows(epoch: LeaderEpoch, next_epoch: bool) -> bool:
    return epoch is not (LeaderEpoch.SAME if next_epoch else LeaderEpoch.NEXT)


_ALLOWED = frozenset(
    facts
    for facts in itertools.product((False, True), repeat=5)
    if _allows(
        TRANSITIONS[
            state_of(leaderless=facts[0], recovering=facts[1]),
            state_of(leaderless=facts[2], recovering=facts[3]),
        ].epoch,
        facts[4],
    )
)
"""TRANSITIONS as facts before and after a change, because the controller checks each partition of a
broker that it fences: leaderless, recovering, leaderless, recovering, next leader epoch."""


def check_transition(before: tuple[int, int], after: tuple[int, int], *, next_epoch: bool) -> None:
    """Raise AssertionError if no partition may change in this way.

    `before` and `after` are the leader and the leader recovery state. `next_epoch` is True if the
    change record names a leader, which raises the leader epoch.
    """
    facts = (
        before[0] == NO_LEADER,
        before[1] == RECOVERING,
        after[0] == NO_LEADER,
        after[1] == RECOVERING,
        next_epoch,
    )
    assert facts in _ALLOWED, (
        f"a partition must not change from leader and recovery state {before} to {after} "
        f"{'in the next' if next_epoch else 'within one'} leader epoch"
    )

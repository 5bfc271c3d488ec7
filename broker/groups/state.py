"""The states of a group and the allowed transitions between them."""

from __future__ import annotations

import enum


class State(enum.Enum):
    """The state of a group. The values are Kafka's names, as DescribeGroups and ListGroups report
    them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


ALLOWED_PREVIOUS: dict[State, tuple[State, ...]] = {
    State.EMPTY: (State.PREPARING_REBALANCE,),
    State.PREPARING_REBALANCE: (State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE),
    State.COMPLETING_REBALANCE: (State.PREPARING_REBALANCE,),
    State.STABLE: (State.COMPLETING_REBALANCE,),
    State.DEAD: tuple(State),
}
"""The states from which each state may be entered."""

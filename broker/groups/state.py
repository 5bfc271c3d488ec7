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


REMOVED = "the group is removed, or the coordinator moves"
"""The reason of every transition to Dead."""

TRANSITIONS: dict[tuple[State, State], str] = {
    (State.EMPTY, State.PREPARING_REBALANCE): "a member joins",
    (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE): "all members have joined, or timeout",
    (State.PREPARING_REBALANCE, State.EMPTY): "no member is left",
    (State.COMPLETING_REBALANCE, State.STABLE): "the leader sends the assignment",
    (State.COMPLETING_REBALANCE, State.PREPARING_REBALANCE): "a member joins, leaves or expires",
    (State.STABLE, State.PREPARING_REBALANCE): "a member joins, leaves or expires",
    (State.EMPTY, State.DEAD): REMOVED,
    (State.PREPARING_REBALANCE, State.DEAD): REMOVED,
    (State.COMPLETING_REBALANCE, State.DEAD): REMOVED,
    (State.STABLE, State.DEAD): REMOVED,
}
"""The allowed transitions, each with its reasons. `Group.enter` refuses every other one.
`make docs` draws the diagram in docs/protocol/consumer-groups.md from this table."""

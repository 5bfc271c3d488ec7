"""The rows of replicas with their lag behind the leader: the worst first. All pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from quorate.cli.client.groups import Place
from quorate.cli.console.views.table import Row
from quorate.cli.topics.topic_view import PartitionView

REPLICAS = ("topic", "partition", "broker", "state", "lag", "log end", "leader")
LEADER, IN_SYNC, ADDED, OUT_OF_SYNC = "leader", "in sync", "being added", "out of sync"
UNKNOWN = "unknown"
"""The value of a lag or a log end that no broker has returned."""
Partitions = Mapping[Place, PartitionView]
Ends = Mapping[Place, Mapping[int, int]]
"""The log end offset of each replica, by partition and broker."""


def state_of(partition: PartitionView, broker: int) -> str:
    """Return the state of the replica on a broker."""
    if broker == partition.leader:
        return LEADER
    if broker in partition.isr:
        return IN_SYNC
    return ADDED if broker in partition.adding else OUT_OF_SYNC


def lag_of(partition: PartitionView, ends: Mapping[int, int], broker: int) -> int | None:
    """Return the number of records by which a replica is behind the leader, or None if one of the
    two log ends is not known. The ends are read at about the same time, so a small lag may be due
    to the time between the two readings."""
    if partition.leader is None or not {partition.leader, broker} <= ends.keys():
        return None
    return max(0, ends[partition.leader] - ends[broker])


def replica_rows(partitions: Partitions, ends: Ends) -> list[Row]:
    """Return a row for each replica of the partitions in `ends`.

    Replicas that are out of sync come first. In each state, an unknown lag precedes the largest
    one."""
    found = []
    for place, known in ends.items():
        partition = partitions[place]
        for broker in partition.replicas:
            state, lag = state_of(partition, broker), lag_of(partition, known, broker)
            order = (state != OUT_OF_SYNC, lag is not None, -(lag or 0), place, broker)
            row = (
                *place,
                broker,
                state,
                UNKNOWN if lag is None else lag,
                known.get(broker, UNKNOWN),
                partition.leader,
            )
            found.append((order, row))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def next_places(
    partitions: Partitions, urgent: Iterable[Place], after: Place | None, most: int
) -> list[Place]:
    """Return at most `most` partitions: the urgent ones, then those behind `after`, then the first
    ones."""
    ordered: Sequence[Place] = sorted(partitions)
    later = [each for each in ordered if after is None or each > after]
    turn = (*urgent, *later, *ordered[: len(ordered) - len(later)])
    return list(dict.fromkeys(turn))[:most]

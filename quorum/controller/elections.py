"""Who leads a partition (kafka-rules 3.6).

A valid leader is in the target ISR and acceptable: unfenced and not shutting down. Only an unclean
election goes outside the ISR, and it says so. Without eligible.leader.replicas (its feature stays
at 0, design.md) there is no ELR to choose from.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import NO_LEADER

Acceptable = Callable[[int], bool]


class Election(enum.Enum):
    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Elected:
    leader: int
    unclean: bool = False


def elect(
    election: Election,
    partition: Partition,
    replicas: Sequence[int],
    isr: Sequence[int],
    acceptable: Acceptable,
) -> Elected:
    """The leader stays when it is valid, unless a valid preferred replica was asked for; else the
    first valid one in the order of assignment; none keeps the ISR and waits for it."""

    def valid(replica: int) -> bool:
        return replica in isr and acceptable(replica)

    if election is Election.PREFERRED and valid(replicas[0]):
        return Elected(replicas[0])
    if valid(partition.leader):
        return Elected(partition.leader)
    for replica in replicas:
        if valid(replica):
            return Elected(replica)
    if election is Election.UNCLEAN:
        for replica in replicas:
            if acceptable(replica):
                return Elected(replica, unclean=True)
    return Elected(NO_LEADER)

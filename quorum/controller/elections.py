"""Leader election of one partition, as in Kafka's PartitionChangeBuilder.
`broker_changes.py` starts the elections that follow when a broker changes its state.

A valid leader is in the target ISR and is acceptable, which means unfenced and not shutting down.
Only an unclean election may choose a replica outside the ISR, and its result says so. Quorate does
not implement eligible leader replicas (KIP-966), so there is no ELR to choose from.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import NO_LEADER

Acceptable = Callable[[int], bool]
"""Returns True if the broker with this id may lead: it is unfenced and not shutting down."""


class Election(enum.Enum):
    """The kinds of election.

    ONLINE keeps a valid leader. PREFERRED moves leadership to the first replica of the assignment
    if that is valid. UNCLEAN may also choose a replica outside the ISR.
    """

    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Elected:
    """The outcome of an election. `leader` is NO_LEADER if no replica qualifies. `unclean` is True
    if the leader is outside the ISR."""

    leader: int
    unclean: bool = False


def elect(
    election: Election,
    partition: Partition,
    replicas: Sequence[int],
    isr: Sequence[int],
    acceptable: Acceptable,
) -> Elected:
    """Choose the leader of a partition among `replicas` with ISR `isr`.

    The order of choice is:

    - the preferred replica, if it is valid and the election is PREFERRED
    - the current leader, if it is valid
    - the first valid replica in assignment order
    - the first acceptable replica, if the election is UNCLEAN
    - NO_LEADER; the caller then keeps the ISR, whose members may return with all data
    """

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

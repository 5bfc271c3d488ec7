"""Leader election of one partition, as in Kafka's PartitionChangeBuilder.
`broker_changes.py` starts the elections that follow when a broker changes its state.

A valid leader is in the target ISR, or in the ELR if that ISR is empty (KIP-966). It is also
acceptable, which means unfenced and not shutting down. If the ISR and the ELR are empty, every
election may choose the last known leader, which may have lost records in an unclean stop. Only an
unclean election may choose any other replica. The result says so in both cases.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorate.quorum.metadata.records import NO_LEADER

Acceptable = Callable[[int], bool]
"""Returns True if the broker with this id may lead: it is unfenced and not shutting down."""


class Election(enum.Enum):
    """The kinds of election.

    ONLINE keeps a valid leader. PREFERRED moves leadership to the first replica of the assignment
    if that is valid. UNCLEAN may also choose a replica outside the ISR and the ELR.
    """

    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The replicas of an election: all `replicas` in assignment order, the ISR, the ELR, and the
    last known leader or NO_LEADER. `leader` is the current leader or NO_LEADER. `longest` is the
    active replica with the longest log, or NO_LEADER if it is not known."""

    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]
    elr: Sequence[int] = ()
    last_known: int = NO_LEADER
    longest: int = NO_LEADER


@dataclass(frozen=True, slots=True)
class Elected:
    """The outcome of an election. `leader` is NO_LEADER if no replica qualifies. `unclean` is True
    if the leader may lack committed records. `last_known` is True if it is such a leader because
    it was the last one."""

    leader: int
    unclean: bool = False
    last_known: bool = False


def elect(election: Election, candidates: Candidates, acceptable: Acceptable) -> Elected:
    """Choose the leader of a partition.

    The order of choice is:

    - the preferred replica, if it is valid and the election is PREFERRED
    - the current leader, if it is valid
    - the first valid replica in assignment order
    - the last known leader, if it is acceptable and the ISR and the ELR are empty
    - the acceptable replica with the longest log, if the election is UNCLEAN and that is known
    - the first acceptable replica, if the election is UNCLEAN
    - NO_LEADER
    """
    replicas, isr = candidates.replicas, candidates.isr
    may_lead = isr or candidates.elr

    def valid(replica: int) -> bool:
        return replica in may_lead and acceptable(replica)

    if election is Election.PREFERRED and valid(replicas[0]):
        return Elected(replicas[0])
    if valid(candidates.leader):
        return Elected(candidates.leader)
    for replica in replicas:
        if valid(replica):
            return Elected(replica)
    last = candidates.last_known
    if not may_lead and last in replicas and acceptable(last):
        return Elected(last, unclean=True, last_known=True)
    if election is Election.UNCLEAN:
        for replica in (candidates.longest, *replicas):
            if replica in replicas and acceptable(replica):
                return Elected(replica, unclean=True)
    return Elected(NO_LEADER)

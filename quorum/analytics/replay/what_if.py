"""The effect that the loss of brokers would have on a state of the cluster. Pure.

The controller's own rule elects the leaders (`controller/partitions/partition_change.py`). All lost
brokers stop in the same moment, without a controlled shutdown. Brokers that are fenced already
count as lost too. The log does not contain the brokers' files, so min.insync.replicas and
unclean.leader.election.enable are known only if they are dynamic configs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from quorate.quorum.analytics.replay.moment import Moment
from quorate.quorum.controller.partitions.elections import Election
from quorate.quorum.controller.partitions.eligible_leaders import MIN_INSYNC_REPLICAS, elr_enabled
from quorate.quorum.controller.partitions.partition_change import Target, elected_state
from quorate.quorum.controller.state.context import UNCLEAN_LEADER_ELECTION
from quorate.quorum.metadata.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
    Partition,
)
from quorate.quorum.metadata.records import NO_LEADER

LOSES_DATA = "loses data"
"""A replica that may lack records becomes the leader, because unclean elections are enabled or it
was the last leader. The log does not tell which replica has the longest log, so the controller may
choose another one."""
OFFLINE = "offline"
"""The partition has no leader."""
BELOW_MIN = "below min ISR"
"""The partition has a leader, but refuses acks=all."""
MAYBE_BELOW_MIN = "maybe below min ISR"
"""The ISR is incomplete, and the log does not contain min.insync.replicas."""
MOVES = "moves"
"""Another replica leads, without loss."""
KEPT = "kept"
"""The leader stays, and writes with acks=all succeed."""
VERDICTS = (LOSES_DATA, OFFLINE, BELOW_MIN, MAYBE_BELOW_MIN, MOVES, KEPT)
"""The verdicts, the worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The state of one partition after the loss, with a verdict of VERDICTS.

    `in_sync` are the members of the ISR that are left. `min_isr` is None if it is not known.
    `unclean_leader` is the replica that an unclean election would choose, or NO_LEADER."""

    topic: str
    partition: int
    leader_before: int
    leader_after: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    min_isr: int | None
    unclean_leader: int
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The effect of the loss of brokers.

    `fates` are the partitions with a replica on a lost broker, the worst first. `voters_left`
    counts the voters of the quorum that are left, if lost brokers are voters too."""

    lost: tuple[int, ...]
    partitions: int
    fates: tuple[Fate, ...]
    voters: int
    voters_left: int

    def count(self, *verdicts: str) -> int:
        """Return the number of partitions with one of these verdicts."""
        counts = Counter(fate.verdict for fate in self.fates)
        return sum(counts[verdict] for verdict in verdicts)

    @property
    def lost_if_unclean(self) -> int:
        """Return the number of partitions without a leader for which an unclean election would
        find one, at the risk of losing data."""
        return sum(
            fate.verdict == OFFLINE and fate.unclean_leader != NO_LEADER for fate in self.fates
        )

    @property
    def quorum_survives(self) -> bool:
        """Return True if a majority of the voters is left, or if the voters are not known."""
        return not self.voters or self.voters_left > self.voters // 2


def brokers_in_racks(image: MetadataImage, racks: Collection[str]) -> list[int]:
    """Return the ids of the brokers in these racks."""
    return [each for each in image.broker_ids() if image.brokers[each].rack in racks]


def what_if(at: Moment, lost: Iterable[int]) -> WhatIf:
    """Return the effect of the loss of these brokers at a moment."""
    image, gone = at.image, frozenset(lost)
    fates = [
        _fate(image, topic.name, partition_id, partition, gone)
        for topic, partition_id, partition in image.all_partitions()
        if gone.intersection(partition.replicas)
    ]
    fates.sort(key=lambda fate: (VERDICTS.index(fate.verdict), fate.topic, fate.partition))
    return WhatIf(
        lost=tuple(sorted(gone)),
        partitions=sum(1 for _ in image.all_partitions()),
        fates=tuple(fates),
        voters=len(at.voters),
        voters_left=sum(voter not in gone for voter in at.voters),
    )


def each_broker(at: Moment) -> list[WhatIf]:
    """Return the effect of the loss of each single active broker, the worst first."""
    image = at.image
    results = [
        what_if(at, (broker,)) for broker in image.broker_ids() if image.brokers[broker].active
    ]
    return sorted(
        results,
        key=lambda each: (
            each.quorum_survives,
            *(-each.count(verdict) for verdict in VERDICTS),
            each.lost,
        ),
    )


def _fate(
    image: MetadataImage,
    topic: str,
    partition_id: int,
    partition: Partition,
    gone: frozenset[int],
) -> Fate:
    def alive(broker: int) -> bool:
        known = image.brokers.get(broker)
        return known is not None and known.active and broker not in gone

    known = setting(image, topic, MIN_INSYNC_REPLICAS)
    min_isr = None if known is None else min(int(known), len(partition.replicas))
    in_sync = tuple(broker for broker in partition.isr if alive(broker))
    target = Target.of(partition, _elr_min_isr(image, min_isr))
    target.isr = in_sync
    _, _, clean = elected_state(partition, target, alive)
    target.election = Election.UNCLEAN
    _, _, unclean = elected_state(partition, target, alive)
    enabled = setting(image, topic, UNCLEAN_LEADER_ELECTION) == "true"
    elected = unclean if enabled and clean.leader == NO_LEADER else clean
    if elected.leader not in (NO_LEADER, *in_sync):
        in_sync = (elected.leader,)
    return Fate(
        topic=topic,
        partition=partition_id,
        leader_before=partition.leader,
        leader_after=elected.leader,
        replicas=partition.replicas,
        in_sync=in_sync,
        min_isr=min_isr,
        unclean_leader=unclean.leader if clean.leader == NO_LEADER else NO_LEADER,
        verdict=_verdict(partition, elected.leader, elected.unclean, len(in_sync), min_isr),
    )


def _verdict(
    partition: Partition, leader: int, unclean: bool, in_sync: int, min_isr: int | None
) -> str:
    if unclean:
        return LOSES_DATA
    if leader == NO_LEADER:
        return OFFLINE
    if min_isr is None and in_sync < len(partition.replicas):
        return MAYBE_BELOW_MIN
    if min_isr is not None and in_sync < min_isr:
        return BELOW_MIN
    return KEPT if leader == partition.leader else MOVES


def setting(image: MetadataImage, topic: str, name: str) -> str | None:
    """Return the dynamic config of the topic, or else of all brokers, or None."""
    for kind, resource in ((TOPIC_RESOURCE, topic), (BROKER_RESOURCE, "")):
        if (value := image.config(kind, resource).get(name)) is not None:
            return value
    return None


def _elr_min_isr(image: MetadataImage, min_isr: int | None) -> int | None:
    """Return the min.insync.replicas that decides about the ELR, or None if ELR is off."""
    return (min_isr or 1) if elr_enabled(image) else None

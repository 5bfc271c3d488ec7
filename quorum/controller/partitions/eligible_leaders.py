"""Eligible leader replicas (ELR, KIP-966 part 1): replicas outside the ISR that may lead without
data loss.

The high watermark does not advance while the ISR has fewer than min.insync.replicas members
(`broker/partition/leadership.py`). A replica that leaves such an ISR therefore has every committed
record, until it stops uncleanly. The controller lists these replicas in each change of a partition:

- If the ISR has min.insync.replicas members, the ELR is empty.
- Otherwise the ELR contains its old members and those of the old ISR, without the new ISR and
  without replicas that stopped uncleanly.

If the ISR becomes empty, the partition also names its last known leader. That replica may lead if
the ELR is empty, but it may have lost records.

The feature eligible.leader.replicas.version turns the rules on. While it is off, the last member of
an ISR stays in it. Nothing maintains an ELR from an earlier time then, so the leader may commit
records that its members lack. Partitions with an ISR lose such an ELR when ELR is enabled again.
"""

from __future__ import annotations

from quorate.quorum.controller.state.context import Context
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import (
    ELIGIBLE_LEADER_REPLICAS,
    MetadataImage,
    Partition,
    Topic,
)
from quorate.quorum.metadata.records import (
    NO_LEADER,
    ClearElrRecord,
    MetadataRecord,
    PartitionChangeRecord,
)

MIN_INSYNC_REPLICAS = "min.insync.replicas"
MAX_CLEARED = 5_000
"""Maximum number of partitions whose ELR is cleared by a record of their own."""
Ids = tuple[int, ...]


def elr_enabled(image: MetadataImage) -> bool:
    """Return True if the feature eligible.leader.replicas.version is on."""
    return image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0


class MinIsrs:
    """The effective min.insync.replicas of topics. Create one per decision, because it caches
    configs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._enabled = elr_enabled(context.image)
        self._known: dict[str, int] = {}

    def of(self, topic: Topic) -> int | None:
        """Return min.insync.replicas of the topic, but at most the replication factor of its first
        partition, as in Kafka. Return None if ELR is off."""
        if not self._enabled:
            return None
        found = self._known.get(topic.name)
        if found is None:
            configured = int(self._context.topic_config(topic.name, MIN_INSYNC_REPLICAS) or 1)
            first = topic.partitions.get(0)
            found = configured if first is None else min(configured, len(first.replicas))
            self._known[topic.name] = found
        return found


def stale_elr_records(context: Context) -> list[MetadataRecord]:
    """Return the records that clear the ELR of partitions with an ISR, before ELR is enabled.

    A partition without an ISR keeps its ELR, because no record was committed since. Above
    MAX_CLEARED partitions, one record clears every ELR of the cluster."""
    records: list[MetadataRecord] = [
        PartitionChangeRecord(
            topic_id=key[0],
            partition_id=key[1],
            cause=Cause.CONFIG_CHANGED,
            eligible_leader_replicas=(),
            last_known_elr=(),
        )
        for key in context.index.partitions_with_elr()
        if context.located(*key)[1].isr
    ]
    return records if len(records) <= MAX_CLEARED else [ClearElrRecord(topic_name="")]


def eligible(
    before: Partition, isr: Ids, replicas: Ids, min_isr: int | None, stopped_uncleanly: int
) -> Ids:
    """Return the ELR of a partition that changes from `before` to this ISR and these replicas.

    `min_isr` is None if ELR is off, and the ELR is then empty. `stopped_uncleanly` is the id of a
    broker whose replica may lack records, or -1. The result is sorted. If it has the members of the
    old ELR, it is the old ELR.
    """
    if min_isr is None or len(isr) >= min(min_isr, len(replicas)):
        return ()
    members = {*before.elr, *before.isr} - {*isr, stopped_uncleanly}
    if members == set(before.elr) <= set(replicas):
        return before.elr
    return tuple(sorted(members & set(replicas)))


def last_known(before: Partition, isr: Ids, replicas: Ids, leader: int, min_isr: int | None) -> Ids:
    """Return the last known leader, as a tuple with at most one member, after the change of
    `before` to this ISR and this leader.

    It is recorded when the ISR becomes empty and removed when a leader is elected. `min_isr` is
    None if ELR is off, and the result is then empty.
    """
    if min_isr is None or leader != NO_LEADER:
        return ()
    if isr or not before.isr:
        return before.last_known_elr
    # A partition that had no leader when ELR was enabled has kept the last leader in its ISR.
    last = (before.leader,) if before.leader != NO_LEADER else before.isr[:1]
    return tuple(each for each in last if each in replicas)

"""The rules for the records that a controller may write into the metadata log.

They are checked record by record. Each record of a batch must be right at its place, and the image
after the whole batch does not show that.

A new leader was in the ISR that the log held before, or in the one that the partition's leader
asked for in the same record (AlterPartition that completes a reassignment). A broker's epoch grows
with each incarnation. No seed asks for an unclean election.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)

ASKED_BY_THE_LEADER = (Cause.ISR_EXPAND, Cause.REASSIGNMENT_STEP, Cause.REASSIGNMENT_COMPLETE)


class Rulings:
    def __init__(self, image: MetadataImage) -> None:
        self._leaders = {
            (topic.id, partition_id): (partition.leader, partition.isr)
            for topic, partition_id, partition in image.all_partitions()
        }
        self._brokers = {
            each.id: (each.epoch, each.incarnation_id) for each in image.brokers.values()
        }

    def take(self, records: Sequence[MetadataRecord]) -> str:
        """What is wrong with them, if anything is."""
        return next(filter(None, map(self._take, records)), "")

    def _take(self, record: MetadataRecord) -> str:
        match record:
            case PartitionRecord():
                key = (record.topic_id, record.partition_id)
                self._leaders[key] = (record.leader, record.isr)
                if record.leader not in (NO_LEADER, *record.isr):
                    return f"{record}: its leader is not in its ISR"
            case PartitionChangeRecord():
                return self._changed(record)
            case RegisterBrokerRecord():
                return self._registered(record)
        return ""

    def _registered(self, record: RegisterBrokerRecord) -> str:
        """Who registers once more, without an answer to the first time, keeps its epoch."""
        before, incarnation_id = self._brokers.get(record.broker_id, (-1, None))
        self._brokers[record.broker_id] = record.broker_epoch, record.incarnation_id
        again = record.incarnation_id == incarnation_id
        if record.broker_epoch < before or (record.broker_epoch == before) != again:
            return f"{record}: {incarnation_id!r} had epoch {before}"
        return ""

    def _changed(self, record: PartitionChangeRecord) -> str:
        key = (record.topic_id, record.partition_id)
        leader, isr = self._leaders[key]
        may_lead = set(isr)
        if record.isr is not None and record.cause in ASKED_BY_THE_LEADER:
            may_lead |= set(record.isr)
        after = leader if record.leader == NO_LEADER_CHANGE else record.leader
        self._leaders[key] = (after, isr if record.isr is None else record.isr)
        if after not in (leader, NO_LEADER) and after not in may_lead:
            return f"{record}: leads after {leader}, and the ISR was {isr}"
        return ""

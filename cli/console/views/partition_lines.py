"""The records of partitions, made of their JSON form in lines of GET /v1/changes. All pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate.quorum.ids import uuid_from_text
from quorate.quorum.metadata.records import (
    NO_LEADER_CHANGE,
    PartitionChangeRecord,
    PartitionRecord,
)

Line = Mapping[str, Any]


def partition_record(record: Line) -> PartitionRecord:
    """Return the record of a new partition, with the fields that events need."""
    return PartitionRecord(
        topic_id=uuid_from_text(record["topicId"]),
        partition_id=record["partitionId"],
        replicas=tuple(record["replicas"]),
        isr=tuple(record["isr"]),
        adding_replicas=tuple(record.get("addingReplicas", ())),
        removing_replicas=tuple(record.get("removingReplicas", ())),
        leader=record["leader"],
        leader_epoch=record["leaderEpoch"],
    )


def partition_change(record: Line) -> PartitionChangeRecord:
    """Return the record of a changed partition, with the fields that events need."""

    def brokers(name: str) -> tuple[int, ...] | None:
        found = record.get(name)
        return None if found is None else tuple(found)

    return PartitionChangeRecord(
        topic_id=uuid_from_text(record["topicId"]),
        partition_id=record["partitionId"],
        isr=brokers("isr"),
        leader=record.get("leader", NO_LEADER_CHANGE),
        replicas=brokers("replicas"),
        adding_replicas=brokers("addingReplicas"),
        removing_replicas=brokers("removingReplicas"),
        leader_recovery_state=record.get("leaderRecoveryState", -1),
        eligible_leader_replicas=brokers("eligibleLeaderReplicas"),
    )

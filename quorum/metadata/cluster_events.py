"""The log lines of a decision: the events of the cluster that its records contain.

An event names the node or topic, the change, the cause, and, if an operator has to act, what to do.
Changes of leaders and of ISRs are counted by their cause, and only the first few partitions are
named. The number of lines of one decision is therefore bounded, whatever the number of its records.

The functions are pure. `quorum/node/controller/cluster_event_log.py` writes the lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quorate.quorum.clipped import shown
from quorate.quorum.metadata.acl_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from quorate.quorum.metadata.acls import Acl
from quorate.quorum.metadata.event_texts import (
    NAMED,
    ClusterEvent,
    because,
    brokers,
    by_cause,
    counted,
    first_of,
    named,
    partition_of,
)
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.isr_events import isr_events
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

Describe = Callable[[Any, MetadataImage], ClusterEvent | None]


def cluster_events(
    records: Sequence[MetadataRecord], before: MetadataImage, after: MetadataImage
) -> Sequence[ClusterEvent]:
    """Return the events of a decision: nodes first, then leaders, ISRs, topics and configs.

    `before` is the image without the records, and `after` the image with them."""
    found: list[ClusterEvent] = []
    elected: list[PartitionChangeRecord] = []
    resized: list[PartitionChangeRecord] = []
    listed: dict[type, list[Any]] = {}
    for record in records:
        cls = type(record)
        if isinstance(record, PartitionChangeRecord):
            if record.leader != NO_LEADER_CHANGE:
                elected.append(record)
            elif record.isr is not None:
                resized.append(record)
        elif cls in SINGLE:
            event = SINGLE[cls](record, before)
            if event is not None:
                found.append(event)
        elif cls in LISTED:
            listed.setdefault(cls, []).append(record)
    if elected:
        found += leader_events(elected, before, after)
    if resized:
        found += isr_events(resized, before, after)
    for cls, several in listed.items():
        found.append(LISTED[cls](several, before))
    return found


# Nodes


def registered(record: RegisterBrokerRecord, before: MetadataImage) -> ClusterEvent:
    """Return the event of a broker's registration."""
    at = ", ".join(f"{each.name}://{each.host}:{each.port}" for each in record.end_points)
    rack = f", rack {record.rack}" if record.rack else ""
    known = record.broker_id in before.brokers
    what = "registered again" if known else "registered"
    text = (
        f"broker {record.broker_id} {what} with epoch {record.broker_epoch} at {at}{rack}. It "
        f"stays fenced until it has caught up{because(record.cause, with_doc=False)}"
    )
    return ClusterEvent("broker-registered", text)


def registration_changed(
    record: BrokerRegistrationChangeRecord, before: MetadataImage
) -> ClusterEvent | None:
    """Return the event of a broker that is fenced, unfenced or shuts down, or that reports its log
    directories. Return None if the record changes nothing of that."""
    broker = f"broker {record.broker_id} (epoch {record.broker_epoch})"
    why = because(record.cause)
    if record.fenced > 0:
        return ClusterEvent("broker-fenced", f"fenced {broker}{why}")
    if record.fenced < 0:
        return ClusterEvent("broker-unfenced", f"unfenced {broker}{why}")
    if record.in_controlled_shutdown:
        return ClusterEvent("broker-shutdown", f"{broker} began a controlled shutdown{why}")
    if record.log_dirs:
        old = before.brokers.get(record.broker_id)
        count = 0 if old is None else len(old.log_dirs)
        text = f"{broker} has {len(record.log_dirs)} log directories, before {count}{why}"
        return ClusterEvent("broker-directories", text)
    return None


def unregistered(record: UnregisterBrokerRecord, _: MetadataImage) -> ClusterEvent:
    """Return the event of a broker whose registration is removed."""
    text = f"removed the registration of broker {record.broker_id}{because(record.cause)}"
    return ClusterEvent("broker-unregistered", text)


def controller_registered(record: RegisterControllerRecord, _: MetadataImage) -> ClusterEvent:
    """Return the event of a controller's registration."""
    at = ", ".join(f"{each.name}://{each.host}:{each.port}" for each in record.end_points)
    return ClusterEvent(
        "controller-registered", f"controller {record.controller_id} registered at {at}"
    )


def feature_changed(record: FeatureLevelRecord, before: MetadataImage) -> ClusterEvent:
    """Return the event of a feature with a new level."""
    old = before.features.get(record.name, 0)
    text = f"feature {record.name} has level {record.feature_level}, before {old}"
    return ClusterEvent("feature-changed", text)


# Leaders


def leader_events(
    records: Sequence[PartitionChangeRecord], before: MetadataImage, after: MetadataImage
) -> Iterator[ClusterEvent]:
    """Yield the events of changed leaders, one for each cause: first those that leave partitions
    without a leader, then the others."""
    for cause, several in by_cause(records).items():
        lost = [each for each in several if each.leader == NO_LEADER]
        moved = [each for each in several if each.leader != NO_LEADER]
        if lost:
            yield leaderless(lost, cause, after)
        if moved:
            yield leaders_moved(moved, cause, before, after)


def leaderless(
    records: Sequence[PartitionChangeRecord], cause: str, after: MetadataImage
) -> ClusterEvent:
    """Return the event of partitions that have no leader any more."""
    needed: Counter[int] = Counter()
    for record in records:
        partition = partition_of(after, record)
        if partition is not None:
            needed.update(partition.isr or partition.elr or partition.last_known_elr)
    start = [str(broker) for broker, _ in needed.most_common(NAMED)]
    one = f"one of the brokers {', '.join(start)}" if len(start) > 1 else f"broker {''.join(start)}"
    remedy = f" Start {one} again." if start else ""
    text = (
        f"{counted(len(records), 'partition')} without a leader "
        f"({named(records, after)}){because(cause)}{remedy}"
    )
    return ClusterEvent("partitions-offline", text)


def leaders_moved(
    records: Sequence[PartitionChangeRecord],
    cause: str,
    before: MetadataImage,
    after: MetadataImage,
) -> ClusterEvent:
    """Return the event of partitions with a new leader, with the counts by old and new leader."""
    old: Counter[int] = Counter()
    new: Counter[int] = Counter(record.leader for record in records)
    for record in records:
        partition = partition_of(before, record)
        old[NO_LEADER if partition is None else partition.leader] += 1
    text = (
        f"moved the leadership of {counted(len(records), 'partition')} "
        f"({named(records, after)}) from {brokers(old)} to {brokers(new)}{because(cause)}"
    )
    return ClusterEvent("leaders-moved", text)


# Topics and configs


def topics_created(records: Sequence[TopicRecord], _: MetadataImage) -> ClusterEvent:
    """Return the event of created topics."""
    names = first_of([record.name for record in records])
    return ClusterEvent("topics-created", f"created {counted(len(records), 'topic')}: {names}")


def topics_deleted(records: Sequence[RemoveTopicRecord], before: MetadataImage) -> ClusterEvent:
    """Return the event of deleted topics."""
    topics = (before.topics.get(record.topic_id) for record in records)
    names = first_of([topic.name for topic in topics if topic is not None])
    return ClusterEvent("topics-deleted", f"deleted {counted(len(records), 'topic')}: {names}")


RESOURCES = {2: "topic", 4: "broker", 32: "group"}
"""Kafka's resource types of configs."""


def configs_changed(records: Sequence[ConfigRecord], _: MetadataImage) -> ClusterEvent:
    """Return the event of changed configs. It names the keys without their values."""
    keys = [
        f"{record.name} of {RESOURCES.get(record.resource_type, 'resource')} "
        f"{record.resource_name or '(default)'}"
        for record in records
    ]
    return ClusterEvent(
        "configs-changed", f"changed {counted(len(keys), 'config')}: {first_of(keys)}"
    )


def _acl_of(acl: AccessControlEntryRecord | Acl) -> str:
    return f"{shown(acl.resource_name)} for {shown(acl.principal)}"


def acls_added(records: Sequence[AccessControlEntryRecord], _: MetadataImage) -> ClusterEvent:
    """Return the event of added ACLs. It names their resources and principals."""
    names = [_acl_of(each) for each in records]
    return ClusterEvent("acls-added", f"added {counted(len(names), 'ACL')}: {first_of(names)}")


def acls_removed(
    records: Sequence[RemoveAccessControlEntryRecord], before: MetadataImage
) -> ClusterEvent:
    """Return the event of removed ACLs."""
    found = (before.acls.by_id.get(each.id) for each in records)
    names = [_acl_of(acl) for acl in found if acl is not None]
    return ClusterEvent(
        "acls-removed", f"removed {counted(len(records), 'ACL')}: {first_of(names)}"
    )


SINGLE: dict[type, Describe] = {
    RegisterBrokerRecord: registered,
    BrokerRegistrationChangeRecord: registration_changed,
    UnregisterBrokerRecord: unregistered,
    RegisterControllerRecord: controller_registered,
    FeatureLevelRecord: feature_changed,
}
"""The records that are one event each."""
LISTED: dict[type, Callable[[Any, MetadataImage], ClusterEvent]] = {
    TopicRecord: topics_created,
    RemoveTopicRecord: topics_deleted,
    ConfigRecord: configs_changed,
    AccessControlEntryRecord: acls_added,
    RemoveAccessControlEntryRecord: acls_removed,
}
"""The records that are one event together."""

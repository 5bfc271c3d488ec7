"""A moment as JSON values."""

from __future__ import annotations

from typing import Any

from quorate.config.sensitive import HIDDEN, is_secret
from quorate.quorum.analytics.log.text import RESOURCES, clock
from quorate.quorum.analytics.replay.moment import WHOLE, Moment
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.metadata.acls import Acl
from quorate.quorum.metadata.image import Broker, MetadataImage, Partition, quota_order
from quorate.quorum.metadata.records import Endpoint
from quorate.quorum.protocol.acl_codes import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    name_of,
)
from quorate.quorum.sasl.scram_mechanisms import BY_NUMBER


def as_json(at: Moment) -> dict[str, Any]:
    """Return the moment as an object that `json.dumps` accepts. The order is the same at every
    call: ids and names are sorted. The entries that a part of the cluster lacks are absent."""
    image = at.image
    shown = {
        "offset": at.offset,
        "epoch": at.epoch,
        "timestamp_ms": at.timestamp_ms,
        "time": clock(at.timestamp_ms),
        "quorum": {"leader": at.leader, "epoch": at.epoch, "voters": list(at.voters)},
        "features": {name: image.features[name] for name in sorted(image.features)},
        "controllers": [
            {"id": each, "endpoints": _endpoints(image.controllers[each].endpoints)}
            for each in sorted(image.controllers)
        ],
        "brokers": [_broker(image.brokers[each]) for each in image.broker_ids()],
        "topics": [_topic(image, name) for name in image.topic_names()],
        "configs": [
            {
                "resource_type": RESOURCES.get(kind, str(kind)),
                "resource_name": name,
                "configs": {
                    key: HIDDEN if is_secret(kind, key) else value
                    for key, value in sorted(image.config(kind, name).items())
                },
            }
            for kind, name in sorted(image.configs)
        ],
        "client_quotas": [
            {"entity": dict(entity), "quotas": dict(sorted(image.client_quotas[entity].items()))}
            for entity in sorted(image.client_quotas, key=quota_order)
        ],
        "scram_credentials": [
            {
                "user": user,
                "mechanism": BY_NUMBER[mechanism].name if mechanism in BY_NUMBER else mechanism,
                "iterations": image.scram_credentials[user, mechanism].iterations,
            }
            for user, mechanism in sorted(image.scram_credentials)
        ],
        "acls": [_acl(each) for each in sorted(image.acls.by_id.values())],
        "next_producer_id": image.next_producer_id,
        "skipped": at.skipped,
    }
    return shown if at.part == WHOLE else {name: shown[name] for name in shown if name not in ALONE}


ALONE = ("client_quotas", "scram_credentials", "acls", "next_producer_id", "skipped")
"""The entries of the whole cluster that no part has."""


def standing(broker: Broker) -> str:
    """Return the state of a broker as a word for people: "fenced", else "shutting down" during a
    controlled shutdown, else "active"."""
    if broker.fenced:
        return "fenced"
    return "shutting down" if broker.in_controlled_shutdown else "active"


def _acl(acl: Acl) -> dict[str, str]:
    return {
        "resource_type": name_of(ResourceType, acl.resource_type),
        "resource_name": acl.resource_name,
        "pattern_type": name_of(PatternType, acl.pattern_type),
        "principal": acl.principal,
        "host": acl.host,
        "operation": name_of(Operation, acl.operation),
        "permission": name_of(PermissionType, acl.permission_type),
    }


def _broker(broker: Broker) -> dict[str, Any]:
    return {
        "id": broker.id,
        "epoch": broker.epoch,
        "standing": standing(broker),
        "rack": broker.rack,
        "endpoints": _endpoints(broker.endpoints),
    }


def _endpoints(endpoints: tuple[Endpoint, ...]) -> list[str]:
    return [f"{each.name}://{each.host}:{each.port}" for each in endpoints]


def _topic(image: MetadataImage, name: str) -> dict[str, Any]:
    topic = image.topics[image.topic_ids[name]]
    return {
        "name": name,
        "id": uuid_to_text(topic.id),
        "partitions": [_partition(each, topic.partitions[each]) for each in topic.partition_ids()],
    }


def _partition(partition_id: int, partition: Partition) -> dict[str, Any]:
    return {
        "partition": partition_id,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "elr": list(partition.elr),
        "last_known_elr": list(partition.last_known_elr),
        "adding_replicas": list(partition.adding),
        "removing_replicas": list(partition.removing),
        "leader_recovery_state": partition.leader_recovery_state,
    }

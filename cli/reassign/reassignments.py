"""Requests about the assignments and reassignments of partitions.

Each function with an `admin` blocks, and raises NotReachable if no node answers in time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.config_changes import alter_configs
from quorate.cli.client.errors import Refused
from quorate.cli.reassign.partition_files import TopicPartition, text_of
from quorate.cli.reassign.plan import Assignment, Racks
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import configs
from quorate.quorum.protocol.schemas import reassignments as schemas
from quorate.quorum.protocol.schemas.metadata import MetadataResponse

TOPIC, BROKER = 2, 4
"""The resource types of IncrementalAlterConfigs."""
DELETE = 1
"""The operation of IncrementalAlterConfigs that removes a config."""
BROKER_THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
"""The configs of a broker that throttle reassignments."""
TOPIC_THROTTLES = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
"""The configs of a topic that throttle reassignments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ongoing:
    """A reassignment in progress. `replicas` also contains the broker ids of the other two."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def ongoing_reassignments(admin: Admin) -> dict[TopicPartition, Ongoing]:
    """Return all reassignments in progress, in the order of topic and partition.

    Raise Refused if the cluster reports an error."""
    answer = admin.ask(
        schemas.ListPartitionReassignmentsRequest(topics=None, timeout_ms=admin.timeout_ms),
        schemas.ListPartitionReassignmentsResponse,
        lambda answer: [answer.error_code],
    )
    check(answer.error_code, answer.error_message)
    found = {
        (topic.name, each.partition_index): Ongoing(
            replicas=each.replicas, adding=each.adding_replicas, removing=each.removing_replicas
        )
        for topic in answer.topics
        for each in topic.partitions
    }
    return dict(sorted(found.items()))


def brokers(admin: Admin) -> dict[int, str | None]:
    """Return the rack of each live broker by its id, or None for a broker without a rack.

    The live brokers are those in a Metadata response. A broker that was fenced a short time ago may
    still be among them."""
    return {each.node_id: each.rack for each in admin.metadata(()).brokers}


def usable(racks: Racks) -> Racks:
    """Return `racks` if every broker has a rack. Otherwise return None as the rack of every
    broker."""
    if all(racks.values()):
        return racks
    return dict.fromkeys(racks)


def assignment_of(admin: Admin, topics: Sequence[str]) -> Assignment:
    """Return the replicas of the topics' partitions.

    Raise Refused if a topic does not exist or has another error."""
    answer = admin.metadata(topics)
    for topic in answer.topics:
        check(topic.error_code, None, f"topic {topic.name}")
    return replicas_in(answer)


def current(admin: Admin, topics: Sequence[str] | None) -> Assignment:
    """Return the replicas of the topics' partitions. None means all topics.

    Topics with an error are left out, such as those that do not exist."""
    return replicas_in(admin.metadata(topics))


def replicas_in(answer: MetadataResponse) -> Assignment:
    """Return the replicas of each partition in a Metadata response.

    Topics with an error are left out."""
    found = {
        (topic.name, each.partition_index): tuple(each.replica_nodes)
        for topic in answer.topics
        if topic.name is not None and not topic.error_code
        for each in topic.partitions
    }
    return dict(sorted(found.items()))


def reassign(
    admin: Admin, targets: dict[TopicPartition, tuple[int, ...] | None]
) -> dict[TopicPartition, str]:
    """Start a reassignment to each target, or cancel it if the target is None.

    Return the error message of each partition that was refused. The request does not wait until the
    replicas have moved. Raise Refused if the request fails as a whole.

    After a lost connection, a request without a cancellation is sent again. A request with one
    raises NotReachable instead, because its outcome is unknown. If the controller has carried it
    out, a second cancellation fails."""
    topics: dict[str, list[schemas.ReassignablePartition]] = {}
    for (topic, partition), replicas in sorted(targets.items()):
        topics.setdefault(topic, []).append(
            schemas.ReassignablePartition(partition_index=partition, replicas=replicas)
        )
    request = schemas.AlterPartitionReassignmentsRequest(
        timeout_ms=admin.timeout_ms,
        topics=tuple(
            schemas.ReassignableTopic(name=name, partitions=tuple(partitions))
            for name, partitions in topics.items()
        ),
    )
    answer = admin.change(
        request,
        schemas.AlterPartitionReassignmentsResponse,
        lambda answer: [answer.error_code],
        repeatable=None not in targets.values(),
    )
    check(answer.error_code, answer.error_message)
    return {
        (topic.name, each.partition_index): each.error_message
        or ErrorCode.of(each.error_code).message
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code
    }


def clear_throttles(admin: Admin, broker_ids: Iterable[int], topics: Iterable[str]) -> None:
    """Remove all throttle configs of the brokers and topics.

    A config need not be set. After a reassignment, a caller does not know the brokers that the
    replicas came from, so it gives all brokers. Raise Refused on the first error. The resources
    before it are changed then."""
    resources: list[tuple[int, str, tuple[str, ...]]]
    resources = [(BROKER, str(each), BROKER_THROTTLES) for each in broker_ids]
    resources += [(TOPIC, each, TOPIC_THROTTLES) for each in topics]
    for kind, name, keys in resources:
        resource = configs.IncrementalAlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=tuple(
                configs.IncrementalAlterableConfig(name=key, config_operation=DELETE, value=None)
                for key in keys
            ),
        )
        alter_configs(admin, resource, name)


def check_brokers(known: Racks, wanted: Iterable[int]) -> None:
    """Raise Refused if a wanted broker is not in `known`."""
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise Refused(f"Unknown broker id {unknown[0]}")


def joined(partitions: Iterable[TopicPartition]) -> str:
    """Return the sorted names of the partitions, separated by commas."""
    return ",".join(text_of(each) for each in sorted(partitions))

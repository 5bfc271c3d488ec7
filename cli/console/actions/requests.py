"""The request of each action. The commands of the same names send the same requests.

Each function blocks, and returns a sentence about the result. It raises Refused with the cluster's
error, and NotReachable if no node answers or the outcome is unknown."""

from __future__ import annotations

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.console.actions.fields import Values
from quorate.cli.leader_election import KINDS, elect
from quorate.cli.reassign import reassignments
from quorate.cli.reassign.partition_files import TopicPartition, text_of
from quorate.cli.topics import topic_changes
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import CreatableTopic


def create_topic(admin: Admin, values: Values) -> str:
    """Create a topic, with the cluster's defaults for empty fields."""
    partitions, replicas = values["partitions"], values["replicas"]
    topic = CreatableTopic(
        name=values["topic"],
        num_partitions=topic_changes.UNSET if partitions is None else partitions,
        replication_factor=topic_changes.UNSET if replicas is None else replicas,
        assignments=(),
        configs=(),
    )
    topic_changes.create(admin, topic)
    return f"The cluster has created the topic {values['topic']}."


def delete_topic(admin: Admin, values: Values) -> str:
    """Delete a topic."""
    topic_changes.delete(admin, [values["topic"]])
    return f"The cluster has deleted the topic {values['topic']}."


def reassign(admin: Admin, values: Values) -> str:
    """Start a reassignment of a partition, and do not wait until its replicas have moved."""
    _reassign(admin, partition_of(values), values["brokers"])
    return f"The cluster moves the replicas of {text_of(partition_of(values))}."


def cancel_reassignment(admin: Admin, values: Values) -> str:
    """Cancel the reassignment of a partition."""
    _reassign(admin, partition_of(values), None)
    return f"The cluster has cancelled the reassignment of {text_of(partition_of(values))}."


def elect_preferred(admin: Admin, values: Values) -> str:
    """Elect the preferred leader of a partition."""
    return _elected(elect(admin, KINDS["preferred"], [partition_of(values)]))


def elect_all_preferred(admin: Admin, values: Values) -> str:
    """Elect the preferred leaders of all partitions."""
    return _elected(elect(admin, KINDS["preferred"], None))


def elect_unclean(admin: Admin, values: Values) -> str:
    """Elect a leader outside of the ISR, for a partition without a leader."""
    return _elected(elect(admin, KINDS["unclean"], [partition_of(values)]))


def partition_of(values: Values) -> TopicPartition:
    """Return the partition that the fields `topic` and `partition` name."""
    return values["topic"], values["partition"]


def _reassign(admin: Admin, partition: TopicPartition, brokers: tuple[int, ...] | None) -> None:
    refused = reassignments.reassign(admin, {partition: brokers})
    for key, why in refused.items():
        raise Refused(f"{text_of(key)}: {why}")


def _elected(results: dict[TopicPartition, tuple[int, str | None]]) -> str:
    """Return a sentence about an election. Raise Refused if a partition has an error."""
    unneeded = [key for key, (code, _) in results.items() if code == ErrorCode.ELECTION_NOT_NEEDED]
    failed = [key for key, (code, _) in results.items() if code and key not in unneeded]
    elected = len(results) - len(unneeded) - len(failed)
    counts = f"Partitions with a new leader: {elected}. Partitions that need none: {len(unneeded)}."
    if failed:
        code, text = results[failed[0]]
        why = text or ErrorCode.of(code).message
        raise Refused(f"{counts} Failed: {len(failed)}, first {text_of(failed[0])}: {why}")
    return counts

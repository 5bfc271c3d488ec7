"""Admin requests with one mistake each, and the topics and groups that they name.

The name of a case states the mistake. Kafka's answers are in admin_errors.json (capture.py).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from quorate.cli.client.admin import Admin
from quorate.cli.client.groups import Groups
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import (
    client_quotas,
    configs,
    describe_producers,
    elect_leaders,
    group_admin,
    group_membership,
    group_offsets,
    log_dirs,
    reassignments,
    topics,
    unregister_broker,
)
from quorate.quorum.protocol.wire import Message

PRESENT, DOTTED, OFFSETS = "present", "dotted.name", "__consumer_offsets"
IDLE, BUSY = "idle", "busy"
NO_TOPIC_ID = Uuid(bytes(range(16)))
TIMEOUT_MS = 20_000
UNKNOWN_KIND, TOPIC, BROKER, BROKER_LOGGER, GROUP = 0, 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
PREFERRED, UNCLEAN = 0, 1


def new_topic(
    name: str = "fresh",
    partitions: int = 1,
    factor: int = 1,
    assigned: Sequence[tuple[int, Sequence[int]]] = (),
    **settings: str | None,
) -> topics.CreatableTopic:
    return topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=tuple(
            topics.CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(brokers))
            for number, brokers in assigned
        ),
        configs=tuple(
            topics.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in settings.items()
        ),
    )


def create(*wanted: topics.CreatableTopic, validate: bool = False) -> Message:
    return topics.CreateTopicsRequest(topics=wanted, timeout_ms=TIMEOUT_MS, validate_only=validate)


def assigned(*partitions: tuple[int, Sequence[int]]) -> Message:
    return create(new_topic(partitions=-1, factor=-1, assigned=partitions))


def delete(*wanted: tuple[str | None, Uuid]) -> Message:
    states = tuple(topics.DeleteTopicState(name=name, topic_id=uuid) for name, uuid in wanted)
    return topics.DeleteTopicsRequest(topics=states, timeout_ms=TIMEOUT_MS)


def grow(
    name: str = PRESENT,
    count: int = 3,
    added: Sequence[Sequence[int]] | None = None,
    *,
    times: int = 1,
    validate: bool = False,
) -> Message:
    brokers = None if added is None else tuple(tuple(each) for each in added)
    topic = topics.CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if brokers is None
        else tuple(topics.CreatePartitionsAssignment(broker_ids=each) for each in brokers),
    )
    return topics.CreatePartitionsRequest(
        topics=(topic,) * times, timeout_ms=TIMEOUT_MS, validate_only=validate
    )


def change(
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    times: int = 1,
    validate: bool = False,
) -> Message:
    resource = configs.IncrementalAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            configs.IncrementalAlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ),
    )
    return configs.IncrementalAlterConfigsRequest(
        resources=(resource,) * times, validate_only=validate
    )


def alter(kind: int, name: str, *changes: tuple[str, str | None], times: int = 1) -> Message:
    resource = configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(configs.AlterableConfig(name=key, value=value) for key, value in changes),
    )
    return configs.AlterConfigsRequest(resources=(resource,) * times, validate_only=False)


def describe(kind: int, name: str, *keys: str, times: int = 1) -> Message:
    resource = configs.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys or None
    )
    return configs.DescribeConfigsRequest(resources=(resource,) * times)


def elect(kind: int, topic: str, *partitions: int) -> Message:
    return elect_leaders.ElectLeadersRequest(
        election_type=kind,
        topic_partitions=(elect_leaders.TopicPartitions(topic=topic, partitions=partitions),),
        timeout_ms=TIMEOUT_MS,
    )


def reassign(
    topic: str, *wanted: tuple[int, Sequence[int] | None], may_change_factor: bool = True
) -> Message:
    return reassignments.AlterPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS,
        allow_replication_factor_change=may_change_factor,
        topics=(
            reassignments.ReassignableTopic(
                name=topic,
                partitions=tuple(
                    reassignments.ReassignablePartition(
                        partition_index=number,
                        replicas=None if replicas is None else tuple(replicas),
                    )
                    for number, replicas in wanted
                ),
            ),
        ),
    )


def ongoing(topic: str, *partitions: int) -> Message:
    return reassignments.ListPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS,
        topics=(
            reassignments.ListPartitionReassignmentsTopics(
                name=topic, partition_indexes=partitions
            ),
        ),
    )


def shorten(topic: str, *wanted: tuple[int, int]) -> Message:
    return topics.DeleteRecordsRequest(
        topics=(
            topics.DeleteRecordsTopic(
                name=topic,
                partitions=tuple(
                    topics.DeleteRecordsPartition(partition_index=number, offset=offset)
                    for number, offset in wanted
                ),
            ),
        ),
        timeout_ms=TIMEOUT_MS,
    )


def forget_offsets(group: str, topic: str, *partitions: int) -> Message:
    return group_offsets.OffsetDeleteRequest(
        group_id=group,
        topics=(
            group_offsets.OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(
                    group_offsets.OffsetDeleteRequestPartition(partition_index=each)
                    for each in partitions
                ),
            ),
        ),
    )


def delete_groups(*names: str) -> Message:
    return group_admin.DeleteGroupsRequest(groups_names=names)


def quota(entity: dict[str, str | None], *changes: tuple[str, float]) -> Message:
    return client_quotas.AlterClientQuotasRequest(
        entries=(
            client_quotas.AlterationData(
                entity=tuple(
                    client_quotas.AlteredEntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.items()
                ),
                ops=tuple(
                    client_quotas.OpData(key=key, value=value, remove=False)
                    for key, value in changes
                ),
            ),
        ),
        validate_only=False,
    )


def producers(topic: str, *partitions: int) -> Message:
    return describe_producers.DescribeProducersRequest(
        topics=(describe_producers.TopicRequest(name=topic, partition_indexes=partitions),)
    )


CREATE_TOPICS = {
    "name empty": create(new_topic("")),
    "name .": create(new_topic(".")),
    "name ..": create(new_topic("..")),
    "name of 250 characters": create(new_topic("x" * 250)),
    "name with a space": create(new_topic("a b")),
    "name with a slash": create(new_topic("a/b")),
    "name not ascii": create(new_topic("é")),
    "name of the metadata log": create(new_topic("__cluster_metadata")),
    "name there already": create(new_topic(PRESENT)),
    "name collides": create(new_topic("dotted_name")),
    "name twice": create(new_topic(), new_topic()),
    "name twice, other name once": create(new_topic(), new_topic(""), new_topic()),
    "partitions 0": create(new_topic(partitions=0)),
    "partitions -2": create(new_topic(partitions=-2)),
    "partitions 10001": create(new_topic(partitions=10_001)),
    "partitions 2147483647": create(new_topic(partitions=2**31 - 1)),
    "factor 0": create(new_topic(factor=0)),
    "factor -2": create(new_topic(factor=-2)),
    "factor 3": create(new_topic(factor=3)),
    "factor and partitions bad": create(new_topic(partitions=0, factor=0)),
    "assignment with a hole": assigned((0, (1,)), (2, (2,))),
    "assignment not from 0": assigned((1, (1,))),
    "assignment negative": assigned((-1, (1,))),
    "assignment twice": assigned((0, (1,)), (0, (2,))),
    "assignment without brokers": assigned((0, ())),
    "assignment with a broker twice": assigned((0, (1, 1))),
    "assignment with an unknown broker": assigned((0, (1, 9))),
    "assignment with a negative broker": assigned((0, (-1,))),
    "assignment of different factors": assigned((0, (1,)), (1, (1, 2))),
    "assignment and partitions": create(new_topic(partitions=1, factor=-1, assigned=[(0, [1])])),
    "assignment and factor": create(new_topic(partitions=-1, factor=1, assigned=[(0, [1])])),
    "config unknown": create(new_topic(no_such_key="1")),
    "config null": create(new_topic(retention_ms=None)),
    "config no number": create(new_topic(retention_ms="soon")),
    "config below range": create(new_topic(retention_ms="-2")),
    "config above range": create(new_topic(segment_bytes=str(2**31))),
    "config too small": create(new_topic(segment_bytes="1")),
    "config no boolean": create(new_topic(unclean_leader_election_enable="perhaps")),
    "config no choice": create(new_topic(compression_type="rar")),
    "config no list element": create(new_topic(cleanup_policy="delete,burn")),
    "config min isr 0": create(new_topic(min_insync_replicas="0")),
    "config ratio above 1": create(new_topic(min_cleanable_dirty_ratio="1.5")),
    "config empty": create(new_topic(retention_ms="")),
    "config lags contradict": create(
        new_topic(min_compaction_lag_ms="10", max_compaction_lag_ms="5")
    ),
    "config throttle no list": create(new_topic(leader_replication_throttled_replicas="all")),
    "validate only, factor 3": create(new_topic(factor=3), validate=True),
    "validate only, good": create(new_topic(), validate=True),
    "nothing": create(),
}
DELETE_TOPICS = {
    "name unknown": delete(("absent", ZERO_UUID)),
    "name empty": delete(("", ZERO_UUID)),
    "name null and no id": delete((None, ZERO_UUID)),
    "name of the metadata log": delete(("__cluster_metadata", ZERO_UUID)),
    "id unknown": delete((None, NO_TOPIC_ID)),
    "id and name": delete((PRESENT, NO_TOPIC_ID)),
    "id twice": delete((None, NO_TOPIC_ID), (None, NO_TOPIC_ID)),
    "name twice": delete(("absent", ZERO_UUID), ("absent", ZERO_UUID)),
    "name there, twice": delete((PRESENT, ZERO_UUID), (PRESENT, ZERO_UUID)),
    "nothing": delete(),
}
CREATE_PARTITIONS = {
    "name unknown": grow("absent"),
    "name empty": grow(""),
    "name twice": grow(times=2),
    "count as it is": grow(count=2),
    "count smaller": grow(count=1),
    "count 0": grow(count=0),
    "count -1": grow(count=-1),
    "assignment too short": grow(count=4, added=[(1,)]),
    "assignment too long": grow(count=3, added=[(1, 2), (2, 1)]),
    "assignment without brokers": grow(added=[()]),
    "assignment empty": grow(added=[]),
    "assignment with a broker twice": grow(added=[(1, 1)]),
    "assignment with an unknown broker": grow(added=[(1, 9)]),
    "assignment of another factor": grow(added=[(1,)]),
    "assignment with a negative broker": grow(added=[(-1, 1)]),
    "validate only, smaller": grow(count=1, validate=True),
    "validate only, good": grow(validate=True),
    "nothing": grow(times=0),
}
RETENTION, POLICY, DYNAMIC = "retention.ms", "cleanup.policy", "log.retention.ms"
INCREMENTAL_ALTER_CONFIGS = {
    "topic unknown": change(TOPIC, "absent", (RETENTION, SET, "1")),
    "topic name empty": change(TOPIC, "", (RETENTION, SET, "1")),
    "topic name bad": change(TOPIC, "a b", (RETENTION, SET, "1")),
    "topic twice": change(TOPIC, PRESENT, (RETENTION, SET, "1"), times=2),
    "key unknown": change(TOPIC, PRESENT, ("no.such.key", SET, "1")),
    "key unknown, deleted": change(TOPIC, PRESENT, ("no.such.key", DELETE, None)),
    "key empty": change(TOPIC, PRESENT, ("", SET, "1")),
    "key of a broker": change(TOPIC, PRESENT, ("log.retention.ms", SET, "1")),
    "key twice": change(TOPIC, PRESENT, (RETENTION, SET, "1"), (RETENTION, SET, "2")),
    "set null": change(TOPIC, PRESENT, (RETENTION, SET, None)),
    "append null": change(TOPIC, PRESENT, (POLICY, APPEND, None)),
    "subtract null": change(TOPIC, PRESENT, (POLICY, SUBTRACT, None)),
    "set no number": change(TOPIC, PRESENT, (RETENTION, SET, "soon")),
    "set below range": change(TOPIC, PRESENT, (RETENTION, SET, "-2")),
    "set no list element": change(TOPIC, PRESENT, (POLICY, SET, "burn")),
    "append to no list": change(TOPIC, PRESENT, (RETENTION, APPEND, "1")),
    "subtract from no list": change(TOPIC, PRESENT, (RETENTION, SUBTRACT, "1")),
    "append no list element": change(TOPIC, PRESENT, (POLICY, APPEND, "burn")),
    "operation 4": change(TOPIC, PRESENT, (RETENTION, 4, "1")),
    "operation -1": change(TOPIC, PRESENT, (RETENTION, -1, "1")),
    "broker unknown": change(BROKER, "9", (DYNAMIC, SET, "2")),
    "broker no number": change(BROKER, "one", (DYNAMIC, SET, "2")),
    "broker negative": change(BROKER, "-1", (DYNAMIC, SET, "2")),
    "broker key unknown, as no number": change(BROKER, "1x", ("no.such.key", SET, "2")),
    "broker key read-only": change(BROKER, "1", ("node.id", SET, "2")),
    "broker default key read-only": change(BROKER, "", ("node.id", SET, "2")),
    "broker value no number": change(BROKER, "1", (DYNAMIC, SET, "many")),
    "broker default value no number": change(BROKER, "", (DYNAMIC, SET, "many")),
    "broker value below range": change(BROKER, "1", ("log.segment.bytes", SET, "1")),
    "broker logger level": change(BROKER_LOGGER, "9", ("root", SET, "LOUD")),
    "resource type unknown": change(UNKNOWN_KIND, "x", (RETENTION, SET, "1")),
    "resource type 99": change(99, "x", (RETENTION, SET, "1")),
    "resource type of a user": change(3, "x", (RETENTION, SET, "1")),
    "group name empty": change(GROUP, "", ("consumer.session.timeout.ms", SET, "50000")),
    "group key unknown": change(GROUP, "g", ("no.such.key", SET, "1")),
    "group value no number": change(GROUP, "g", ("consumer.session.timeout.ms", SET, "x")),
    "one good, one bad key": change(
        TOPIC, PRESENT, (RETENTION, SET, "1"), ("segment.bytes", SET, "x")
    ),
    "min isr 0": change(TOPIC, PRESENT, ("min.insync.replicas", SET, "0")),
    "validate only, bad": change(TOPIC, PRESENT, (RETENTION, SET, "x"), validate=True),
    "validate only, good": change(TOPIC, PRESENT, (RETENTION, SET, "1"), validate=True),
    "no keys": change(TOPIC, PRESENT),
    "no keys, topic unknown": change(TOPIC, "absent"),
    "nothing": change(TOPIC, PRESENT, times=0),
}
ALTER_CONFIGS = {
    "topic unknown": alter(TOPIC, "absent", (RETENTION, "1")),
    "topic name empty": alter(TOPIC, "", (RETENTION, "1")),
    "topic twice": alter(TOPIC, PRESENT, (RETENTION, "1"), times=2),
    "key unknown": alter(TOPIC, PRESENT, ("no.such.key", "1")),
    "key twice": alter(TOPIC, PRESENT, (RETENTION, "1"), (RETENTION, "x")),
    "value null": alter(TOPIC, PRESENT, (RETENTION, None)),
    "value no number": alter(TOPIC, PRESENT, (RETENTION, "soon")),
    "broker unknown": alter(BROKER, "9", (DYNAMIC, "2")),
    "broker no number": alter(BROKER, "one", (DYNAMIC, "2")),
    "broker key read-only": alter(BROKER, "1", ("node.id", "2")),
    "broker value no number": alter(BROKER, "1", (DYNAMIC, "many")),
    "resource type unknown": alter(UNKNOWN_KIND, "x", (RETENTION, "1")),
    "resource type of a logger": alter(BROKER_LOGGER, "1", ("root", "INFO")),
    "nothing": alter(TOPIC, PRESENT, times=0),
}
DESCRIBE_CONFIGS = {
    "topic unknown": describe(TOPIC, "absent"),
    "topic name empty": describe(TOPIC, ""),
    "topic name bad": describe(TOPIC, "a b"),
    "topic key unknown": describe(TOPIC, PRESENT, "no.such.key"),
    "broker unknown": describe(BROKER, "9"),
    "broker another": describe(BROKER, "2", "log.retention.ms"),
    "broker no number": describe(BROKER, "one"),
    "resource type unknown": describe(UNKNOWN_KIND, "x"),
    "resource type 99": describe(99, "x"),
    "logger of no number": describe(BROKER_LOGGER, "one", "none"),
    "logger of an unknown broker": describe(BROKER_LOGGER, "9", "none"),
    "logger of no broker": describe(BROKER_LOGGER, "", "none"),
    "group name empty": describe(GROUP, ""),
    "group unknown": describe(GROUP, "absent", "none"),
    "nothing": describe(TOPIC, PRESENT, times=0),
}
ELECT_LEADERS = {
    "topic unknown": elect(PREFERRED, "absent", 0),
    "topic empty": elect(PREFERRED, "", 0),
    "partition unknown": elect(PREFERRED, PRESENT, 7),
    "partition -1": elect(PREFERRED, PRESENT, -1),
    "preferred leads": elect(PREFERRED, PRESENT, 0, 1),
    "unclean without need": elect(UNCLEAN, PRESENT, 0),
    "unclean, topic unknown": elect(UNCLEAN, "absent", 0),
    "type 2": elect(2, PRESENT, 0),
    "type -1": elect(-1, PRESENT, 0),
    "partition twice": elect(PREFERRED, PRESENT, 0, 0),
    "no partitions": elect(PREFERRED, PRESENT),
    "all": elect_leaders.ElectLeadersRequest(topic_partitions=None, timeout_ms=TIMEOUT_MS),
    "nothing": elect_leaders.ElectLeadersRequest(topic_partitions=(), timeout_ms=TIMEOUT_MS),
}
ALTER_PARTITION_REASSIGNMENTS = {
    "topic unknown": reassign("absent", (0, (1,))),
    "topic empty": reassign("", (0, (1,))),
    "partition unknown": reassign(PRESENT, (7, (1,))),
    "partition -1": reassign(PRESENT, (-1, (1,))),
    "replicas empty": reassign(PRESENT, (0, ())),
    "replica twice": reassign(PRESENT, (0, (1, 1))),
    "replica unknown": reassign(PRESENT, (0, (1, 9))),
    "replica negative": reassign(PRESENT, (0, (-1, 1))),
    "other factor, not allowed": reassign(PRESENT, (0, (1,)), may_change_factor=False),
    "cancelled, none runs": reassign(PRESENT, (0, None)),
    "cancelled, topic unknown": reassign("absent", (0, None)),
    "cancelled, partition unknown": reassign(PRESENT, (7, None)),
    "no partitions": reassign(PRESENT),
    "nothing": reassignments.AlterPartitionReassignmentsRequest(topics=()),
}
LIST_PARTITION_REASSIGNMENTS = {
    "topic unknown": ongoing("absent", 0),
    "partition unknown": ongoing(PRESENT, 7),
    "none runs": ongoing(PRESENT, 0, 1),
    "nothing": reassignments.ListPartitionReassignmentsRequest(topics=()),
}
DELETE_RECORDS = {
    "topic unknown": shorten("absent", (0, 0)),
    "topic empty": shorten("", (0, 0)),
    "partition unknown": shorten(PRESENT, (7, 0)),
    "partition -1": shorten(PRESENT, (-1, 0)),
    "offset beyond the end": shorten(PRESENT, (0, 1000)),
    "offset -2": shorten(PRESENT, (0, -2)),
    "not led here": shorten(PRESENT, (1, 0)),
    "internal topic": shorten(OFFSETS, (0, 0)),
    "policy compact only": shorten(DOTTED, (0, 0)),
    "nothing": topics.DeleteRecordsRequest(topics=(), timeout_ms=TIMEOUT_MS),
}
GROUPS = {
    "OffsetDelete: group unknown": forget_offsets("absent", PRESENT, 0),
    "OffsetDelete: group empty": forget_offsets("", PRESENT, 0),
    "OffsetDelete: topic unknown": forget_offsets(IDLE, "absent", 0),
    "OffsetDelete: partition unknown": forget_offsets(IDLE, PRESENT, 7),
    "OffsetDelete: nothing committed": forget_offsets(IDLE, PRESENT, 1),
    "OffsetDelete: subscribed": forget_offsets(BUSY, PRESENT, 0),
    "DeleteGroups: group unknown": delete_groups("absent"),
    "DeleteGroups: group empty": delete_groups(""),
    "DeleteGroups: members left": delete_groups(BUSY),
    "DeleteGroups: group twice": delete_groups("absent", "absent"),
    "DeleteGroups: nothing": delete_groups(),
    "DescribeGroups: group unknown": group_admin.DescribeGroupsRequest(groups=("absent",)),
    "DescribeGroups: group empty": group_admin.DescribeGroupsRequest(groups=("",)),
    "ListGroups: state unknown": group_admin.ListGroupsRequest(states_filter=("Asleep",)),
    "ListGroups: type unknown": group_admin.ListGroupsRequest(types_filter=("odd",)),
}
OTHERS = {
    "UnregisterBroker: broker unknown": unregister_broker.UnregisterBrokerRequest(broker_id=9),
    "UnregisterBroker: broker negative": unregister_broker.UnregisterBrokerRequest(broker_id=-1),
    "DescribeProducers: topic unknown": producers("absent", 0),
    "DescribeProducers: topic bad": producers("a b", 0),
    "DescribeProducers: partition unknown": producers(PRESENT, 7),
    "DescribeProducers: not led here": producers(PRESENT, 1),
    "DescribeLogDirs: topic unknown": log_dirs.DescribeLogDirsRequest(
        topics=(log_dirs.DescribableLogDirTopic(topic="absent", partitions=(0,)),)
    ),
    "DescribeClientQuotas: entity unknown": client_quotas.DescribeClientQuotasRequest(
        components=(client_quotas.ComponentData(entity_type="pet", match_type=0, match="cat"),),
        strict=False,
    ),
    "DescribeClientQuotas: entity empty": client_quotas.DescribeClientQuotasRequest(
        components=(client_quotas.ComponentData(entity_type="", match_type=0, match="cat"),),
        strict=False,
    ),
    "DescribeClientQuotas: match type 3": client_quotas.DescribeClientQuotasRequest(
        components=(client_quotas.ComponentData(entity_type="user", match_type=3, match="x"),),
        strict=False,
    ),
    "DescribeClientQuotas: entity twice": client_quotas.DescribeClientQuotasRequest(
        components=(client_quotas.ComponentData(entity_type="user", match_type=0, match="x"),) * 2,
        strict=False,
    ),
    "DescribeClientQuotas: ip and user": client_quotas.DescribeClientQuotasRequest(
        components=(
            client_quotas.ComponentData(entity_type="ip", match_type=2, match=None),
            client_quotas.ComponentData(entity_type="user", match_type=2, match=None),
        ),
        strict=False,
    ),
    "AlterClientQuotas: key unknown": quota({"user": "x"}, ("bytes", 1.0)),
    "AlterClientQuotas: key of another entity": quota({"ip": None}, ("producer_byte_rate", 1.0)),
    "AlterClientQuotas: value 0": quota({"user": "x"}, ("producer_byte_rate", 0.0)),
    "AlterClientQuotas: fraction": quota({"user": "x"}, ("producer_byte_rate", 1.5)),
    "AlterClientQuotas: too large": quota({"ip": None}, ("connection_creation_rate", 2.0**31)),
    "AlterClientQuotas: no entity": quota({}, ("producer_byte_rate", 1.0)),
    "AlterClientQuotas: entity unknown": quota({"pet": "cat"}, ("producer_byte_rate", 1.0)),
    "AlterClientQuotas: name empty": quota({"user": ""}, ("producer_byte_rate", 1.0)),
    "AlterClientQuotas: ip and user": quota(
        {"ip": "10.0.0.1", "user": "x"}, ("connection_creation_rate", 1.0)
    ),
    "AlterClientQuotas: no ip": quota({"ip": "1.2.3.4.5"}, ("connection_creation_rate", 1.0)),
    "AlterClientQuotas: key twice": quota(
        {"user": "x"}, ("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)
    ),
}
FAMILIES: dict[str, dict[str, Message]] = {
    "CreateTopics": CREATE_TOPICS,
    "DeleteTopics": DELETE_TOPICS,
    "CreatePartitions": CREATE_PARTITIONS,
    "IncrementalAlterConfigs": INCREMENTAL_ALTER_CONFIGS,
    "AlterConfigs": ALTER_CONFIGS,
    "DescribeConfigs": DESCRIBE_CONFIGS,
    "ElectLeaders": ELECT_LEADERS,
    "AlterPartitionReassignments": ALTER_PARTITION_REASSIGNMENTS,
    "ListPartitionReassignments": LIST_PARTITION_REASSIGNMENTS,
    "DeleteRecords": DELETE_RECORDS,
}
CASES: dict[str, Message] = {
    **{f"{api}: {name}": asked for api, cases in FAMILIES.items() for name, asked in cases.items()},
    **GROUPS,
    **OTHERS,
}


def prepare(admin: Admin) -> None:
    """Create two topics, a group with a committed offset, and a group with a member. Node 1
    coordinates both groups."""
    made = create(
        new_topic(PRESENT, -1, -1, [(0, [1, 2]), (1, [2, 1])]),
        new_topic(DOTTED, -1, -1, [(0, [1])], cleanup_policy="compact"),
        new_topic(OFFSETS, -1, -1, [(0, [1])], cleanup_policy="compact"),
    )
    answer = admin.change(made, topics.CreateTopicsResponse)
    assert [each.error_code for each in answer.topics] == [0, 0, 0], answer
    groups = Groups(admin)
    groups.commit(IDLE, {(PRESENT, 0): 0})
    join(groups)


def join(groups: Groups) -> None:
    """Join a member to BUSY that subscribes to PRESENT, with a session of five minutes."""
    name = PRESENT.encode()
    subscription = struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)
    asked = group_membership.JoinGroupRequest(
        group_id=BUSY,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        member_id="",
        protocol_type="consumer",
        protocols=(group_membership.JoinGroupRequestProtocol(name="range", metadata=subscription),),
    )
    given = groups.ask(BUSY, asked, group_membership.JoinGroupResponse, join_error)
    asked = replace(asked, member_id=given.member_id)
    joined = groups.ask(BUSY, asked, group_membership.JoinGroupResponse, join_error)
    assert joined.error_code == 0, joined
    synced = groups.ask(
        BUSY,
        group_membership.SyncGroupRequest(
            group_id=BUSY,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(),
        ),
        group_membership.SyncGroupResponse,
        lambda answer: [answer.error_code],
    )
    assert synced.error_code == 0, synced


def join_error(answer: group_membership.JoinGroupResponse) -> list[int]:
    return [answer.error_code]


def ask(admin: Admin, request: Message) -> list[str]:
    """Return every error of the response, in the order of the response."""
    answer: Any = admin.ask_node(1, request, APIS[request.API_KEY].response)
    return list(errors_of(answer))


def errors_of(answer: Any) -> Iterator[str]:
    if isinstance(answer, tuple):
        for each in answer:
            yield from errors_of(each)
    elif is_dataclass(answer):
        code = getattr(answer, "error_code", None)
        if code is not None:
            text = getattr(answer, "error_message", None)
            name = ErrorCode.of(code).name
            yield name if text is None else f"{name}: {text}"
        for field in fields(answer):
            yield from errors_of(getattr(answer, field.name))

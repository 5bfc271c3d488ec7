"""Strings that fit into a request and not into its response, or not into a record (item 1)."""

from __future__ import annotations

from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.schemas import client_quotas, configs, group_admin, topics
from quorate.quorum.protocol.schemas.group_membership import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from quorate.quorum.protocol.schemas.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from quorate.quorum.protocol.wire import Message
from tests.attacks.raw import CLIENT_ID, Raw
from tests.attacks.registry import attack
from tests.attacks.target import TOPIC, Target

LONGEST = "x" * 32_767
TOO_LONG = "x" * 40_000
TOPIC_RESOURCE = 2
SESSION_MS = 10_000
ROUNDS = 2
"""Two such requests once cost the quorum, because the next leader met the second."""


async def on_all_ports(target: Target, *messages: tuple[Message, int]) -> None:
    for _ in range(ROUNDS):
        for address in (*target.brokers, *target.controllers):
            for each in messages:
                await target.fire(address, each)


def versions(api_key: int, first: int) -> range:
    return range(first, APIS[api_key].max_version + 1)


@attack(1)
async def long_group_id(target: Target) -> None:
    """Commit offsets for a group whose id has 40,000 bytes."""
    part = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    for version in versions(OffsetCommitRequest.API_KEY, 8):
        topic = OffsetCommitRequestTopic(name=TOPIC, topic_id=target.topic_id, partitions=(part,))
        commit = OffsetCommitRequest(group_id=TOO_LONG, member_id="", topics=(topic,))
        await on_all_ports(target, (commit, version))


def join(group: str, protocol_type: str = "consumer", member: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id=member,
        protocol_type=protocol_type,
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\x00\x01"),),
    )


async def join_and_sync(
    target: Target, group: str, protocol_type: str, version: int, client_id: str = CLIENT_ID
) -> None:
    """Join as the only member, become leader, and sync; try every broker as the coordinator."""
    for address in target.brokers:
        connection = await Raw.open(address)
        try:
            member, joined = "", None
            for _ in range(2):
                joined = await connection.ask(
                    join(group, protocol_type, member), version, client_id
                )
                if joined is None:
                    target.outcome["closed"] += 1
                    break
                target.outcome["answered"] += 1
                member = joined.member_id
            if joined is not None:
                sync = SyncGroupRequest(
                    group_id=group,
                    generation_id=joined.generation_id,
                    member_id=member,
                    protocol_type=protocol_type,
                    protocol_name="range",
                    assignments=(SyncGroupRequestAssignment(member_id=member, assignment=b"x"),),
                )
                answer = await connection.ask(sync, min(version, 5), client_id)
                target.outcome["closed" if answer is None else "answered"] += 1
        finally:
            connection.close()


@attack(1)
async def long_protocol_type(target: Target) -> None:
    """Join with JoinGroup v9 under a protocol type that a classic string cannot hold, then sync."""
    for size in (32_767, 32_768, 40_000):
        await join_and_sync(target, f"long-type-{size}", "t" * size, 9)


@attack(1)
async def long_client_id(target: Target) -> None:
    """Join with JoinGroup v4 and a client id of 32,767 bytes, so that the member id is longer."""
    for version in (4, 3, 0):
        await join_and_sync(target, f"long-client-{version}", "consumer", version, LONGEST)


@attack(1)
async def list_long_groups(target: Target) -> None:
    """List and describe groups in classic versions after a join with a long protocol type."""
    await join_and_sync(target, "long-listed", TOO_LONG, 9)
    for address in target.brokers:
        for version in (0, 2):
            await target.fire(address, (group_admin.ListGroupsRequest(), version))
            described = group_admin.DescribeGroupsRequest(groups=("long-listed", LONGEST))
            await target.fire(address, (described, version))
            removed = group_admin.DeleteGroupsRequest(groups_names=(LONGEST, "long-listed"))
            await target.fire(address, (removed, min(version, 1)))


@attack(1)
async def describe_long_configs(target: Target) -> None:
    """Describe configs of resources with the longest names, in every version."""
    for version in versions(configs.DescribeConfigsRequest.API_KEY, 1):
        for kind in (2, 4, 8, 16, 32):
            resource = configs.DescribeConfigsResource(
                resource_type=kind, resource_name=LONGEST, configuration_keys=None
            )
            asked = configs.DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
            await on_all_ports(target, (asked, version))


@attack(1)
async def describe_long_quotas(target: Target) -> None:
    """Describe client quotas of an entity type with the longest name."""
    for version, name in ((0, LONGEST), (1, LONGEST), (1, TOO_LONG)):
        part = client_quotas.ComponentData(entity_type=name, match_type=0, match=name)
        asked = client_quotas.DescribeClientQuotasRequest(components=(part,), strict=False)
        await on_all_ports(target, (asked, version))


@attack(1)
async def create_long_topics(target: Target) -> None:
    """Create topics with the longest names and configs, in every version."""
    for version in versions(topics.CreateTopicsRequest.API_KEY, 2):
        for name in (LONGEST, TOO_LONG):
            config = topics.CreatableTopicConfig(name=name, value=name)
            made = [
                topics.CreatableTopic(
                    name=each,
                    num_partitions=1,
                    replication_factor=1,
                    assignments=(),
                    configs=(config,) if each == "long-config" else (),
                )
                for each in (name, "long-config")
            ]
            asked = topics.CreateTopicsRequest(topics=tuple(made), timeout_ms=5000)
            if version >= 5 or name is LONGEST:
                await on_all_ports(target, (asked, version))


@attack(1)
async def alter_long_configs(target: Target) -> None:
    """Alter configs with the longest names and values, incrementally and as a whole."""
    for version, long in ((0, LONGEST), (1, LONGEST), (1, TOO_LONG), (2, TOO_LONG)):
        for resource, name, value in (
            (long, "retention.ms", "1"),
            (TOPIC, long, "1"),
            (TOPIC, "retention.ms", long),
            (TOPIC, "follower.replication.throttled.replicas", long),
        ):
            one = configs.IncrementalAlterableConfig(name=name, config_operation=0, value=value)
            incremental = configs.IncrementalAlterConfigsRequest(
                resources=(
                    configs.IncrementalAlterConfigsResource(
                        resource_type=TOPIC_RESOURCE, resource_name=resource, configs=(one,)
                    ),
                ),
                validate_only=False,
            )
            if version < 2:
                await on_all_ports(target, (incremental, version))
            whole = configs.AlterConfigsRequest(
                resources=(
                    configs.AlterConfigsResource(
                        resource_type=TOPIC_RESOURCE,
                        resource_name=resource,
                        configs=(configs.AlterableConfig(name=name, value=value),),
                    ),
                ),
                validate_only=False,
            )
            await on_all_ports(target, (whole, version))
